package framework

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/gocurator/curator/retry"
)

// circuitBreaker hides a flapping connection from the listeners. The first loss is passed on and opens the circuit.
// While the circuit is open only a first Lost is passed on. The circuit closes after a pause of the policy that ends
// with a connection, or after the last pause. Then the current state is passed on, if it differs from the last one that
// was. In Java: CircuitBreakingConnectionStateListener.
//
// stateChanged and check run on the goroutine of the state listeners.
type circuitBreaker struct {
	policy retry.Policy
	pass   func(ConnectionState)
	queue  func(fn func()) // runs fn on the goroutine of the state listeners

	schedule  backoff.BackOff // the pauses of the open circuit; nil if it is closed
	last      ConnectionState // the current state
	published ConnectionState // the last state that listeners got
	lostSent  bool            // listeners got Lost since the circuit was opened

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (b *circuitBreaker) stateChanged(s ConnectionState) {
	switch {
	case b.schedule == nil:
		if !s.IsConnected() {
			b.open(s)
		}
		b.publish(s)
	case s == Lost && !b.lostSent:
		b.lostSent, b.last = true, s
		b.publish(s)
	default:
		b.last = s
	}
}

func (b *circuitBreaker) publish(s ConnectionState) {
	b.published = s
	b.pass(s)
}

func (b *circuitBreaker) open(s ConnectionState) {
	b.schedule = b.policy.NewBackOff()
	b.last, b.lostSent = s, s == Lost
	if !b.wait() {
		b.schedule = nil
	}
}

// wait sets the timer for the next check. It returns false if the policy has no more pauses.
func (b *circuitBreaker) wait() bool {
	pause := b.schedule.NextBackOff()
	if pause == backoff.Stop {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		b.timer = time.AfterFunc(pause, func() { b.queue(b.check) })
	}
	return true
}

// check closes the circuit if there is a connection or no further pause.
func (b *circuitBreaker) check() {
	if !b.last.IsConnected() && b.wait() {
		return
	}
	b.schedule = nil
	if b.last != b.published {
		b.publish(b.last)
	}
}

func (b *circuitBreaker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.timer != nil {
		b.timer.Stop()
	}
}

// WithCircuitBreaker passes the connection states on to listeners through a circuit breaker: with a flapping connection
// they get the loss, and then nothing but a first Lost until the connection stands at the end of one of the pauses of
// p. In Java: ConnectionStateListenerManagerFactory.circuitBreaking.
func WithCircuitBreaker(p retry.Policy) Option { return option(func(c *config) { c.breaker = p }) }
