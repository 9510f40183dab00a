// Package testserver is a server in memory, or an ensemble, under commands: it fails as they say. The commands are
// lines of text or JSON, or requests of HTTP.
package testserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
)

// Config says what is started.
type Config struct {
	Servers int // how many; one stands alone
	Host    string
	Port    int // of the first; the others have those behind it; 0 is free ones
	Options []curatortest.ServerOption
}

// Ensemble is what has started. All methods are safe for concurrent use.
type Ensemble struct {
	servers []*curatortest.Server
	cluster *curatortest.Cluster // nil if one server stands alone
	all     common

	mu    sync.Mutex
	heal  []func()
	rules map[int][]*curatortest.Injection
	last  int
}

// common is what a server and a cluster have in common.
type common interface {
	Advance(d time.Duration)
	Close() error
	ConnectString() string
	ExpireSession(sessionID int64) error
	KillSession(sessionID int64) error
}

// Start starts the servers.
func Start(c Config) (*Ensemble, error) {
	addrs := []string{net.JoinHostPort(c.Host, "0")}
	if c.Port != 0 {
		addrs = nil
		for i := range c.Servers {
			addrs = append(addrs, net.JoinHostPort(c.Host, strconv.Itoa(c.Port+i)))
		}
	}
	opts := append(slices.Clone(c.Options), curatortest.WithAddr(addrs...))
	e := &Ensemble{rules: map[int][]*curatortest.Injection{}}
	if c.Servers == 1 {
		s, err := curatortest.NewServer(opts...)
		if err != nil {
			return nil, err
		}
		e.servers, e.all = []*curatortest.Server{s}, s
		return e, nil
	}
	cluster, err := curatortest.NewCluster(c.Servers, opts...)
	if err != nil {
		return nil, err
	}
	e.servers, e.cluster, e.all = cluster.Servers(), cluster, cluster
	return e, nil
}

// Close ends the servers.
func (e *Ensemble) Close() error { return e.all.Close() }

// ConnectString returns the connect string of all servers.
func (e *Ensemble) ConnectString() string { return e.all.ConnectString() }

// Addrs returns the addresses of the servers.
func (e *Ensemble) Addrs() []string {
	var addrs []string
	for _, s := range e.servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Command is a command: its name and its arguments.
type Command struct {
	Do   string
	Args map[string]string
}

// Parse reads a command from a line: words, as "expire session=0x1", or a JSON object, as
// {"do":"expire","session":"0x1"}.
func Parse(line string) (c Command, err error) {
	c.Args = map[string]string{}
	if strings.HasPrefix(line, "{") {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			return c, fmt.Errorf("not JSON: %w", err)
		}
		for name, value := range fields {
			c.Args[name] = fmt.Sprint(value)
		}
		c.Do = c.Args["do"]
		delete(c.Args, "do")
		return c, nil
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return c, errors.New("no command")
	}
	c.Do = words[0]
	for _, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return c, fmt.Errorf("%q: arguments are name=value", word)
		}
		c.Args[name] = value
	}
	return c, nil
}

// Answer is the answer to a command: a line of JSON.
type Answer struct {
	OK       bool     `json:"ok"`
	Error    string   `json:"error,omitempty"`
	ID       int      `json:"id,omitempty"`
	Hits     *int     `json:"hits,omitempty"`
	Count    *int     `json:"count,omitempty"`
	Servers  []Server `json:"servers,omitempty"`
	Sessions []string `json:"sessions,omitempty"`
}

// Server is the state of a server.
type Server struct {
	Server      int    `json:"server"`
	Addr        string `json:"addr"`
	Leads       bool   `json:"leads"`
	Connections int    `json:"connections"`
}

// verb is a command that exists.
type verb struct {
	args string // the names of its arguments
	do   func(e *Ensemble, a *args) (Answer, error)
}

