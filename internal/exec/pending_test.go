package exec_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
)

// limited returns an executor that has one operation at a time pending, and has it: letGo lets it end.
func limited(t *testing.T) *fixture {
	t.Helper()
	f := latent(t, everySecond(0))
	f.Limit(1)
	f.Start()
	f.connect()
	synctest.Wait()
	f.hold("/held", jute.CodeOK)
	go func() { _ = f.Do(t.Context(), &newSteps("/held").Operation) }()
	synctest.Wait()
	return f
}

func TestForegroundIsAdmittedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := limited(t)
		order := make(chan int, 10)
		for n := range 10 {
			go func() {
				if err := f.Do(t.Context(), &newSteps(fmt.Sprintf("/%d", n)).Operation); err != nil {
					t.Error(err)
				}
				order <- n
			}()
			synctest.Wait()
		}
		if err := f.Go(t.Context(), &newSteps("/b").Operation); !errors.Is(err, exec.ErrTooManyPending) {
			t.Errorf("the background: %v", err)
		}
		f.letGo()
		for n := range 10 {
			receive(t, order)
			if got, want := f.server.paths()[1+n], fmt.Sprintf("/%d", n); got != want {
				t.Errorf("sent %s, want %s", got, want)
			}
		}
		synctest.Wait() // an operation is counted out after its caller has woken up
		if l := f.Load(); l != (exec.Load{}) {
			t.Errorf("left: %+v", l)
		}
	})
}

// The executor's own operations and cleaning up are not held back, whatever the program has pending.
func TestLimitIsForTheProgramAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := limited(t)
		internal, detached := newSteps("/internal"), newSteps("/detached")
		internal.Internal, detached.Detached = true, true
		for _, op := range []*steps{internal, detached} {
			if err := f.Go(t.Context(), &op.Operation); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := len(f.server.paths()); got != 3 {
			t.Errorf("%d requests are sent", got)
		}
		f.letGo()
		if err := f.WaitQuiet(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A waiter that gives up leaves no place taken, also when the place and the end of the context come at once.
func TestCancelledAdmissionTakesNoPlace(t *testing.T) {
	for _, early := range []time.Duration{time.Second, 0} {
		for range 100 {
			synctest.Test(t, func(t *testing.T) {
				f := limited(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute-early)
				defer cancel()
				returned := make(chan error, 1)
				go func() { returned <- f.Do(ctx, &newSteps("/a").Operation) }()
				<-time.After(time.Minute)
				f.letGo()
				if err := <-returned; err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				short, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := f.Do(short, &newSteps("/b").Operation); err != nil {
					t.Errorf("the next: %v", err)
				}
				if err := f.WaitQuiet(short); err != nil {
					t.Errorf("%v: %+v", err, f.Load())
				}
			})
		}
	}
}

func TestStopEndsTheWaitForAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := limited(t)
		returned := make(chan error, 3)
		for range 3 {
			go func() { returned <- f.Do(t.Context(), &newSteps("/a").Operation) }()
		}
		synctest.Wait()
		begin := time.Now()
		f.Stop()
		for range 3 {
			if err := receive(t, returned); err != exec.ErrClosed {
				t.Errorf("got %v", err)
			}
		}
		elapsed(t, begin, 0)
		f.letGo()
	})
}

// A waiter that has given up gets nothing later.
func TestWaitThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := limited(t)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := f.WaitQuiet(ctx); err != context.DeadlineExceeded {
				t.Errorf("got %v", err)
			}
			cancel()
		}
		done := make(chan error, 1)
		go func() { done <- f.WaitQuiet(t.Context()) }()
		synctest.Wait()
		empty(t, done)
		f.letGo()
		if err := receive(t, done); err != nil {
			t.Error(err)
		}
	})
}
