package exec_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
)

// prompt is a policy that answers at once, as those of this module do: it is asked on the goroutine that reads.
type prompt struct{ hooked }

func (prompt) Prompt() bool { return true }

// Stop comes while an operation that has found no connection is on its way to those that are parked.
func TestStopOnTheWayToTheParkedOnes(t *testing.T) {
	for _, detached := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, everySecond(3), false)
			calls := 0
			f.onConn = func() {
				if calls++; calls == 2 { // the first is at the start of the operation, the second for its request
					f.Stop()
				}
			}
			begin := time.Now()
			op := newSteps("/a")
			op.Detached = detached
			if err := f.Go(t.Context(), &op.Operation); err != nil {
				t.Fatal(err)
			}
			if err := receive(t, op.delivered); err != exec.ErrClosed {
				t.Errorf("detached %t: got %v", detached, err)
			}
			elapsed(t, begin, 0)
		})
	}
}

// Stop comes while the policy computes the pause before a retry: no goroutine waits for that pause.
func TestStopOnTheWayToThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f *fixture
		f = start(t, prompt{hooked{pauses{time.Hour}, func() { f.Stop() }}}, true)
		f.server.serve = func(p *peer, _ *request) bool {
			p.cut()
			return true
		}
		begin := time.Now()
		op := newSteps("/a")
		if err := f.Do(t.Context(), &op.Operation); err != exec.ErrClosed {
			t.Errorf("got %v", err)
		}
		elapsed(t, begin, 0)
	})
}

// queueBehind has more requests in flight than a server may hold at first, and returns how many.
func (f *fixture) queueBehind(t *testing.T) int {
	t.Helper()
	const others = 30 / 2
	f.hold("/held", jute.CodeOK)
	for range others {
		if err := f.Go(t.Context(), &newSteps("/held").Operation); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	if got := len(f.server.paths()); got != others {
		t.Fatalf("%d requests are in flight, want %d", got, others)
	}
	return others
}

// What a connection has accepted and not sent has waited for the server. When the connection ends, the wait for another
// one begins.
func TestWaitForTheServerIsNoWaitForAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(0), true)
		f.queueBehind(t)
		op := newSteps("/waits")
		if err := f.Go(t.Context(), &op.Operation); err != nil {
			t.Fatal(err)
		}
		<-time.After(connectTimeout + time.Second) // in the queue of the connection
		f.server.down.Store(true)
		f.server.cutAll()
		<-time.After(connectTimeout - 3*time.Second)
		empty(t, op.delivered)
		f.letGo()
		f.server.down.Store(false)
		if err := receive(t, op.delivered); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

// What a connection has not sent is the oldest of what waits for the next one, in order.
func TestUnsentOperationsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(0), true)
		held := f.queueBehind(t)
		order := make(chan string, 10)
		submit := func(path string) {
			op := newDelivered(order, path)
			if err := f.Go(t.Context(), &op.Operation); err != nil {
				t.Error(err)
			}
		}
		submit("/1")
		submit("/2")
		f.server.down.Store(true)
		f.beforeUnsent = func() { submit("/3"); submit("/4") }
		f.server.cutAll()
		synctest.Wait()
		f.letGo()
		f.server.down.Store(false)
		want := []string{"/1", "/2", "/3", "/4"}
		for _, path := range want {
			if got := receive(t, order); got != path {
				t.Errorf("delivered %s, want %s", got, path)
			}
		}
		if diff := cmp.Diff(want, f.server.paths()[held:]); diff != "" {
			t.Errorf("on the wire (-want +got):\n%s", diff)
		}
	})
}

