package exec_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// Most tests run in a bubble of synctest: time is exact, and a goroutine that is left makes them fail.

// elapsed fails if not exactly d has passed since start.
func elapsed(tb testing.TB, start time.Time, d time.Duration) {
	tb.Helper()
	if got := time.Since(start); got != d {
		tb.Errorf("%s have passed, want %s", got, d)
	}
}

func TestForegroundOperationReturnsItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(3), true)
		f.server.serve = func(p *peer, r *request) bool {
			if r.path() == "/missing" {
				p.answer(r, jute.CodeNoNode)
			}
			return r.path() == "/missing"
		}
		begin := time.Now()
		op := newSteps("/a", "/b", "/c")
		if err := f.Do(t.Context(), &op.Operation); err != nil {
			t.Errorf("got %v", err)
		}
		empty(t, op.cleaned)

		op = newSteps("/a", "/missing", "/c")
		if err := f.Do(t.Context(), &op.Operation); err != zk.ErrNoNode {
			t.Errorf("got %v, want zk.ErrNoNode", err)
		}
		if err := receive(t, op.cleaned); err != zk.ErrNoNode {
			t.Errorf("cleans up after %v, want zk.ErrNoNode", err)
		}
		if op.Attempts() != 1 || op.Background() || op.Result() != zk.ErrNoNode || !op.Sent() {
			t.Errorf("%d attempts, background %t, result %v", op.Attempts(), op.Background(), op.Result())
		}
		elapsed(t, begin, 0)
		if diff := cmp.Diff([]string{"/a", "/b", "/c", "/a", "/missing"}, f.server.paths()); diff != "" {
			t.Errorf("on the wire (-want +got):\n%s", diff)
		}
	})
}

func TestBackgroundOperationsAreDeliveredInTheOrderOfTheirAnswers(t *testing.T) {
	const total = 1000
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(3), true)
		order := make(chan string, total)
		var want []string
		for n := range total {
			path := fmt.Sprintf("/%d", n)
			want = append(want, path)
			op := newDelivered(order, path)
			if err := f.Go(t.Context(), &op.Operation); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for range total {
			got = append(got, receive(t, order))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, f.server.paths()); diff != "" {
			t.Errorf("on the wire (-want +got):\n%s", diff)
		}
	})
}

// delivered is an operation of one request that only says when it is delivered.
type delivered struct {
	exec.Operation
	order chan string
	path  string
}

func newDelivered(order chan string, path string) *delivered {
	d := &delivered{order: order, path: path}
	d.Protocol = d
	return d
}

func (d *delivered) Begin() {
	d.Prepare(jute.Request{Op: jute.OpGetData, Path: d.path})
	d.Send(func() { d.Finish(d.Err()) })
}

func (d *delivered) Deliver() { d.order <- d.path }

type valueKey struct{}

func TestBackgroundOperationOutlivesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(3), false)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "v"))
		op := newSteps("/a")
		if err := f.Go(ctx, &op.Operation); err != nil {
			t.Fatal(err)
		}
		cancel()
		f.connect()
		if err := receive(t, op.delivered); err != nil {
			t.Errorf("got %v", err)
		}
		if op.Context().Err() != nil || op.Context().Value(valueKey{}) != "v" || !op.Background() {
			t.Errorf("context ends with %v, value %v", op.Context().Err(), op.Context().Value(valueKey{}))
		}
	})
}

func TestLossIsRetriedAfterThePausesOfThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, pauses{time.Second, 3 * time.Second, 0, 5 * time.Second}, true)
		var times []time.Duration
		begin := time.Now()
		f.server.serve = func(p *peer, r *request) bool {
			if r.path() != "/b" {
				return false
			}
			times = append(times, time.Since(begin))
			if len(times) == 5 {
				return false
			}
			p.cut()
			return true
		}
		op := newSteps("/a", "/b")
		if err := f.Do(t.Context(), &op.Operation); err != nil {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		// The connection is up again at once, but for a moment's pause when it has lived no longer than that.
		want := []time.Duration{0, time.Second, 4 * time.Second, 4 * time.Second, 9 * time.Second}
		for i, at := range times {
			if late := at - want[i]; late < 0 || late > 50*time.Millisecond {
				t.Errorf("attempt %d at %s, want %s", i+1, at, want[i])
			}
		}
		if op.Attempts() != 5 {
			t.Errorf("%d attempts, want 5", op.Attempts())
		}
		if got := len(f.server.paths()); got != 10 { // each attempt begins at the beginning
			t.Errorf("%d requests, want 10", got)
		}
		empty(t, op.cleaned)
	})
}

