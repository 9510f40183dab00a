package conformance_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// A script is a file of cases. A line that starts with "#" names a case, the lines behind it are commands, each of a
// client, and the indented ones below a command are the frames that this client receives. Paths are below a node of the
// case's own.
//
//	# a deleted node fires once
//	a create /n
//	  create zxid 2 OK "/n"
//	a get /n watch
//
// See command for what there is.
type script struct {
	file  string
	cases []scriptCase
}

type scriptCase struct {
	name  string
	lines []scriptLine
}

type scriptLine struct {
	command  string
	received []string
}

func readScripts(dir string) ([]script, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var scripts []script
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		scripts = append(scripts, parseScript(file, string(b)))
	}
	return scripts, nil
}

func parseScript(file, text string) script {
	s := script{file: file}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		var c *scriptCase
		if len(s.cases) > 0 {
			c = &s.cases[len(s.cases)-1]
		}
		switch {
		case line == "":
		case strings.HasPrefix(line, "# "):
			s.cases = append(s.cases, scriptCase{name: line[2:]})
		case strings.HasPrefix(line, "  "):
			last := &c.lines[len(c.lines)-1]
			last.received = append(last.received, line[2:])
		default:
			c.lines = append(c.lines, scriptLine{command: line})
		}
	}
	return s
}

// overlayScripts replaces the cases that are also in the scripts of a directory below theirs, by file and name.
func overlayScripts(scripts []script, dir string) ([]script, error) {
	if len(scripts) == 0 {
		return nil, nil
	}
	others, err := readScripts(filepath.Join(filepath.Dir(scripts[0].file), dir))
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		for _, c := range other.cases {
			at := find(scripts, other.name(), c.name)
			if at == nil {
				return nil, fmt.Errorf("%s: no case %q to replace", other.file, c.name)
			}
			*at = c
		}
	}
	return scripts, nil
}

// find returns the case of a name in a script of a name, nil if there is none.
func find(scripts []script, name, caseName string) *scriptCase {
	for _, s := range scripts {
		for i := range s.cases {
			if s.name() == name && s.cases[i].name == caseName {
				return &s.cases[i]
			}
		}
	}
	return nil
}

// name returns the name of the script's file.
func (s script) name() string { return strings.TrimSuffix(filepath.Base(s.file), ".txt") }

// write writes the script back, with the answers of this run.
func (s script) write() error {
	var b strings.Builder
	for i, c := range s.cases {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "# %s\n", c.name)
		for _, l := range c.lines {
			b.WriteString(l.command + "\n")
			for _, h := range l.received {
				b.WriteString("  " + h + "\n")
			}
		}
	}
	return os.WriteFile(s.file, []byte(b.String()), 0o600)
}

// actor plays the clients of a case on one server.
type actor struct {
	narrator
	addr  string
	conns map[string]*conn
	first map[string]*conn // by client, the connection that has its session
}

// run runs a command and returns the frames that its client receives.
func (a *actor) run(command string) (received []string) {
	client, rest, _ := strings.Cut(command, " ")
	verb, args, _ := strings.Cut(rest, " ")
	received, err := a.act(client, verb, args)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		received = append(received, "silence")
	case err != nil:
		received = append(received, "the end")
	}
	return received
}

func (a *actor) act(client, verb, args string) ([]string, error) {
	switch verb {
	case "open":
		return a.open(client, args)
	case "drop":
		return nil, a.conns[client].Close()
	case "word":
		return a.word(args)
	case "raw":
		b, err := hex.DecodeString(strings.ReplaceAll(args, " ", ""))
		if err != nil {
			return nil, err
		}
		c, err := a.conn(client)
		if err == nil {
			_, err = c.Write(b)
		}
		return nil, err
	case "end":
		return a.untilEnd(client)
	case "send": // and not await an answer
		verb, args, _ := strings.Cut(args, " ")
		op, body, err := a.encode(verb, args)
		if err != nil {
			return nil, err
		}
		b, _ := a.conns[client].encode(op, body)
		_, err = a.conns[client].Write(b)
		return nil, err
	}
	if a.conns[client] == nil {
		if _, err := a.open(client, ""); err != nil {
			return nil, err
		}
	}
	return a.request(client, verb, args)
}