var verbs = map[string]verb{
	"state":        {"", (*Ensemble).state},
	"expire":       {"session", (*Ensemble).expire},
	"kill":         {"session", (*Ensemble).kill},
	"cut":          {"session server", (*Ensemble).cut},
	"stop":         {"server", (*Ensemble).stop},
	"start":        {"server", (*Ensemble).start},
	"freeze":       {"server", (*Ensemble).freeze},
	"thaw":         {"server", (*Ensemble).thaw},
	"partition":    {"groups", (*Ensemble).partition},
	"blackhole":    {"server direction", (*Ensemble).blackHole},
	"refuse":       {"server", (*Ensemble).refuse},
	"lag":          {"server by", (*Ensemble).lag},
	"heal":         {"", (*Ensemble).healAll},
	"advance":      {"by", (*Ensemble).advance},
	"lose-request": {ruleArgs, rule(curatortest.CutBefore)},
	"lose-reply":   {ruleArgs, rule(curatortest.CutAfter)},
	"drop-reply":   {ruleArgs, rule(curatortest.DropReply)},
	"delay":        {ruleArgs + " by", rule(curatortest.DelayReply)},
	"fail":         {ruleArgs + " error", rule(curatortest.ReplyError)},
	"hits":         {"id", (*Ensemble).hits},
	"remove":       {"id", (*Ensemble).remove},
}

// Do obeys a command.
func (e *Ensemble) Do(c Command) Answer {
	v, ok := verbs[c.Do]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(verbs)), ", ")
		return failed(fmt.Errorf("no command %q; there are %s", c.Do, known))
	}
	for name := range c.Args {
		if !slices.Contains(strings.Fields(v.args), name) {
			return failed(fmt.Errorf("%s: no argument %q; it takes %s", c.Do, name, or(v.args, "none")))
		}
	}
	answer, err := v.do(e, &args{c.Args})
	if err != nil {
		return failed(fmt.Errorf("%s: %w", c.Do, err))
	}
	answer.OK = true
	return answer
}

func failed(err error) Answer { return Answer{Error: err.Error()} }

func or(text, none string) string {
	if text == "" {
		return none
	}
	return text
}

// args are the arguments of a command.
type args struct{ values map[string]string }

func (a *args) has(name string) bool { return a.values[name] != "" }

func (a *args) session() (int64, error) {
	text := a.values["session"]
	if id, err := strconv.ParseUint(text, 0, 64); err == nil { // 0x… may have the highest bit
		return int64(id), nil
	}
	id, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("session=%s: must be a number, as 0x1", text)
	}
	return id, nil
}

func (a *args) number(name string, none int) (int, error) {
	if !a.has(name) {
		return none, nil
	}
	n, err := strconv.Atoi(a.values[name])
	if err != nil {
		return 0, fmt.Errorf("%s=%s: must be a number", name, a.values[name])
	}
	return n, nil
}

func (a *args) duration(name string) (time.Duration, error) {
	d, err := time.ParseDuration(a.values[name])
	if err != nil {
		return 0, fmt.Errorf("%s=%s: must be a time, as 1500ms", name, a.values[name])
	}
	return d, nil
}

// servers returns the servers of the argument: all, if there is none.
func (e *Ensemble) of(a *args) ([]*curatortest.Server, error) {
	if !a.has("server") {
		return e.servers, nil
	}
	n, err := a.number("server", 0)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > len(e.servers) {
		return nil, fmt.Errorf("server=%d: must be from 1 to %d", n, len(e.servers))
	}
	return e.servers[n-1 : n], nil
}

// each calls fn for each of the servers of the argument.
func (e *Ensemble) each(a *args, fn func(s *curatortest.Server) error) (Answer, error) {
	servers, err := e.of(a)
	if err != nil {
		return Answer{}, err
	}
	for _, s := range servers {
		if err := fn(s); err != nil {
			return Answer{}, err
		}
	}
	return Answer{}, nil
}

func (e *Ensemble) state(*args) (answer Answer, err error) {
	var leader *curatortest.Server
	if e.cluster != nil {
		leader, _ = e.cluster.Leader() // nil without a majority
	} else {
		leader = e.servers[0]
	}
	known := map[int64]bool{}
	for i, s := range e.servers {
		answer.Servers = append(answer.Servers, Server{
			Server: i + 1, Addr: s.Addr(), Leads: s == leader, Connections: s.Faults().Connections(),
		})
		for _, id := range s.Sessions() {
			if !known[id] {
				known[id] = true
				answer.Sessions = append(answer.Sessions, fmt.Sprintf("0x%x", uint64(id)))
			}
		}
	}
	return answer, nil
}