func TestLossIsTheErrorWhenThePolicyGivesUp(t *testing.T) {
	for name, background := range map[string]bool{"foreground": false, "background": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, everySecond(2), true)
				f.server.serve = func(p *peer, _ *request) bool {
					p.cut()
					return true
				}
				begin := time.Now()
				op := newSteps("/a")
				var err error
				if background {
					if err = f.Go(t.Context(), &op.Operation); err != nil {
						t.Fatal(err)
					}
					err = receive(t, op.delivered)
				} else {
					err = f.Do(t.Context(), &op.Operation)
				}
				if err != jute.ErrConnectionLoss || op.Attempts() != 3 {
					t.Errorf("got %v after %d attempts", err, op.Attempts())
				}
				if d := time.Since(begin); d < 2*time.Second || d > 2*time.Second+50*time.Millisecond {
					t.Errorf("took %s", d)
				}
				if err := receive(t, op.cleaned); err != jute.ErrConnectionLoss {
					t.Errorf("cleans up after %v", err)
				}
				synctest.Wait()
				empty(t, op.delivered)
				empty(t, op.cleaned)
			})
		})
	}
}

func TestOperationWaitsForAConnectionOnceAndNoLongerThanTheConnectionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(3), false)
		begin := time.Now()
		op := newSteps("/a")
		if err := f.Do(t.Context(), &op.Operation); err != exec.ErrNotSent || op.Sent() {
			t.Errorf("got %v, sent %t", err, op.Sent())
		}
		elapsed(t, begin, connectTimeout+3*time.Second)
		if op.Attempts() != 4 {
			t.Errorf("%d attempts, want 4", op.Attempts())
		}
	})
}

func TestEachWaitEndsAtItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, pauses{5 * time.Second}, true)
		f.server.serve = func(*peer, *request) bool { return true }
		begin := time.Now()
		ends := make(chan string, 4)
		run := func(name string) {
			go func() {
				op := newSteps("/" + name)
				if err := f.Do(t.Context(), &op.Operation); !errors.Is(err, jute.ErrConnectionLoss) {
					t.Errorf("%s: %v", name, err)
				}
				ends <- fmt.Sprintf("%s %s", name, time.Since(begin))
			}()
		}
		run("first") // is in flight until 2s, sleeps until 7s, and has waited enough at 15s
		<-time.After(time.Second)
		run("second") // the same, but has waited enough at 16s
		<-time.After(time.Second)
		f.server.down.Store(true)
		f.server.cutAll()
		synctest.Wait()
		run("third") // waits from 2s to 17s, in front of the others, and ends with its retry
		<-time.After(time.Second)
		run("fourth")
		for _, want := range []string{"first 15s", "second 16s", "third 22s", "fourth 23s"} {
			if got := receive(t, ends); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

func TestParkedOperationsStartInOrderTheMomentTheConnectionStands(t *testing.T) {
	const total = 500
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(3), false)
		order := make(chan string, total)
		submit := func(n int) {
			op := newDelivered(order, fmt.Sprintf("/%d", n))
			if err := f.Go(t.Context(), &op.Operation); err != nil {
				t.Error(err)
			}
		}
		for n := range total / 2 {
			submit(n)
			if n%50 == 0 {
				<-time.After(time.Second)
			}
		}
		go f.connect() // while others come
		for n := total / 2; n < total; n++ {
			submit(n)
		}
		connected := time.Now()
		for n := range total {
			if got := receive(t, order); got != fmt.Sprintf("/%d", n) {
				t.Fatalf("delivered %s, want /%d", got, n)
			}
		}
		elapsed(t, connected, 0)
		for n, got := range f.server.paths() {
			if got != fmt.Sprintf("/%d", n) {
				t.Fatalf("on the wire %s, want /%d", got, n)
			}
		}
	})
}

func TestNothingOvertakesWhatIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(3), false)
		order := make(chan string, 10)
		submit := func(path string) {
			op := newDelivered(order, path)
			if err := f.Go(t.Context(), &op.Operation); err != nil {
				t.Error(err)
			}
		}
		submit("/first")
		submit("/second")
		f.onUp = func() { submit("/third") } // the connection stands, and the executor does not know it yet
		f.connect()
		for _, want := range []string{"/first", "/second", "/third"} {
			if got := receive(t, order); got != want {
				t.Errorf("delivered %s, want %s", got, want)
			}
		}
	})
}

// The connection comes while the operation, which has found none, is on its way to those that are parked.
func TestConnectionThatComesAtTheLastMomentIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(3), false)
		up := make(chan struct{})
		f.onUp = func() { close(up) }
		var calls atomic.Int32
		f.onConn = func() {
			if calls.Add(1) == 2 { // the first is at the start of the operation, the second for its request
				f.connect()
				<-up
				for range 1000 { // let the executor get the state
					runtime.Gosched()
				}
			}
		}
		begin := time.Now()
		op := newSteps("/a")
		if err := f.Do(t.Context(), &op.Operation); err != nil {
			t.Errorf("got %v", err)
		}
		elapsed(t, begin, 0)
	})
}

func TestContextThatHasEndedStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(3), true)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		op := newSteps("/a")
		if err := f.Do(ctx, &op.Operation); err != context.Canceled || op.Attempts() != 0 {
			t.Errorf("got %v after %d attempts", err, op.Attempts())
		}
		empty(t, op.cleaned)
	})
}

// stages are the places where the end of a context or Stop may find an operation.
var stages = []struct {
	name string
	// prepare makes the server keep the operation in the stage, and release lets it go on.
	prepare, release func(f *fixture)
	connected        bool
	requests         int   // that have been sent
	afterContext     error // what is cleaned up after when the context has ended
	afterStop        error // what the operation ends with when the executor is stopped
}{
	{
		name:         "parked",
		prepare:      func(*fixture) {},
		release:      func(*fixture) {},
		afterContext: context.DeadlineExceeded,
		afterStop:    exec.ErrClosed,
	},
	{
		name: "sleeping",
		prepare: func(f *fixture) {
			f.server.serve = func(p *peer, _ *request) bool {
				p.cut()
				return true
			}
		},
		release:      func(*fixture) {},
		connected:    true,
		requests:     1,
		afterContext: context.DeadlineExceeded,
		afterStop:    exec.ErrClosed,
	},
	{
		name:         "in flight, and the server says yes",
		prepare:      func(f *fixture) { f.hold("/b", jute.CodeOK) },
		release:      func(f *fixture) { f.letGo() },
		connected:    true,
		requests:     2,
		afterContext: nil,
		afterStop:    nil,
	},
	{
		name:         "in flight, and the server says no",
		prepare:      func(f *fixture) { f.hold("/b", jute.CodeNoNode) },
		release:      func(f *fixture) { f.letGo() },
		connected:    true,
		requests:     2,
		afterContext: zk.ErrNoNode,
		afterStop:    zk.ErrNoNode,
	},
	{
		name:         "in flight, and the connection is lost",
		prepare:      func(f *fixture) { f.hold("/b", jute.CodeOK) },
		release:      func(f *fixture) { f.server.cutAll(); f.letGo() },
		connected:    true,
		requests:     2,
		afterContext: jute.ErrConnectionLoss,
		afterStop:    exec.ErrClosed,
	},
	{
		name:         "between two steps",
		prepare:      func(f *fixture) { f.hold("/a", jute.CodeOK) },
		release:      func(f *fixture) { f.letGo() },
		connected:    true,
		requests:     1,
		afterContext: context.DeadlineExceeded,
		afterStop:    nil, // the connection still stands: the second step is answered too
	},
}

