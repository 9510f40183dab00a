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

// statePublisher hands states to listeners, one at a time and in order. It has a goroutine of its own, so that a slow
// background callback does not delay the report of a lost session.
type statePublisher struct {
	listeners listeners.Set[ConnectionState]
	ctx       context.Context                 // context of the listeners
	before    func(stateChange)               // gets each state before the listeners
	guard     func(message string, fn func()) // calls code of the program
	policy    retry.Policy                    // policy of the circuit breaker; nil without one
	queue     *dispatch.Queue
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
	p.queue = dispatch.Start()
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

func (p *statePublisher) push(fn func()) { p.queue.Push(dispatch.Func(fn)) }

func (p *statePublisher) notify(s ConnectionState) {
	p.listeners.Notify(p.ctx, s, func(fn func()) {
		if !p.over.Load() {
			p.guard("connection state listener", fn)
		}
	})
}

// close ends the publisher, and reports whether all states were delivered within limit. The others are never delivered:
// a listener behind one that blocks would get the state of a connection that the closed client does not have.
func (p *statePublisher) close(limit time.Duration) bool {
	if p.breaker != nil {
		p.breaker.stop()
	}
	delivered := p.queue.Close(limit)
	p.over.Store(!delivered)
	return delivered
}
