package zkserver

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// commands are the four letter words: what people and monitors ask on a connection in place of a handshake.
var commands = map[string]func(*Member, *strings.Builder){
	"ruok": func(_ *Member, b *strings.Builder) { b.WriteString("imok") },
	"isro": (*Member).writeReadOnly,
	"srvr": (*Member).writeServer,
	"stat": (*Member).writeStat,
	"mntr": (*Member).writeMonitor,
	"conf": (*Member).writeConfig,
	"cons": (*Member).writeConnections,
	"dump": (*Member).writeSessions,
	"envi": writeEnvironment,
	"wchs": (*Member).writeWatchSummary,
	"wchc": (*Member).writeWatchesByConnection,
	"wchp": (*Member).writeWatchesByPath,
	"crst": (*Member).resetConnections,
	"srst": (*Member).resetServer,
}

// notServing is what a member without a quorum says to most words.
const notServing = "This ZooKeeper instance is not currently serving requests\n"

// command answers a four letter word and tells whether it was one.
func (c *conn) command(word string) bool {
	write, ok := commands[word]
	if !ok {
		return false
	}
	s := c.member.service
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	switch {
	case c.member.open() || word == "ruok" || word == "envi":
		write(c.member, &b)
	case word == "isro":
		b.WriteString("null")
	default:
		b.WriteString(notServing)
	}
	c.out.addRaw([]byte(b.String()))
	return true
}

func (m *Member) role() string {
	switch {
	case m.state == stateReadOnly:
		return "read-only"
	case m.service.standalone():
		return "standalone"
	case m.service.leader == m:
		return "leader"
	}
	return "follower"
}

func (m *Member) writeReadOnly(b *strings.Builder) {
	if m.state == stateReadOnly {
		b.WriteString("ro")
	} else {
		b.WriteString("rw")
	}
}

func (m *Member) writeServer(b *strings.Builder) {
	m.writeVersion(b)
	m.writeCounters(b)
}

func (m *Member) writeStat(b *strings.Builder) {
	m.writeVersion(b)
	b.WriteString("Clients:\n")
	for _, c := range m.connections() {
		fmt.Fprintf(b, " /%s:%d[1](queued=0,recved=%d,sent=%d)\n", loopback, c.number, c.received, c.sent)
	}
	b.WriteByte('\n')
	m.writeCounters(b)
}

func (m *Member) writeVersion(b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s-curatortest, built in memory\n", m.service.config.Version)
	if m.state == stateReadOnly {
		b.WriteString("READ-ONLY mode; serving only read-only clients\n")
	}
}

func (m *Member) writeCounters(b *strings.Builder) {
	fmt.Fprintf(b, "Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\nZxid: %#x\nMode: %s\nNode count: %d\n",
		m.received, m.sent, len(m.conns), m.tree.applied, m.role(), m.nodeCount())
}

// nodeCount counts as Apache ZooKeeper does, which has its root twice.
func (m *Member) nodeCount() int { return len(m.tree.nodes) + 1 }

func (m *Member) writeMonitor(b *strings.Builder) {
	ephemerals := 0
	for _, paths := range m.tree.ephemerals {
		ephemerals += len(paths)
	}
	size := 0
	for path, n := range m.tree.nodes {
		size += len(path) + len(n.data)
	}
	line := func(key string, value any) { fmt.Fprintf(b, "zk_%s\t%v\n", key, value) }
	line("version", m.service.config.Version)
	line("server_state", m.role())
	line("avg_latency", 0.0)
	line("max_latency", 0)
	line("min_latency", 0)
	line("packets_received", m.received)
	line("packets_sent", m.sent)
	line("num_alive_connections", len(m.conns))
	line("outstanding_requests", 0)
	line("znode_count", m.nodeCount())
	line("watch_count", m.dataWatches.count()+m.childWatches.count())
	line("ephemerals_count", ephemerals)
	line("approximate_data_size", size)
	line("global_sessions", len(m.service.sessions))
	line("local_sessions", len(m.local))
}

// id is the number of the server, 0 of one that stands alone.
func (m *Member) id() int {
	if m.service.standalone() {
		return 0
	}
	return m.number
}