// hold makes the server keep the answer to path until letGo, and those behind it: a server answers in order.
func (f *fixture) hold(path string, code jute.Code) {
	f.held = make(chan struct{})
	var mu sync.Mutex
	var kept []*request
	answer := func(r *request) {
		if r.path() == path {
			r.p.answer(r, code)
		} else {
			r.p.answer(r, jute.CodeOK)
		}
	}
	f.server.wg.Go(func() {
		<-f.held
		mu.Lock()
		defer mu.Unlock()
		for _, r := range kept {
			answer(r)
		}
		kept = nil
	})
	f.server.serve = func(p *peer, r *request) bool {
		mu.Lock()
		defer mu.Unlock()
		behind := slices.ContainsFunc(kept, func(k *request) bool { return k.p == p })
		switch {
		case behind, r.path() == path && !f.letsGo():
			kept = append(kept, r)
		default:
			answer(r)
		}
		return true
	}
}

func (f *fixture) letsGo() bool {
	select {
	case <-f.held:
		return true
	default:
		return false
	}
}

func (f *fixture) letGo() { close(f.held) }

func TestEndOfTheContextEndsTheWaitAtEachStage(t *testing.T) {
	for _, tt := range stages {
		for name, split := range map[string]bool{"Do": false, "Begin and Wait": true} {
			t.Run(tt.name+", by "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := start(t, pauses{5 * time.Second, 5 * time.Second}, tt.connected)
					tt.prepare(f)
					op := newSteps("/a", "/b")
					begin := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					var err error
					if split { // the context of the wait is another one
						if err = f.Begin(t.Context(), &op.Operation); err == nil {
							err = f.Wait(ctx, &op.Operation)
						}
					} else {
						err = f.Do(ctx, &op.Operation)
					}
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %v, want the end of the context", err)
					}
					elapsed(t, begin, 2*time.Second)
					synctest.Wait()
					tt.release(f)
					if got := receive(t, op.cleaned); got != tt.afterContext {
						t.Errorf("cleans up after %v, want %v", got, tt.afterContext)
					}
					if op.Sent() != (tt.requests > 0) {
						t.Errorf("sent %t after %d requests", op.Sent(), tt.requests)
					}
					<-time.After(time.Minute)
					empty(t, op.cleaned)
					if got := len(f.server.paths()); got != tt.requests {
						t.Errorf("%d requests, want %d: the rest is not wanted", got, tt.requests)
					}
				})
			})
		}
	}
}

func TestSecondWaitAfterContextEndsReturnsSameError(t *testing.T) {
	for _, tt := range stages {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, pauses{5 * time.Second, 5 * time.Second}, tt.connected)
				tt.prepare(f)
				op := newSteps("/a", "/b")
				if err := f.Begin(t.Context(), &op.Operation); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				for range 2 { // the second time before its late end
					if err := f.Wait(ctx, &op.Operation); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %v, want the end of the context", err)
					}
					ctx = t.Context()
				}
				synctest.Wait()
				tt.release(f)
				receive(t, op.cleaned)
				if err := f.Wait(t.Context(), &op.Operation); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("behind its end: got %v, want the end of the context", err)
				}
				other, cancel := context.WithCancel(t.Context())
				cancel()
				for range 20 { // both are over: either may be seen first
					if err := f.Wait(other, &op.Operation); !errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("with another context: got %v, want the end of the first", err)
					}
				}
			})
		})
	}
}

// The context ends between the failure of an attempt and the pause before the next.
func TestEndOfTheContextIsSeenOnTheWayToThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan error)
		f := start(t, hooked{everySecond(3), func() {
			cancel()
			if err := <-returned; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
		}}, true)
		f.server.serve = func(p *peer, _ *request) bool {
			p.cut()
			return true
		}
		begin := time.Now()
		op := newSteps("/a")
		returned <- f.Do(ctx, &op.Operation)
		if err := receive(t, op.cleaned); err != jute.ErrConnectionLoss {
			t.Errorf("cleans up after %v", err)
		}
		elapsed(t, begin, 0)
	})
}

