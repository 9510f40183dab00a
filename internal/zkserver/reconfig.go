package zkserver

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// The reconfiguration of an ensemble: its members by the text of its configuration, as the server of Java reads and
// writes it.

// peer is a server of the configuration. It need not be a member of the service.
type peer struct {
	id       int64
	spec     string // what the configuration says of it; empty for a member without an address
	quorum   string // its address for the others
	client   bool   // it has an address for clients
	observes bool
	places   []string // its addresses beyond this machine
}

// ensemble is a configuration. It is replaced, never changed.
type ensemble struct {
	peers   []peer
	version int64
}

// firstEnsemble returns the configuration of all members. One that can be changed gets the version of the first epoch.
func (c *Config) firstEnsemble() *ensemble {
	e := &ensemble{}
	if c.Reconfig && !c.standalone() {
		e.version = 1 << epochShift
	}
	for i := range c.Members {
		p := peer{id: int64(i + 1)}
		if i < len(c.Addresses) {
			a := &c.Addresses[i]
			p.spec, p.client = a.String(), true
			p.quorum = net.JoinHostPort(a.Host, strconv.Itoa(a.QuorumPort))
		}
		e.peers = append(e.peers, p)
	}
	e.sort(minBuckets)
	return e
}

// text returns the data of /zookeeper/config.
func (e *ensemble) text() []byte {
	var b strings.Builder
	for _, p := range e.peers {
		if p.spec != "" {
			fmt.Fprintf(&b, "server.%d=%s\n", p.id, p.spec)
		}
	}
	fmt.Fprintf(&b, "version=%x", e.version)
	return []byte(b.String())
}

// minBuckets is the number of buckets of an empty hash table of Java.
const minBuckets = 16

// sort puts the servers in the order of a hash table of Java that has had so many buckets.
func (e *ensemble) sort(buckets int) {
	for buckets*3/4 < len(e.peers) {
		buckets *= 2
	}
	bucket := func(p peer) uint32 {
		hash := uint32(p.id) ^ uint32(p.id>>32)
		return (hash ^ hash>>16) & uint32(buckets-1)
	}
	slices.SortStableFunc(e.peers, func(a, b peer) int { return cmp.Compare(bucket(a), bucket(b)) })
}

func (e *ensemble) get(id int64) *peer {
	if i := slices.IndexFunc(e.peers, func(p peer) bool { return p.id == id }); i >= 0 {
		return &e.peers[i]
	}
	return nil
}

// votes reports whether a server has a vote.
func (e *ensemble) votes(id int64) bool {
	p := e.get(id)
	return p != nil && !p.observes
}

// observes reports whether a server is an observer. One that is in no configuration is a follower without a vote.
func (e *ensemble) observes(id int64) bool {
	p := e.get(id)
	return p != nil && p.observes
}

func (e *ensemble) voters() int {
	n := 0
	for _, p := range e.peers {
		if !p.observes {
			n++
		}
	}
	return n
}

func (m *Member) votes() bool { return m.service.ensemble.votes(int64(m.number)) }

func (m *Member) observes() bool { return m.service.ensemble.observes(int64(m.number)) }

// reconfig adds a reconfiguration, in the order of the checks of Apache ZooKeeper. The first check has passed: the
// session is alive.
func (s *Service) reconfig(p *proposal, r *jute.Reconfig) (*ensemble, jute.Code) {
	switch {
	case !s.config.Reconfig:
		return nil, jute.CodeReconfigDisabled
	case s.standalone():
		return nil, jute.CodeUnimplemented
	case r.ConfigID != -1 && r.ConfigID != s.ensemble.version:
		return nil, jute.CodeBadVersion
	}
	var next *ensemble
	var code jute.Code
	if r.NewMembers != "" {
		next, code = parseEnsemble(r.NewMembers)
	} else {
		next, code = s.ensemble.changed(r.Joining, r.Leaving)
	}
	switch {
	case code != jute.CodeOK:
		return nil, code
	case next.voters() == 0:
		return nil, jute.CodeBadArguments
	case !s.synced(next):
		return nil, jute.CodeNewConfigNoQuorum
	case !p.may(p.planned(configPath), zk.PermWrite):
		return nil, jute.CodeNoAuth
	}
	next.version = s.zxid + 1
	p.change(change{op: jute.OpReconfig, path: configPath, data: next.text(), version: -1})
	return next, jute.CodeOK
}

