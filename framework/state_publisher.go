package framework

import (
	"time"

	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/retry"
)

// statePublisher hands states to listeners, one at a time and in order, on a goroutine of its own: a slow background
// callback must not keep the news of a lost session from anybody.
type statePublisher struct {
	listeners listeners.Set[ConnectionState]
	before    func(ConnectionState, time.Time) // gets every state first, with its time
	guard     func(message string, fn func())  // calls the user's code
	policy    retry.Policy                     // of the breaker, nil: none
	queue     *dispatch.Queue
	breaker   *circuitBreaker // nil: none
}

func newStatePublisher(
	breaker retry.Policy, before func(ConnectionState, time.Time), guard func(string, func()),
) *statePublisher {
	return &statePublisher{before: before, guard: guard, policy: breaker}
}

// start may be called again after close: a start of the client that fails may be tried again.
func (p *statePublisher) start() {
	p.queue = dispatch.Start()
	if p.policy != nil {
		p.breaker = &circuitBreaker{policy: p.policy, pass: p.notify, queue: p.push}
	}
}

// publish must not block.
func (p *statePublisher) publish(s ConnectionState) {
	at := time.Now()
	p.push(func() {
		p.before(s, at)
		if p.breaker != nil {
			p.breaker.stateChanged(s)
			return
		}
		p.notify(s)
	})
}

func (p *statePublisher) push(fn func()) { p.queue.Push(dispatch.Func(fn)) }

func (p *statePublisher) notify(s ConnectionState) {
	p.listeners.Notify(exec.Root, s, func(fn func()) { p.guard("connection state listener", fn) })
}

// close reports whether all that was published was delivered within limit.
func (p *statePublisher) close(limit time.Duration) bool {
	if p.breaker != nil {
		p.breaker.stop()
	}
	return p.queue.Close(limit)
}