func (m *Member) writeConfig(b *strings.Builder) {
	c := &m.service.config
	fmt.Fprintf(b, "clientPort=0\nsecureClientPort=-1\ndataDir=memory\ndataLogDir=memory\ntickTime=%d\nmaxClientCnxns=0\n",
		c.Tick.Milliseconds())
	fmt.Fprintf(b, "minSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=%d\n",
		c.MinSessionTimeout.Milliseconds(), c.MaxSessionTimeout.Milliseconds(), m.id())
}

func (m *Member) writeConnections(b *strings.Builder) {
	for _, c := range m.connections() {
		fmt.Fprintf(b, " /%s:%d[1](queued=0,recved=%d,sent=%d", loopback, c.number, c.received, c.sent)
		if c.session != nil {
			fmt.Fprintf(b, ",sid=%#x,to=%d,lcxid=%#x,lzxid=%#x",
				c.session.id, c.session.timeout.Milliseconds(), uint32(c.lastXid), m.tree.applied)
		}
		b.WriteString(")\n")
	}
	b.WriteByte('\n')
}

func (m *Member) writeSessions(b *strings.Builder) {
	ids := sortedIDs(m.service.sessions)
	fmt.Fprintf(b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(ids), len(ids))
	for _, id := range ids {
		fmt.Fprintf(b, "1 expire at %s:\n\t%#x\n", m.service.sessions[id].expires.UTC().Format(time.UnixDate), id)
	}
	fmt.Fprintf(b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(m.tree.ephemerals))
	for _, id := range sortedIDs(m.tree.ephemerals) {
		fmt.Fprintf(b, "%#x:\n", id)
		for _, path := range sortedKeys(m.tree.ephemerals[id]) {
			fmt.Fprintf(b, "\t%s\n", path)
		}
	}
	fmt.Fprintf(b, "Connections dump:\nConnections Sets (%d)/(%d):\n", len(m.conns), len(m.conns))
}

func writeEnvironment(_ *Member, b *strings.Builder) {
	fmt.Fprintf(b, "Environment:\nhost.name=localhost\ngo.version=%s\nos.name=%s\nos.arch=%s\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// The words about watches speak of those for data alone.

func (m *Member) writeWatchSummary(b *strings.Builder) {
	t := m.dataWatches
	fmt.Fprintf(b, "%d connections watching %d paths\nTotal watches:%d\n", len(t.byConn), len(t.byPath), t.count())
}

func (m *Member) writeWatchesByConnection(b *strings.Builder) {
	for _, c := range m.connections() {
		if paths := m.dataWatches.byConn[c]; len(paths) > 0 {
			fmt.Fprintf(b, "%#x\n", c.session.id)
			for _, path := range sortedKeys(paths) {
				fmt.Fprintf(b, "\t%s\n", path)
			}
		}
	}
	b.WriteByte('\n')
}

func (m *Member) writeWatchesByPath(b *strings.Builder) {
	paths := map[string]struct{}{}
	for path := range m.dataWatches.byPath {
		paths[path] = struct{}{}
	}
	for _, path := range sortedKeys(paths) {
		fmt.Fprintf(b, "%s\n", path)
		for _, c := range m.connections() {
			if m.dataWatches.byPath[path][c] != 0 {
				fmt.Fprintf(b, "\t%#x\n", c.session.id)
			}
		}
	}
	b.WriteByte('\n')
}

func (m *Member) resetConnections(b *strings.Builder) {
	for c := range m.conns {
		c.received, c.sent = 0, 0
	}
	b.WriteString("Connection stats reset.\n")
}

func (m *Member) resetServer(b *strings.Builder) {
	m.received, m.sent = 0, 0
	b.WriteString("Server stats reset.\n")
}

// connections gives the connections in the order they came.
func (m *Member) connections() []*conn {
	conns := make([]*conn, 0, len(m.conns))
	for c := range m.conns {
		conns = append(conns, c)
	}
	slices.SortFunc(conns, func(a, b *conn) int { return int(a.number - b.number) })
	return conns
}