func (e *Ensemble) expire(a *args) (Answer, error) {
	id, err := a.session()
	if err != nil {
		return Answer{}, err
	}
	return Answer{}, e.all.ExpireSession(id)
}

func (e *Ensemble) kill(a *args) (Answer, error) {
	id, err := a.session()
	if err != nil {
		return Answer{}, err
	}
	return Answer{}, e.all.KillSession(id)
}

func (e *Ensemble) cut(a *args) (Answer, error) {
	var id int64
	if a.has("session") {
		var err error
		if id, err = a.session(); err != nil {
			return Answer{}, err
		}
	}
	n := 0
	answer, err := e.each(a, func(s *curatortest.Server) error {
		if !a.has("session") {
			n += s.Faults().CutAll()
		} else if s.Faults().Cut(id) {
			n++
		}
		return nil
	})
	answer.Count = &n
	return answer, err
}

func (e *Ensemble) stop(a *args) (Answer, error)   { return e.each(a, (*curatortest.Server).Stop) }
func (e *Ensemble) start(a *args) (Answer, error)  { return e.each(a, (*curatortest.Server).Restart) }
func (e *Ensemble) freeze(a *args) (Answer, error) { return e.each(a, (*curatortest.Server).Freeze) }
func (e *Ensemble) thaw(a *args) (Answer, error)   { return e.each(a, (*curatortest.Server).Thaw) }

// partition separates the servers, as in groups=1,2|3.
func (e *Ensemble) partition(a *args) (Answer, error) {
	if e.cluster == nil {
		return Answer{}, errors.New("a server that stands alone has no partitions: start it with --servers 3")
	}
	var groups [][]*curatortest.Server
	for group := range strings.SplitSeq(a.values["groups"], "|") {
		var servers []*curatortest.Server
		for n := range strings.SplitSeq(group, ",") {
			one, err := e.of(&args{map[string]string{"server": strings.TrimSpace(n)}})
			if err != nil {
				return Answer{}, fmt.Errorf("groups must be as 1,2|3: %w", err)
			}
			if len(one) != 1 {
				return Answer{}, errors.New("groups must be as 1,2|3")
			}
			servers = append(servers, one...)
		}
		groups = append(groups, servers)
	}
	e.onHeal(e.cluster.Partition(groups...))
	return Answer{}, nil
}

// onHeal keeps what ends a fault.
func (e *Ensemble) onHeal(heal func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heal = append(e.heal, heal)
}

func (e *Ensemble) blackHole(a *args) (Answer, error) {
	directions := map[string]curatortest.Direction{
		"": curatortest.Both, "both": curatortest.Both,
		"to-server": curatortest.ToServer, "to-client": curatortest.ToClient,
	}
	direction, ok := directions[a.values["direction"]]
	if !ok {
		return Answer{}, errors.New("direction must be to-server, to-client or both")
	}
	return e.each(a, func(s *curatortest.Server) error {
		e.onHeal(s.Faults().BlackHole(direction))
		return nil
	})
}

func (e *Ensemble) refuse(a *args) (Answer, error) {
	return e.each(a, func(s *curatortest.Server) error {
		e.onHeal(s.Faults().RefuseConnects())
		return nil
	})
}

func (e *Ensemble) lag(a *args) (Answer, error) {
	if e.cluster == nil {
		return Answer{}, errors.New("a server that stands alone is behind no other: start it with --servers 3")
	}
	by, err := a.duration("by")
	if err != nil {
		return Answer{}, err
	}
	if !a.has("server") {
		return Answer{}, errors.New("which server?")
	}
	return e.each(a, func(s *curatortest.Server) error {
		e.cluster.SetLag(s, by)
		return nil
	})
}

