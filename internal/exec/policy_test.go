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
					if !errors.Is(err, jute.ErrOperationTimeout) || !strings.Contains(err.Error(), "the retry policy") {
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
func TestPolicyIsCalledInOrderOfFailures(t *testing.T) {
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

func (o *numberedSteps) Deliver() { o.deliver() }

// A question that comes after Stop is not put: there will be no other attempt.
func TestPolicyIsNotCalledAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, programmed{retryable: func(err error) bool {
			if errors.Is(err, zk.ErrNoNode) {
				t.Error("the policy is called")
			}
			return false
		}}, true)
		f.hold("/held", jute.CodeNoNode)
		op := newSteps("/held")
		if err := f.Go(t.Context(), &op.Operation); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.Stop()
		f.letGo()
		if err := receive(t, op.delivered); err != zk.ErrNoNode {
			t.Errorf("got %v", err)
		}
	})
}

// A policy that takes a while, but not long, is asked one question at a time.
func TestSlowPolicyIsCalledInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asking, most := 0, 0
		f := start(t, programmed{retryable: func(err error) bool {
			if errors.Is(err, zk.ErrNoNode) {
				asking++
				most = max(most, asking)
				<-time.After(time.Millisecond)
				asking--
			}
			return false
		}}, true)
		f.refuse("/missing", jute.CodeNoNode)
		var ops []*steps
		for range 100 {
			op := newSteps("/missing")
			ops = append(ops, op)
			if err := f.Go(t.Context(), &op.Operation); err != nil {
				t.Fatal(err)
			}
		}
		for _, op := range ops {
			receive(t, op.delivered)
		}
		if most != 1 {
			t.Errorf("%d calls at once", most)
		}
	})
}

// What is promised is done, whatever the policy says, also in the next session.
func TestDetachedOperationIsTriedWhateverThePolicySays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, programmed{retryable: func(error) bool { return false }}, true)
		answers := []func(p *peer, r *request){
			func(p *peer, _ *request) { p.cut() },
			func(p *peer, r *request) { p.answer(r, jute.CodeThrottledOp) },
			func(*peer, *request) { f.expire() },
		}
		f.server.serve = func(p *peer, r *request) bool {
			if len(answers) == 0 {
				return false
			}
			answers[0](p, r)
			answers = answers[1:]
			return true
		}
		op := newSteps("/a")
		op.Detached = true
		if err := f.Go(t.Context(), &op.Operation); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, op.delivered); err != nil || op.Attempts() != 4 {
			t.Errorf("got %v after %d attempts", err, op.Attempts())
		}
	})
}

// since is a policy that notes when an operation began.
type since struct {
	pauses
	began *time.Time
}

func (s since) NewBackOffSince(start time.Time) backoff.BackOff {
	*s.began = start
	return s.NewBackOff()
}

func TestScheduleCountsFromTheStartOfTheOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began time.Time
		f := start(t, since{everySecond(1), &began}, true)
		f.server.serve = func(p *peer, _ *request) bool {
			<-time.After(5 * time.Second)
			p.cut()
			return true
		}
		begin := time.Now()
		if err := f.Do(t.Context(), &newSteps("/a").Operation); err != jute.ErrConnectionLoss {
			t.Errorf("got %v", err)
		}
		if !began.Equal(begin) {
			t.Errorf("the schedule counts from %s behind the start", began.Sub(begin))
		}
	})
}

func TestPolicyThatPanicsWhenItIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, programmed{retryable: func(error) bool { panic("always") }}, true)
		f.refuse("/missing", jute.CodeNoNode)
		if err := f.Do(t.Context(), &newSteps("/missing").Operation); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("got %v", err)
		}
	})
}

// Drain says whether the policy has returned.
func TestDrainWaitsForThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := start(t, programmed{retryable: func(err error) bool {
			if errors.Is(err, zk.ErrNoNode) {
				<-release
			}
			return false
		}}, true)
		f.refuse("/missing", jute.CodeNoNode)
		op := newSteps("/missing")
		if err := f.Go(t.Context(), &op.Operation); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.Stop()
		receive(t, op.delivered)
		if f.Drain(time.Second) {
			t.Error("drained while the policy runs")
		}
		close(release)
		if !f.Drain(time.Second) {
			t.Error("not drained")
		}
	})
}