// conn returns the client's connection, one without a handshake if it has none.
func (a *actor) conn(client string) (*conn, error) {
	if c := a.conns[client]; c != nil {
		return c, nil
	}
	c, err := dial(a.addr)
	if err == nil {
		a.conns[client] = c
	}
	return c, err
}

// open opens a connection for the client: for a session of its own, or with of=X, for that of X.
func (a *actor) open(client, args string) ([]string, error) {
	o := options(args)
	c, err := dial(a.addr)
	if err != nil {
		return nil, err
	}
	r := jute.ConnectRequest{TimeoutMs: int32(o.number("timeout", 60_000)), HasReadOnly: !o.has("short")}
	r.LastZxidSeen = o.number("ahead", 0) // by more than any server has
	if of := o["of"]; of != "" {
		r.SessionID, r.Password = a.first[of].session, a.first[of].password
	}
	if o.has("wrong") {
		r.Password = []byte("0123456789abcdef")
	}
	r.SessionID += o.number("other", 0)
	a.conns[client] = c
	answer, err := c.handshake(r)
	if err != nil {
		return nil, err
	}
	if answer.SessionID != 0 && a.sessions[answer.SessionID] == 0 {
		a.sessions[answer.SessionID] = len(a.sessions) + 1
	}
	if answer.SessionID != 0 {
		a.first[client] = c
	}
	return []string{fmt.Sprintf("connected session %d timeout %v password %t read-only byte %t",
		a.sessions[answer.SessionID],
		c.timeout, slices.ContainsFunc(answer.Password, func(b byte) bool { return b != 0 }), answer.HasReadOnly)}, nil
}

// untilEnd returns the frames that the client still receives before the server ends the connection.
func (a *actor) untilEnd(client string) (received []string, err error) {
	for {
		answer, err := a.conns[client].readAnswer()
		if err != nil {
			return received, err
		}
		received = append(received, a.event(answer))
	}
}

func (a *actor) request(client, verb, args string) (received []string, err error) {
	c := a.conns[client]
	op, body, err := a.encode(verb, args)
	if err != nil {
		return []string{err.Error()}, nil
	}
	b, xid := c.encode(op, body)
	if _, err := c.Write(b); err != nil {
		return nil, err
	}
	for {
		got, err := c.readAnswer()
		if err != nil {
			return received, err
		}
		if got.Xid != jute.XidNotification {
			return append(received, a.reply(sent{op, xid}, got)), nil
		}
		received = append(received, a.event(got))
	}
}

// encode makes a request of a command.
func (a *actor) encode(verb, args string) (jute.Op, []byte, error) {
	switch verb {
	case "auth":
		scheme, credentials, _ := strings.Cut(args, " ")
		return jute.OpAuth, jute.AppendAuth(nil, &jute.Auth{Scheme: scheme, Auth: []byte(credentials)}), nil
	case "setWatches", "setWatches2":
		o := options(args)
		w := jute.SetWatches{
			RelativeZxid: a.base + o.number("zxid", 0),
			Data:         a.list(o["data"]),
			Exist:        a.list(o["exist"]),
			Child:        a.list(o["child"]),
			Persistent:   a.list(o["persistent"]),
			Recursive:    a.list(o["recursive"]),
		}
		if verb == "setWatches" {
			return jute.OpSetWatches, jute.AppendSetWatches(nil, &w), nil
		}
		return jute.OpSetWatches2, jute.AppendSetWatches2(nil, &w), nil
	case "op": // any opcode with any body
		number, body, _ := strings.Cut(args, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return 0, nil, err
		}
		b, err := hex.DecodeString(strings.ReplaceAll(body, " ", ""))
		return jute.Op(n), b, err
	}
	r, err := parseRequest(verb, args)
	if err != nil {
		return 0, nil, err
	}
	root := a.root
	switch {
	case strings.Contains(args, " absolute"):
		root = ""
	case strings.Contains(args, " quota"): // below the node of the quota of the case's own node
		root = quotaRoot + root
	}
	return r.Op, jute.AppendRequest(nil, root, &r), nil
}

