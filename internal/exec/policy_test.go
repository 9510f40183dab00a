package exec_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// programmed is a policy of a program, which does what it wants when it is asked.
type programmed struct {
	pauses
	retryable func(err error) bool
	pause     func()
}

func (p programmed) Retryable(err error) bool {
	if p.retryable != nil {
		return p.retryable(err)
	}
	return p.pauses.Retryable(err)
}

func (p programmed) NewBackOff() backoff.BackOff { return &schedule{left: p.pauses, hook: p.pause} }

// refuse has the server answer requests for a path with an error, and all others at once.
func (f *fixture) refuse(path string, code jute.Code) {
	f.server.serve = func(p *peer, r *request) bool {
		if r.path() == path {
			p.answer(r, code)
		}
		return r.path() == path
	}
}

// A policy of the program that blocks holds back its own operation, no other one, not the reader, and not Stop.
func TestPolicyThatBlocksHoldsBackItsOwnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var blocked atomic.Int32
		f := start(t, programmed{pauses: everySecond(3), retryable: func(err error) bool {
			if errors.Is(err, zk.ErrNoNode) {
				if blocked.Add(1) <= 3 {
					<-release
				}
			}
			return false
		}}, true)
		f.refuse("/missing", jute.CodeNoNode)
		var held []*steps
		for range 3 {
			op := newSteps("/missing")
			if err := f.Go(t.Context(), &op.Operation); err != nil {
				t.Fatal(err)
			}
			held = append(held, op)
		}
		begin := time.Now()
		if err := f.Do(t.Context(), &newSteps("/other").Operation); err != nil {
			t.Errorf("another operation: %v", err)
		}
		elapsed(t, begin, 0)
		synctest.Wait()
		// The question about the next failure waits for those that block, for a moment each.
		if err := f.Do(t.Context(), &newSteps("/missing").Operation); err != zk.ErrNoNode {
			t.Errorf("another failure: %v", err)
		}
		if d := time.Since(begin); d > 100*time.Millisecond {
			t.Errorf("another failure took %v", d)
		}
		f.Stop()
		for _, op := range held {
			if err := receive(t, op.delivered); err != zk.ErrNoNode { // the answer is known
				t.Errorf("held: %v", err)
			}
		}
		close(release)
		synctest.Wait()
		for _, op := range held { // what the policy says at last counts for nothing
			empty(t, op.delivered)
		}
	})
}

// A policy that panics or ends its goroutine costs its own operation, whose error says so.
func TestPolicyThatPanicsFailsItsOwnOperation(t *testing.T) {
	for name, fail := range map[string]func(){
		"panic":           func() { panic("the policy is broken") },
		"end a goroutine": runtime.Goexit,
	} {
		for _, at := range []string{"Retryable", "NextBackOff"} {
			t.Run(name+" in "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					broken := true
					failOnce := func() {
						if broken {
							broken = false
							fail()
						}
					}
					policy := programmed{pauses: everySecond(1)}
					if at == "NextBackOff" {
						policy.pause = failOnce
					} else {
						policy.retryable = func(err error) bool {
							if errors.Is(err, jute.ErrOperationTimeout) {
								failOnce()
							}
							return true
						}
					}
					policy.pauses = everySecond(1)
					f := start(t, retriesTimeouts{policy}, true)
					f.refuse("/late", jute.CodeOperationTimeout)
					err := f.Do(t.Context(), &newSteps("/late").Operation)
					if !errors.Is(err, jute.ErrOperationTimeout) || !strings.Contains(err.Error(), "policy panicked") {
						t.Errorf("got %v", err)
					}
					// The next one is asked as ever: it is tried again once.
					begin := time.Now()
					if err := f.Do(t.Context(), &newSteps("/late").Operation); err != jute.ErrOperationTimeout {
						t.Errorf("the next one: %v", err)
					}
					elapsed(t, begin, time.Second)
				})
			})
		}
	}
}

// retriesTimeouts takes an operation timeout for a failure that may be tried again, after it was asked.
type retriesTimeouts struct{ programmed }

func (p retriesTimeouts) Retryable(err error) bool {
	if p.retryable != nil {
		return p.retryable(err)
	}
	return errors.Is(err, jute.ErrOperationTimeout)
}

// With one goroutine to ask it, the policy is asked in the order of the failures, and callbacks come in that order.
func TestPolicyIsAskedInTheOrderOfTheFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, programmed{pauses: everySecond(0)}, true)
		f.refuse("/missing", jute.CodeNoNode)
		var order []int
		done := make(chan struct{})
		const n = 1000
		for i := range n {
			op := &numberedSteps{steps: *newSteps("/missing"), deliver: func() {
				if order = append(order, i); len(order) == n {
					close(done)
				}
			}}
			op.Protocol = op
			if err := f.Go(context.Background(), &op.Operation); err != nil {
				t.Fatal(err)
			}
		}
		<-done
		for i, got := range order {
			if got != i {
				t.Fatalf("callback %d is of operation %d", i, got)
			}
		}
	})
}

// numberedSteps is an operation of the background that calls a function at its end.
type numberedSteps struct {
	steps
	deliver func()
}

func (o *numberedSteps) Run() { o.deliver() }