// healAll ends partitions, black holes, refusals, lags and rules, and thaws.
func (e *Ensemble) healAll(*args) (Answer, error) {
	e.mu.Lock()
	heal, rules := e.heal, e.rules
	e.heal, e.rules = nil, map[int][]*curatortest.Injection{}
	e.mu.Unlock()
	for _, fn := range heal {
		fn()
	}
	for _, injections := range rules {
		for _, in := range injections {
			in.Remove()
		}
	}
	for _, s := range e.servers {
		if e.cluster != nil {
			e.cluster.SetLag(s, 0)
		}
		if err := s.Thaw(); err != nil {
			return Answer{}, err
		}
	}
	return Answer{}, nil
}

func (e *Ensemble) advance(a *args) (Answer, error) {
	by, err := a.duration("by")
	if err != nil {
		return Answer{}, err
	}
	if by < 0 {
		return Answer{}, errors.New("the clock does not go back")
	}
	e.all.Advance(by)
	return Answer{}, nil
}

// ruleArgs are the arguments of the commands that add a rule.
const ruleArgs = "server op path session skip count"

// refusals are the errors of the command fail, by their names in Java.
var refusals = map[string]error{
	"NONODE": zk.ErrNoNode, "NODEEXISTS": zk.ErrNodeExists, "NOTEMPTY": zk.ErrNotEmpty, "BADVERSION": zk.ErrBadVersion,
	"NOAUTH": zk.ErrNoAuth, "INVALIDACL": zk.ErrInvalidACL, "AUTHFAILED": zk.ErrAuthFailed,
	"SESSIONEXPIRED": zk.ErrSessionExpired, "CONNECTIONLOSS": zk.ErrConnectionClosed,
}

// rule returns the command that adds a rule. Each server counts for itself.
func rule(action curatortest.Action) func(e *Ensemble, a *args) (Answer, error) {
	return func(e *Ensemble, a *args) (Answer, error) {
		r := curatortest.Rule{Action: action, Path: a.values["path"], MayMiss: true}
		if a.has("op") {
			r.Ops = strings.Split(a.values["op"], ",")
		}
		var err error
		if a.has("session") {
			if r.SessionID, err = a.session(); err != nil {
				return Answer{}, err
			}
		}
		if r.Skip, err = a.number("skip", 0); err != nil {
			return Answer{}, err
		}
		if r.Count, err = a.number("count", 1); err != nil {
			return Answer{}, err
		}
		switch action {
		case curatortest.DelayReply:
			if r.Delay, err = a.duration("by"); err != nil {
				return Answer{}, err
			}
		case curatortest.ReplyError:
			if r.Err = refusals[a.values["error"]]; r.Err == nil {
				names := strings.Join(slices.Sorted(maps.Keys(refusals)), ", ")
				return Answer{}, fmt.Errorf("error=%s: must be one of %s", a.values["error"], names)
			}
		}
		if err := r.Validate(); err != nil {
			return Answer{}, err
		}
		servers, err := e.of(a)
		if err != nil {
			return Answer{}, err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.last++
		for _, s := range servers {
			e.rules[e.last] = append(e.rules[e.last], s.Faults().Add(r))
		}
		return Answer{ID: e.last}, nil
	}
}

// hits reports how often a rule has acted.
func (e *Ensemble) hits(a *args) (Answer, error) {
	injections, _, err := e.ruleOf(a)
	if err != nil {
		return Answer{}, err
	}
	n := 0
	for _, in := range injections {
		n += in.Hits()
	}
	return Answer{Hits: &n}, nil
}

// remove ends a rule, and reports how often it has acted.
func (e *Ensemble) remove(a *args) (Answer, error) {
	answer, err := e.hits(a)
	if err != nil {
		return answer, err
	}
	injections, id, err := e.ruleOf(a)
	if err != nil {
		return Answer{}, err
	}
	for _, in := range injections {
		in.Remove()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.rules, id)
	return answer, nil
}

func (e *Ensemble) ruleOf(a *args) ([]*curatortest.Injection, int, error) {
	id, err := a.number("id", 0)
	if err != nil {
		return nil, 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	injections, ok := e.rules[id]
	if !ok {
		return nil, 0, fmt.Errorf("id=%d: there is no such rule", id)
	}
	return injections, id, nil
}
