package curatortest

import (
	"slices"
	"sync"
)

// TraceEntry is a request, a reply or a watch event that came to a [Proxy].
type TraceEntry struct {
	SessionID int64  // 0 as long as the handshake for a new session is not answered
	Xid       int32  // 0 for the handshake, negative for what the protocol numbers so
	Op        string // as in Rule.Ops; of a reply, its request's
	Path      string // of a multi, its paths joined by commas; empty if there is none, and for setWatches
	Reply     bool   // from the server: a reply or a watch event
	Code      int32  // of a reply; SESSIONEXPIRED (-112) in a handshake for a session that is gone
	Zxid      int64  // of a reply
}

// traceSize is how many entries a trace keeps.
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

// Trace returns the last 10,000 requests, replies and watch events in the order they came, pings and what
// fell into a black hole left out. A request stands there even if a rule kept it from the server, a reply
// even if the client never got it.
func (p *Proxy) Trace() []TraceEntry {
	t := &p.trace
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Concat(t.entries[t.next:], t.entries[:t.next])
}

// ResetTrace empties the trace.
func (p *Proxy) ResetTrace() {
	t := &p.trace
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.next = t.entries[:0], 0
}