func TestOperationThatWaitsBehindOthersIsTakenBack(t *testing.T) {
	const others = 30 / 2 // as many as are in flight before the first is answered
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(0), true)
		f.hold("/held", jute.CodeOK)
		for range others {
			if err := f.Go(t.Context(), &newSteps("/held").Operation); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		op := newSteps("/waits")
		if err := f.Do(ctx, &op.Operation); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := receive(t, op.cleaned); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cleans up after %v", err)
		}
		f.letGo()
		f.close()
		if got := len(f.server.paths()); got != others {
			t.Errorf("%d requests were sent, want %d", got, others)
		}
	})
}

// When the context has ended, what the operation refers to is the caller's again. Here the context ends while
// the second step is on its way to the connection, which is the latest moment there is.
func TestDataIsTheCallersOnceTheContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(0), true)
		ctx, cancel := context.WithCancel(t.Context())
		data := []byte("mine")
		returned := make(chan struct{})
		var armed atomic.Bool
		f.server.serve = func(_ *peer, r *request) bool {
			if r.path() == "/a" {
				armed.Store(true)
			} else if got := string(r.data()); got != "mine" {
				t.Errorf("sent %q", got)
			}
			return false
		}
		f.onConn = func() {
			if !armed.CompareAndSwap(true, false) {
				return
			}
			cancel()
			for range 1000 { // let the caller return if it does
				runtime.Gosched()
			}
			select {
			case <-returned:
				copy(data, "else")
			default:
			}
		}
		go func() {
			defer close(returned)
			op := newSteps("/a", "/b")
			op.requests[1] = jute.Request{Op: jute.OpSetData, Path: "/b", Data: data}
			if err := f.Do(ctx, &op.Operation); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}()
		<-returned
		synctest.Wait()
	})
}

func TestStopEndsOperationsAtEachStage(t *testing.T) {
	for _, tt := range stages {
		for name, background := range map[string]bool{"foreground": false, "background": true} {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := start(t, pauses{5 * time.Second, 5 * time.Second}, tt.connected)
					tt.prepare(f)
					op := newSteps("/a", "/b")
					result := op.delivered
					if background {
						if err := f.Go(t.Context(), &op.Operation); err != nil {
							t.Fatal(err)
						}
					} else {
						result = make(chan error, 1)
						go func() { result <- f.Do(t.Context(), &op.Operation) }()
					}
					<-time.After(2 * time.Second)
					f.Stop()
					f.Stop() // does nothing
					tt.release(f)
					if got := receive(t, result); got != tt.afterStop {
						t.Errorf("got %v, want %v", got, tt.afterStop)
					}
					if tt.afterStop != nil {
						if got := receive(t, op.cleaned); got != tt.afterStop {
							t.Errorf("cleans up after %v, want %v", got, tt.afterStop)
						}
					}
					f.close() // returns when every operation has ended
					empty(t, result)
					empty(t, op.cleaned)
					late := newSteps("/late")
					if err := f.Do(t.Context(), &late.Operation); err != exec.ErrClosed {
						t.Errorf("Do after Stop: %v", err)
					}
					if err := f.Go(t.Context(), &late.Operation); err != exec.ErrClosed {
						t.Errorf("Go after Stop: %v", err)
					}
				})
			})
		}
	}
}

// The next attempt and Stop find the operation at the same moment.
func TestStopAtTheMomentOfARetry(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, everySecond(3), true)
			f.server.serve = func(p *peer, _ *request) bool {
				p.cut()
				return true
			}
			var ops []*steps
			for range 5 {
				op := newSteps("/a")
				ops = append(ops, op)
				if err := f.Go(t.Context(), &op.Operation); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(time.Second)
			f.close()
			for _, op := range ops {
				receive(t, op.delivered)
				empty(t, op.delivered)
			}
		})
	}
}

func TestNothingIsAcceptedBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := latent(t, everySecond(1))
		op := newSteps("/a")
		if err := f.Do(t.Context(), &op.Operation); err != exec.ErrNotStarted {
			t.Errorf("Do: %v", err)
		}
		if err := f.Go(t.Context(), &op.Operation); err != exec.ErrNotStarted {
			t.Errorf("Go: %v", err)
		}
		if err := f.Err(); err != exec.ErrNotStarted {
			t.Errorf("Err: %v", err)
		}
		f.Start()
		if err := f.Err(); err != nil {
			t.Errorf("Err: %v", err)
		}
		f.Stop()
		if err := f.Err(); err != exec.ErrClosed {
			t.Errorf("Err: %v", err)
		}
		empty(t, op.delivered)
	})
}

func TestSingleAttemptNeitherWaitsNorRetries(t *testing.T) {
	for name, connected := range map[string]bool{"without a connection": false, "with one that is lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, everySecond(3), connected)
				f.server.serve = func(p *peer, _ *request) bool {
					p.cut()
					return true
				}
				begin := time.Now()
				op := newSteps("/a")
				ctx := exec.WithSingleAttempt(t.Context())
				err := f.Do(ctx, &op.Operation)
				if !errors.Is(err, jute.ErrConnectionLoss) || op.Attempts() != 1 {
					t.Errorf("got %v after %d attempts", err, op.Attempts())
				}
				if errors.Is(err, exec.ErrNotSent) == connected {
					t.Errorf("got %v", err)
				}
				elapsed(t, begin, 0)
			})
		})
	}
}

func TestDetachedOperationIsTriedUntilItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, pauses{3 * time.Second, 5 * time.Second}, false)
		op := newSteps("/a")
		op.Detached = true
		if err := f.Go(t.Context(), &op.Operation); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour) // without a connection
		var attempts []time.Duration
		var last time.Time
		f.server.serve = func(p *peer, _ *request) bool {
			if !last.IsZero() {
				attempts = append(attempts, time.Since(last).Round(time.Second))
			}
			if last = time.Now(); len(attempts) == 7 {
				return false
			}
			p.cut()
			return true
		}
		f.connect()
		if err := receive(t, op.delivered); err != nil {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		// The policy's pauses, one second between two rounds of it.
		const s = time.Second
		if diff := cmp.Diff([]time.Duration{3 * s, 5 * s, s, 3 * s, 5 * s, s, 3 * s}, attempts); diff != "" {
			t.Errorf("pauses (-want +got):\n%s", diff)
		}
		empty(t, op.cleaned)
	})
}

func TestDetachedOperationEndsWithTheClient(t *testing.T) {
	for name, connected := range map[string]bool{"parked": false, "sleeping": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, everySecond(2), connected)
				f.server.serve = func(p *peer, _ *request) bool {
					p.cut()
					return true
				}
				op := newSteps("/a")
				op.Detached = true
				if err := f.Go(t.Context(), &op.Operation); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute + 300*time.Millisecond)
				empty(t, op.delivered)
				f.close()
				if err := receive(t, op.delivered); err != exec.ErrClosed && err != jute.ErrConnectionLoss {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// Others that wait for a connection end when their time is over; what waits without a limit does not hold
// them.
func TestDetachedOperationDoesNotKeepOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, pauses{}, false)
		detached := newSteps("/d")
		detached.Detached = true
		if err := f.Go(t.Context(), &detached.Operation); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		op := newSteps("/a")
		if err := f.Do(t.Context(), &op.Operation); err != exec.ErrNotSent {
			t.Errorf("got %v", err)
		}
		elapsed(t, begin, connectTimeout)
		f.connect()
		if err := receive(t, detached.delivered); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

// session makes the server forget the session of its clients, and cut them.
func (f *fixture) expire() {
	f.server.greet = func(p *peer, req jute.ConnectRequest) bool {
		if req.SessionID != 0 {
			p.expire()
		}
		return req.SessionID != 0
	}
	f.server.cutAll()
}

func TestOperationGoesOnInTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(3), true)
		f.hold("/a", jute.CodeOK)
		op := newSteps("/a")
		result := make(chan error, 1)
		go func() { result <- f.Do(t.Context(), &op.Operation) }()
		<-time.After(time.Second)
		first := f.conn.Load().SessionID()
		f.expire()
		f.letGo() // what was held is answered to a connection that is gone
		if err := receive(t, result); err != nil {
			t.Errorf("got %v", err)
		}
		if f.conn.Load().SessionID() == first {
			t.Error("the session is still the first")
		}
	})
}

