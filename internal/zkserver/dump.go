package zkserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// writeDump writes the sessions, their ephemeral nodes and the connections, with the times when they expire.
func (m *Member) writeDump(b *strings.Builder) {
	b.WriteString("SessionTracker dump:\n")
	if m.service.standalone() || m.leader == m {
		sessions := expirySets{}
		for _, id := range sortedIDs(m.service.sessions) {
			sessions.add(m.service.sessions[id].expires, fmt.Sprintf("%#x", id))
		}
		b.WriteString("Session ")
		sessions.write(b)
	} else {
		fmt.Fprintf(b, "Global Sessions(%d):\n", len(m.service.sessions))
		for _, id := range sortedIDs(m.service.sessions) {
			fmt.Fprintf(b, "%#x\t%dms\n", id, m.service.sessions[id].timeout.Milliseconds())
		}
	}
	fmt.Fprintf(b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(m.tree.ephemerals))
	for _, id := range sortedIDs(m.tree.ephemerals) {
		fmt.Fprintf(b, "%#x:\n", id)
		for _, path := range sortedKeys(m.tree.ephemerals[id]) {
			fmt.Fprintf(b, "\t%s\n", path)
		}
	}
	connections := expirySets{}
	for _, c := range m.connections() {
		var id int64
		if c.session != nil {
			id = c.session.id
		}
		connections.add(c.expires(), fmt.Sprintf("ip: %s sessionId: %#x", c.address(), id))
	}
	b.WriteString("Connections dump:\nConnections ")
	connections.write(b)
}

// idleLimit is the time for which Apache ZooKeeper keeps a connection without a session. It ends idle connections, also
// those with a session, at multiples of it.
const idleLimit = 10 * time.Second

// expires returns the time when Apache ZooKeeper ends the connection if it receives nothing. The servers here leave the
// connection open until its session ends.
func (c *conn) expires() time.Time {
	limit := idleLimit
	if c.session != nil {
		limit = c.session.timeout
	}
	return c.lastFrame.Add(limit).Truncate(idleLimit).Add(idleLimit)
}

// expirySets groups the expiring entries by their time.
type expirySets map[time.Time][]string

func (s expirySets) add(at time.Time, what string) {
	at = at.Round(0).UTC() // without the monotonic clock, so that equal times are equal keys
	s[at] = append(s[at], what)
}

// javaDate is Java's format of a time.
const javaDate = "Mon Jan 02 15:04:05 MST 2006"

func (s expirySets) write(b *strings.Builder) {
	elements := 0
	for _, set := range s {
		elements += len(set)
	}
	fmt.Fprintf(b, "Sets (%d)/(%d):\n", len(s), elements)
	for _, at := range slices.SortedFunc(maps.Keys(s), time.Time.Compare) {
		fmt.Fprintf(b, "%d expire at %s:\n", len(s[at]), at.Format(javaDate))
		for _, what := range s[at] {
			fmt.Fprintf(b, "\t%s\n", what)
		}
	}
}