func (a *actor) list(paths string) []string {
	if paths == "" {
		return nil
	}
	list := strings.Split(paths, ",")
	for i := range list {
		list[i] = a.root + list[i]
	}
	return list
}

// verbs are the operations by the names of the protocol.
var verbs = func() map[string]jute.Op {
	m := map[string]jute.Op{}
	for op := jute.OpCloseSession; op <= jute.OpWhoAmI; op++ {
		m[op.String()] = op
	}
	return m
}()

func parseRequest(verb, args string) (jute.Request, error) {
	op, ok := verbs[verb]
	if !ok {
		return jute.Request{}, fmt.Errorf("no such command: %s", verb)
	}
	r := jute.Request{Op: op, Version: -1}
	switch op {
	case jute.OpMulti, jute.OpMultiRead:
		for part := range strings.SplitSeq(args, ";") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			verb, args, _ := strings.Cut(part, " ")
			one, err := parseRequest(verb, args)
			if err != nil {
				return r, err
			}
			r.Ops = append(r.Ops, one)
		}
		return r, nil
	case jute.OpReconfig:
		r.Reconfig = &jute.Reconfig{ConfigID: -1}
		return r, nil
	}
	path, rest, _ := strings.Cut(args, " ")
	path, err := strconv.Unquote(`"` + path + `"`)
	if err != nil {
		return r, err
	}
	r.Path = path
	o := options(rest)
	r.Watch = o.has("watch")
	r.Version = int32(o.number("v", -1))
	r.TTL = o.number("ttl", 0)
	r.Flags = int32(o.number("flags", o.number("mode", o.number("type", 0))))
	if data, ok := o["data"]; ok {
		r.Data = []byte(data)
	}
	r.ACL, ok = acls[o["acl"]]
	if !ok {
		return r, fmt.Errorf("no such ACL: %s, of %v", o["acl"], slices.Sorted(maps.Keys(acls)))
	}
	return r, nil
}

// acls are the ACLs that scripts can name; open is the default.
var acls = map[string][]zk.ACL{
	"":          zk.WorldACL(zk.PermAll),
	"empty":     nil,
	"read":      zk.WorldACL(zk.PermRead),
	"write":     zk.WorldACL(zk.PermWrite),
	"create":    zk.WorldACL(zk.PermCreate),
	"delete":    zk.WorldACL(zk.PermDelete),
	"admin":     zk.WorldACL(zk.PermAdmin),
	"none":      zk.WorldACL(0),
	"noread":    zk.WorldACL(zk.PermAll &^ zk.PermRead),
	"auth":      zk.AuthACL(zk.PermAll),
	"digest":    zk.DigestACL(zk.PermAll, "u1", "p1"),
	"both":      append(zk.WorldACL(zk.PermRead), zk.DigestACL(zk.PermAll, "u1", "p1")...),
	"double":    append(zk.WorldACL(zk.PermAll), zk.WorldACL(zk.PermAll)...),
	"someone":   {{Perms: zk.PermAll, Scheme: "world", ID: "someone"}},
	"unknown":   {{Perms: zk.PermAll, Scheme: "nonsense", ID: "x"}},
	"baddigest": {{Perms: zk.PermAll, Scheme: "digest", ID: "nocolon"}},
	"ip":        {{Perms: zk.PermAll, Scheme: "ip", ID: "127.0.0.0/8"}},
	"otherip":   {{Perms: zk.PermAll, Scheme: "ip", ID: "10.0.0.1"}},
	"badip":     {{Perms: zk.PermAll, Scheme: "ip", ID: "localhost"}},
}

// optionSet is words and key=value pairs.
type optionSet map[string]string

func options(args string) optionSet {
	o := optionSet{}
	for word := range strings.FieldsSeq(args) {
		k, v, _ := strings.Cut(word, "=")
		o[k] = v
	}
	return o
}

func (o optionSet) has(name string) bool { _, ok := o[name]; return ok }

func (o optionSet) number(name string, other int64) int64 {
	if n, err := strconv.ParseInt(o[name], 0, 64); err == nil {
		return n
	}
	return other
}
