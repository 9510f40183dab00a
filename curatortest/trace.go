package curatortest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gocurator/curator/internal/jute"
)

// TraceEntry is a request, a reply or a watch event on its way.
type TraceEntry struct {
	Connection int64  // its number, as in Rule.Connection
	SessionID  int64  // 0 until the handshake for a new session is answered
	Xid        int32  // 0 for the handshake, negative for pings and the like, as in the protocol
	Op         string // as in Rule.Ops; for a reply, that of its request; empty for an unreadable frame
	Path       string // of a multi, its paths joined by commas; empty if there is none, and for setWatches
	Reply      bool   // from the server: a reply or a watch event
	Code       int32  // of a reply; SESSIONEXPIRED (-112) in a handshake for a session that is gone
	Zxid       int64  // of a reply
}

// String returns the entry as one line: connection, session and xid, then the request or the reply:
//
//	#1 0x100004a5e8b0000 7 > create2 /a
//	#1 0x100004a5e8b0000 7 < create2 /a NODEEXISTS zxid 0x1f
func (e TraceEntry) String() string {
	way, op := '>', e.Op
	if e.Reply {
		way = '<'
	}
	if op == opNone {
		op = "?"
	}
	b := fmt.Appendf(nil, "#%d %#x %d %c %s", e.Connection, e.SessionID, e.Xid, way, op)
	if e.Path != "" {
		b = append(append(b, ' '), e.Path...)
	}
	if e.Reply && e.Op != opNotification {
		b = append(append(b, ' '), jute.Code(e.Code).String()...)
	}
	if e.Reply && e.Zxid > 0 {
		b = fmt.Appendf(b, " zxid %#x", e.Zxid)
	}
	return string(b)
}

// FormatTrace returns the entries line by line, to print them when a test fails.
func FormatTrace(entries []TraceEntry) string {
	var b strings.Builder
	for i, e := range entries {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.String())
	}
	return b.String()
}

// traceSize is the number of entries of a trace.
const traceSize = 10_000

// trace is a ring of the last entries.
type trace struct {
	mu      sync.Mutex
	entries []TraceEntry
	next    int // the oldest entry, once the ring is full
}

func (t *trace) add(e TraceEntry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.entries) < traceSize {
		t.entries = append(t.entries, e)
		return
	}
	t.entries[t.next] = e
	t.next = (t.next + 1) % traceSize
}

// Trace returns the last 10,000 requests, replies and watch events in their order, without pings and without those in a
// black hole. It has requests that a rule kept from the server, and replies that the client never got.
func (f *Faults) Trace() []TraceEntry {
	t := &f.trace
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Concat(t.entries[t.next:], t.entries[:t.next])
}

// ResetTrace empties the trace.
func (f *Faults) ResetTrace() {
	t := &f.trace
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.next = t.entries[:0], 0
}