// read returns the configuration as a server has it that has read its text.
func (e *ensemble) read() *ensemble {
	r := &ensemble{peers: slices.Clone(e.peers), version: e.version}
	slices.SortFunc(r.peers, func(a, b peer) int { return cmp.Compare(a.id, b.id) })
	r.sort(minBuckets)
	return r
}

// synced reports whether a majority of the new configuration follows the leader. Observers do not count.
func (s *Service) synced(next *ensemble) bool {
	n := 0
	for _, m := range s.members {
		if m.serving() && m.leader == s.leader && !m.observes() && next.votes(int64(m.number)) {
			n++
		}
	}
	return n > next.voters()/2
}

// activate makes a configuration the current one. A leader that has no vote in it, or another address, leads no more. A
// member whose role has changed begins anew. Others notice nothing, those that have left included: they follow on
// without a vote.
func (s *Service) activate(next *ensemble) {
	last, leader := s.ensemble, s.leader
	s.ensemble = next
	before, after := last.get(int64(leader.number)), next.get(int64(leader.number))
	deposed := !leader.votes() || before != nil && before.quorum != after.quorum
	if deposed {
		s.ensemble = next.read()
	}
	for _, m := range s.members {
		if deposed || m.observes() != last.observes(int64(m.number)) {
			m.disconnectSoon()
			m.leave(s.idle())
		}
	}
	s.elect()
}

// disconnectSoon ends all connections once what was sent has arrived.
func (m *Member) disconnectSoon() {
	for c := range m.conns {
		c.forget()
		c.out.finish()
	}
	clear(m.local)
}

// changed returns the configuration with other servers: joining are those that come or change, leaving the ids of those
// that go.
func (e *ensemble) changed(joining, leaving string) (*ensemble, jute.Code) {
	next := &ensemble{peers: slices.Clone(e.peers)}
	buckets := minBuckets
	if n := len(e.peers); n > 0 { // the size of a copy of a table of Java
		for buckets = 1; buckets < n*4/3+1; {
			buckets *= 2
		}
	}
	remove := func(id int64) {
		next.peers = slices.DeleteFunc(next.peers, func(p peer) bool { return p.id == id })
	}
	for _, text := range elements(leaving, ",") {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, jute.CodeMarshallingError
		}
		remove(id)
	}
	for _, text := range elements(joining, ",") {
		parts := elements(text, "=")
		if len(parts) != 2 {
			return nil, jute.CodeBadArguments
		}
		id, err := strconv.ParseInt(parts[0][strings.LastIndexByte(parts[0], '.')+1:], 10, 64)
		if err != nil {
			return nil, jute.CodeMarshallingError
		}
		p, code := parsePeer(id, parts[1])
		switch {
		case code != jute.CodeOK:
			return nil, code
		case !p.client:
			return nil, jute.CodeBadArguments
		}
		for _, other := range next.peers {
			if other.id != id && slices.ContainsFunc(other.places, func(s string) bool { return slices.Contains(p.places, s) }) {
				return nil, jute.CodeBadArguments
			}
		}
		remove(id)
		next.peers = append(next.peers, p)
	}
	next.sort(buckets)
	return next, jute.CodeOK
}

// parseEnsemble reads a configuration, whose lines commas may separate, too. Groups and weights are refused.
func parseEnsemble(text string) (*ensemble, jute.Code) {
	const blanks = " \t\f\r"
	next := &ensemble{}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, ",", "\n"), "\n") {
		line = strings.TrimLeft(line, blanks)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		key, value := line, ""
		if end := strings.IndexAny(line, "=:"+blanks); end >= 0 {
			key = line[:end]
			value = strings.TrimLeft(line[end:], blanks)
			if value != "" && (value[0] == '=' || value[0] == ':') {
				value = strings.TrimLeft(value[1:], blanks)
			}
			value = strings.TrimRight(value, "\r")
		}
		number, isServer := strings.CutPrefix(key, "server.")
		switch {
		case key == "version":
			if _, err := strconv.ParseInt(value, 16, 64); err != nil {
				return nil, jute.CodeMarshallingError
			}
			continue
		case !isServer:
			return nil, jute.CodeBadArguments
		}
		id, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, jute.CodeMarshallingError
		}
		p, code := parsePeer(id, value)
		if code != jute.CodeOK {
			return nil, code
		}
		next.peers = slices.DeleteFunc(next.peers, func(other peer) bool { return other.id == id })
		next.peers = append(next.peers, p)
	}
	if next.voters() == 0 {
		return nil, jute.CodeMarshallingError
	}
	return next.read(), jute.CodeOK
}

