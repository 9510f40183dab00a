package zkserver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// The four-letter words with numbers: srvr, stat, mntr, cons, and those that reset them.

func (m *Member) role() string {
	switch {
	case m.state == stateReadOnly:
		return "read-only"
	case m.service.standalone():
		return "standalone"
	case m.leader == m:
		return "leader"
	case m.observes():
		return "observer"
	}
	return "follower"
}

func (m *Member) writeServer(b *strings.Builder) {
	m.writeVersion(b)
	m.writeCounters(b)
}

func (m *Member) writeStat(b *strings.Builder) {
	m.writeVersion(b)
	b.WriteString("Clients:\n")
	for _, c := range m.connections() {
		fmt.Fprintf(b, " %s)\n", c.summary())
	}
	b.WriteByte('\n')
	m.writeCounters(b)
}

func (m *Member) writeVersion(b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s\n", m.service.config.Version.build())
	if m.state == stateReadOnly {
		b.WriteString("READ-ONLY mode; serving only read-only clients\n")
	}
}

func (m *Member) writeCounters(b *strings.Builder) {
	fmt.Fprintf(b, "Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\n"+
		"Zxid: %#x\nMode: %s\nNode count: %d\n",
		m.received, m.sent, len(m.conns), m.tree.applied, m.role(), m.nodeCount())
	if m.role() == "leader" {
		b.WriteString("Proposal sizes last/min/max: -1/-1/-1\n") // as before the first proposal: there are none in memory
	}
}

// nodeCount counts the nodes as Apache ZooKeeper does, which counts its root twice.
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
	line("version", m.service.config.Version.build())
	line("server_state", m.role())
	line("uptime", time.Since(m.service.began).Milliseconds())
	line("avg_latency", "0.0")
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
	if !m.service.standalone() {
		m.writeQuorum(line)
	}
}

// writeQuorum writes what a member of an ensemble reports in addition to a standalone server.
func (m *Member) writeQuorum(line func(key string, value any)) {
	line("quorum_size", m.service.ensemble.voters())
	switch m.role() {
	case "leader":
		line("peer_state", "leading - broadcast")
		followers, nonVoting, observers := 0, 0, 0
		for _, other := range m.service.members {
			switch {
			case !other.serving() || other == m:
			case other.observes():
				observers++
			case other.votes():
				followers++
			default:
				followers++
				nonVoting++
			}
		}
		line("learners", followers+observers)
		line("synced_followers", followers)
		line("synced_non_voting_followers", nonVoting)
		line("synced_observers", observers)
		line("pending_syncs", 0)
	case "follower":
		line("peer_state", "following - broadcast")
	case "observer":
		line("peer_state", "observing - broadcast")
	}
}

func (m *Member) writeConnections(b *strings.Builder) {
	for _, c := range m.connections() {
		fmt.Fprintf(b, " %s", c.summary())
		if c.session != nil {
			fmt.Fprintf(b, ",sid=%#x,lop=%s,est=%d,to=%d,lcxid=%#x,lzxid=%#x,lresp=%d,llat=0,minlat=0,avglat=0,maxlat=0",
				c.session.id, c.last.op, c.began.UnixMilli(), c.session.timeout.Milliseconds(),
				uint32(c.last.xid), c.last.zxid, c.last.at.Sub(m.service.began).Milliseconds())
		}
		b.WriteString(")\n")
	}
	b.WriteByte('\n')
}

// address returns the name of a connection. The port is its number, because connections in memory have none.
func (c *conn) address() string { return fmt.Sprintf("/%s:%d", loopback, c.number) }

// summary returns the line of a connection in stat, and the beginning of its line in cons, without the parenthesis at
// the end.
func (c *conn) summary() string {
	interested := 0 // 1 if the server reads more from it: not from the connection of a four-letter word
	if c.session != nil {
		interested = 1
	}
	return fmt.Sprintf("%s[%d](queued=0,recved=%d,sent=%d", c.address(), interested, c.received, c.sent)
}

// lastAnswer has the fields of cons for the last answer on a connection.
type lastAnswer struct {
	op   string
	xid  int32
	zxid int64
	at   time.Time
}

// noteAnswer records the last answer for cons. A ping, which has a negative xid, does not replace the xid.
func (c *conn) noteAnswer(h jute.ReplyHeader, op string) {
	c.last.op, c.last.zxid, c.last.at = op, c.member.tree.applied, time.Now()
	if h.Xid >= 0 {
		c.last.xid = h.Xid
	}
}

// operationNames are the operations in cons.
var operationNames = map[jute.Op]string{
	jute.OpPing: "PING", jute.OpMulti: "MULT", jute.OpMultiRead: "MLTR",
	jute.OpCreate: "CREA", jute.OpCreate2: "CREA", jute.OpCreateContainer: "CREA", jute.OpCreateTTL: "CREA",
	jute.OpDelete: "DELE", jute.OpSetData: "SETD", jute.OpReconfig: "RECO", jute.OpSetACL: "SETA",
	jute.OpCloseSession: "CLOS", jute.OpSync: "SYNC", jute.OpCheck: "CHEC", jute.OpExists: "EXIS",
	jute.OpGetData: "GETD", jute.OpSetWatches: "SETW", jute.OpSetWatches2: "STW2", jute.OpAddWatch: "ADDW",
	jute.OpGetACL: "GETA", jute.OpGetChildren: "GETC", jute.OpGetChildren2: "GETC",
	jute.OpGetAllChildrenNumber: "GETACN", jute.OpCheckWatches: "CHKW", jute.OpRemoveWatches: "REMW",
	jute.OpWhoAmI: "HOMI", jute.OpGetEphemerals: "GETE",
}

const (
	sessionBegun = "SESS" // name of a handshake
	noOperation  = "NA"   // name of a refused write
)

// operationName is the name of an operation in cons, after an answer with the code.
func operationName(op jute.Op, code jute.Code) string {
	name, ok := operationNames[op]
	if !ok || code != jute.CodeOK && isWrite(op) && op != jute.OpMulti {
		return noOperation
	}
	return name
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

// connections returns the connections in the order in which they were accepted.
func (m *Member) connections() []*conn {
	conns := make([]*conn, 0, len(m.conns))
	for c := range m.conns {
		conns = append(conns, c)
	}
	slices.SortFunc(conns, func(a, b *conn) int { return int(a.number - b.number) })
	return conns
}