// oneSession is a policy that does not retry in another session.
type oneSession struct{ pauses }

func (oneSession) Retryable(err error) bool { return errors.Is(err, jute.ErrConnectionLoss) }

func TestOperationEndsWithItsSessionIfThePolicySaysSo(t *testing.T) {
	for name, hold := range map[string]string{"sleeping": "", "parked": "down"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, oneSession{everySecond(3)}, true)
				f.server.serve = func(p *peer, r *request) bool {
					if r.path() != "/a" {
						return false
					}
					f.server.down.Store(hold == "down")
					f.server.greet = func(p *peer, req jute.ConnectRequest) bool {
						if req.SessionID != 0 {
							p.expire()
						}
						return req.SessionID != 0
					}
					p.cut()
					return true
				}
				op := newSteps("/a")
				result := make(chan error, 1)
				go func() { result <- f.Do(t.Context(), &op.Operation) }()
				<-time.After(5 * time.Second)
				f.server.down.Store(false)
				if err := receive(t, result); err != zk.ErrSessionExpired {
					t.Errorf("got %v, want zk.ErrSessionExpired", err)
				}
				next := newSteps("/b")
				if err := f.Do(t.Context(), &next.Operation); err != nil {
					t.Errorf("in the next session: %v", err)
				}
			})
		})
	}
}

func TestRefusedCredentialsEndEveryOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(3), true)
		p := f.onlyPeer()
		p.send(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: jute.XidAuth, Code: jute.CodeAuthFailed}))
		synctest.Wait()
		begin := time.Now()
		op := newSteps("/a")
		if err := f.Do(t.Context(), &op.Operation); err != zk.ErrAuthFailed {
			t.Errorf("got %v, want zk.ErrAuthFailed", err)
		}
		detached := newSteps("/a")
		detached.Detached = true
		if err := f.Go(t.Context(), &detached.Operation); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, detached.delivered); err != zk.ErrAuthFailed {
			t.Errorf("detached: %v, want zk.ErrAuthFailed", err)
		}
		elapsed(t, begin, 0)
	})
}

func (f *fixture) onlyPeer() *peer {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	for p := range f.server.live {
		return p
	}
	f.tb.Fatal("no connection")
	return nil
}

// An operation goes on where its answer is read. If that wrote by itself, both ends could wait for each other
// with full buffers: here there are no buffers at all.
func TestGoroutineThatReadsDoesNotWrite(t *testing.T) {
	for name, connected := range map[string]bool{"connected": true, "parked at first": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, everySecond(0), connected)
				f.server.serve = func(p *peer, r *request) bool {
					p.answer(r, jute.CodeOK)
					p.send(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: jute.XidPing})) // before it reads again
					return true
				}
				begin := time.Now()
				result := make(chan error, 1)
				go func() { result <- f.Do(t.Context(), &newSteps("/a", "/b", "/c").Operation) }()
				if !connected {
					synctest.Wait()
					f.connect()
				}
				if err := receive(t, result); err != nil {
					t.Errorf("got %v", err)
				}
				elapsed(t, begin, 0)
			})
		})
	}
}

func TestIsIndefinite(t *testing.T) {
	tests := []struct {
		err  error
		want bool
	}{
		{nil, false},
		{zk.ErrNoNode, false},
		{fmt.Errorf("create: %w", zk.ErrNodeExists), false},
		{zk.ErrAuthFailed, false},
		{jute.ErrConnectionLoss, true},
		{zk.ErrConnectionClosed, true},
		{jute.ErrOperationTimeout, true},
		{zk.ErrSessionExpired, true},
		{zk.ErrSessionMoved, true},
		{context.Canceled, true},
		{exec.ErrClosed, true},
		{wire.ErrNotConnected, true},
	}
	for _, tt := range tests {
		if got := exec.IsIndefinite(tt.err); got != tt.want {
			t.Errorf("%v: %t", tt.err, got)
		}
	}
}