// parsePeer reads "host:port:port[:role][;[host:]port]".
func parsePeer(id int64, text string) (peer, jute.Code) {
	p := peer{id: id}
	parts := splitJava(text, ";")
	if len(parts) == 0 {
		return p, jute.CodeMarshallingError
	}
	client := ""
	if len(parts) == 2 {
		fields, ok := hostAndPort(parts[1])
		if !ok || len(fields) == 0 || len(fields) > 2 {
			return p, jute.CodeBadArguments
		}
		host := "0.0.0.0"
		if len(fields) == 2 {
			host = fields[0]
		}
		address, code := p.address(host, fields[len(fields)-1])
		if code != jute.CodeOK {
			return p, code
		}
		client, p.client = ";"+address, true
	}
	fields, ok := hostAndPort(parts[0])
	if !ok || len(parts) > 2 || len(fields) < 3 || len(fields) > 4 || strings.Contains(parts[0], "|") {
		return p, jute.CodeBadArguments
	}
	quorum, code := p.address(fields[0], fields[1])
	if code != jute.CodeOK {
		return p, code
	}
	election, code := p.address(fields[0], fields[2])
	if code != jute.CodeOK {
		return p, code
	}
	port := election[strings.LastIndexByte(election, ':'):]
	role := "participant"
	if len(fields) == 4 {
		role = strings.ToLower(strings.TrimSpace(fields[3]))
	}
	if quorum == election || role != "participant" && role != "observer" {
		return p, jute.CodeBadArguments
	}
	p.quorum, p.observes = quorum, role == "observer"
	p.spec = quorum + port + ":" + role + client
	return p, jute.CodeOK
}

// address returns an address of a server, and takes note of one that two servers cannot have.
func (p *peer) address(host, port string) (string, jute.Code) {
	n, err := strconv.ParseInt(port, 10, 32)
	switch {
	case err != nil:
		return "", jute.CodeBadArguments
	case n < 0 || n > 0xffff:
		return "", jute.CodeMarshallingError
	}
	ip := net.ParseIP(host)
	if b := ip.To16(); ip != nil && ip.To4() == nil { // Java writes all of it
		groups := make([]string, net.IPv6len/2)
		for i := range groups {
			groups[i] = strconv.FormatUint(uint64(b[2*i])<<8|uint64(b[2*i+1]), 16)
		}
		host = strings.Join(groups, ":")
	}
	address := net.JoinHostPort(host, strconv.FormatInt(n, 10))
	if ip != nil && !ip.IsLoopback() && !ip.IsUnspecified() {
		p.places = append(p.places, address)
	}
	return address, jute.CodeOK
}

// hostAndPort splits an address at its colons, but not one of IPv6 in brackets.
func hostAndPort(text string) ([]string, bool) {
	if !strings.HasPrefix(text, "[") {
		return splitJava(text, ":"), true
	}
	host, rest, ok := strings.Cut(text[1:], "]")
	if !ok || rest == ":" {
		return nil, false
	}
	if rest == "" {
		return []string{host}, true
	}
	return append([]string{host}, splitJava(rest[1:], ":")...), true
}

// splitJava splits as Java does: without empty elements at the end, but for an empty text.
func splitJava(text, by string) []string {
	parts := strings.Split(text, by)
	for len(parts) > 0 && parts[len(parts)-1] == "" && text != "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// elements splits a list and leaves out what is blank.
func elements(text, by string) []string {
	var all []string
	for part := range strings.SplitSeq(text, by) {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// configuration returns the configuration of an ensemble, nil for a server that stands alone.
func (s *Service) configuration() *ensemble {
	if s.standalone() {
		return nil
	}
	return s.ensemble
}

// ID returns the number of the member, 0 for a server that stands alone.
func (m *Member) ID() int { return m.id() }

// Spec returns the line of the first configuration that describes the member, "" for a server that stands alone.
func (m *Member) Spec() string {
	if m.service.standalone() {
		return ""
	}
	return fmt.Sprintf("server.%d=%s", m.number, m.service.config.firstEnsemble().get(int64(m.number)).spec)
}
