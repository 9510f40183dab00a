package framework

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/retry"
)

// statePublisher hands states to listeners, one at a time and in order. It has goroutines of its own, so that a slow
// background callback does not delay the report of a lost session, and a slow listener of the program not that to the
// library.
type statePublisher struct {
	library   listeners.Set[ConnectionState] // of the library, which get each state before those of the program
	listeners listeners.Set[ConnectionState]
	ctx       context.Context                 // context of the listeners
	before    func(stateChange)               // gets each state before the listeners
	guard     func(message string, fn func()) // calls code of the program
	policy    retry.Policy                    // policy of the circuit breaker; nil without one
	lanes     *dispatch.Lanes
	breaker   *circuitBreaker // nil means none
	over      atomic.Bool     // close has timed out: no further listener is called
}

// stateChange is a new state with its time and attributes for the log.
type stateChange struct {
	state ConnectionState
	at    time.Time
	attrs []slog.Attr
}

func newStatePublisher(
	ctx context.Context, breaker retry.Policy, before func(stateChange), guard func(string, func()),
) *statePublisher {
	return &statePublisher{ctx: ctx, before: before, guard: guard, policy: breaker}
}

// start may be called again after close: a start of the client that fails may be tried again.
func (p *statePublisher) start() {
	p.lanes = dispatch.StartLanes()
	if p.policy != nil {
		p.breaker = &circuitBreaker{policy: p.policy, pass: p.notify, queue: p.push}
	}
}

// publish queues a state for the listeners. It does not block.
func (p *statePublisher) publish(s ConnectionState, attrs ...slog.Attr) {
	at := time.Now()
	p.push(func() {
		p.before(stateChange{s, at, attrs})
		if p.breaker != nil {
			p.breaker.stateChanged(s)
			return
		}
		p.notify(s)
	})
}

func (p *statePublisher) push(fn func()) { p.lanes.PushLibrary(dispatch.Func(fn)) }

// notify runs in the lane of the library.
func (p *statePublisher) notify(s ConnectionState) {
	p.library.Notify(p.ctx, s, func(fn func()) { p.guard("connection state listener", fn) })
	if p.listeners.Len() > 0 { // a later one gets later states only
		p.lanes.PushProgram(dispatch.Func(func() { p.notifyProgram(s) }))
	}
}

func (p *statePublisher) notifyProgram(s ConnectionState) {
	p.listeners.Notify(p.ctx, s, func(fn func()) {
		if !p.over.Load() {
			p.guard("connection state listener", fn)
		}
	})
}

// count returns the number of listeners.
func (p *statePublisher) count() int { return p.library.Len() + p.listeners.Len() }

// close ends the publisher, and reports whether all states were delivered within limit. The others are never delivered:
// a listener behind one that blocks would get the state of a connection that the closed client does not have.
func (p *statePublisher) close(limit time.Duration) bool {
	if p.breaker != nil {
		p.breaker.stop()
	}
	delivered := p.lanes.Close(limit)
	p.over.Store(!delivered)
	return delivered
}