// The context ends while a connection that has ended gives back what it has not sent: nothing of the caller's is sent
// on the next one.
func TestEndOfTheContextIsSeenOnTheWayBackFromAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(0), true)
		held := f.queueBehind(t)
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan error, 1)
		op := newSteps("/waits")
		go func() { returned <- f.Do(ctx, &op.Operation) }()
		synctest.Wait()
		f.server.down.Store(true)
		f.beforeUnsent = func() {
			cancel()
			if err := <-returned; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		f.server.cutAll()
		synctest.Wait()
		select {
		case err := <-op.cleaned:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("cleans up after %v", err)
			}
		default:
			t.Error("still waits for a connection")
		}
		f.letGo()
		f.server.down.Store(false)
		<-time.After(time.Minute)
		if got := f.server.paths(); len(got) > held {
			t.Errorf("sent %v", got[held:])
		}
	})
}

// The executor gets the state of a connection that is gone again.
func TestConnectionThatIsGoneAgainChangesNoOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(0), true)
		f.server.down.Store(true)
		f.server.cutAll()
		synctest.Wait()
		order := make(chan string, 10)
		for n := range 5 {
			op := newDelivered(order, fmt.Sprintf("/%d", n))
			if err := f.Go(t.Context(), &op.Operation); err != nil {
				t.Fatal(err)
			}
			f.Connected()
		}
		f.server.down.Store(false)
		for n := range 5 {
			if got, want := receive(t, order), fmt.Sprintf("/%d", n); got != want {
				t.Errorf("delivered %s, want %s", got, want)
			}
		}
	})
}

// A detached operation waits for a connection, also when it has waited for one before: it does not come and go.
func TestDetachedOperationWaitsOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(1), true)
		sent := 0
		f.server.serve = func(p *peer, _ *request) bool {
			if sent++; sent == 1 {
				f.server.down.Store(true)
				p.cut()
			}
			return sent == 1
		}
		op := newSteps("/a")
		op.Detached = true
		if err := f.Go(t.Context(), &op.Operation); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		f.server.down.Store(false)
		if err := receive(t, op.delivered); err != nil {
			t.Error(err)
		}
		if n := op.Attempts(); n != 2 {
			t.Errorf("%d attempts, want 2", n)
		}
	})
}

func TestLoadCountsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, pauses{time.Minute}, true)
		want := func(when string, want exec.Load) {
			t.Helper()
			synctest.Wait()
			if got := f.Load(); got != want {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		want("at first", exec.Load{})
		var served atomic.Int64
		f.server.serve = func(p *peer, _ *request) bool {
			if served.Add(1) == 2 { // an operation behind the loss of the connection would be parked
				f.server.down.Store(true)
				p.cut()
			}
			return true
		}
		ops := []*steps{newSteps("/a"), newSteps("/b"), newSteps("/c")}
		for _, op := range ops[:2] {
			if err := f.Go(t.Context(), &op.Operation); err != nil {
				t.Fatal(err)
			}
		}
		want("before a retry", exec.Load{Pending: 2, Retries: 2})
		if err := f.Go(t.Context(), &ops[2].Operation); err != nil {
			t.Fatal(err)
		}
		want("and one without a connection", exec.Load{Pending: 3, Parked: 1, Retries: 2})
		f.server.serve = nil
		<-time.After(connectTimeout) // of the last one, which then waits for its own retry
		want("after the connection timeout", exec.Load{Pending: 3, Retries: 3})
		f.server.down.Store(false)
		for _, op := range ops {
			if err := receive(t, op.delivered); err != nil {
				t.Error(err)
			}
		}
		want("at last", exec.Load{})
	})
}

// The policy does not compute a pause that is not made.
func TestSingleAttemptNeedsNoPause(t *testing.T) {
	for name, policy := range map[string]func(h hooked) exec.Policy{
		"of the program": func(h hooked) exec.Policy { return h },
		"prompt":         func(h hooked) exec.Policy { return prompt{h} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, policy(hooked{everySecond(1), func() { t.Error("the policy is called") }}), true)
				f.server.serve = func(p *peer, _ *request) bool {
					p.cut()
					return true
				}
				op := newSteps("/a")
				if err := f.Do(exec.WithSingleAttempt(t.Context()), &op.Operation); err != jute.ErrConnectionLoss || !op.GaveUp() {
					t.Errorf("got %v, gave up %t", err, op.GaveUp())
				}
			})
		})
	}
}
