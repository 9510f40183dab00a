package dispatch_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/dispatch"
)

// push pushes f, which must be accepted.
func push(tb testing.TB, q *dispatch.Queue, f func()) {
	tb.Helper()
	if !q.Push(dispatch.Func(f)) {
		tb.Error("not accepted")
	}
}

// finish closes q, whose tasks end by themselves.
func finish(tb testing.TB, q *dispatch.Queue) {
	tb.Helper()
	if !q.Close(time.Minute) {
		tb.Error("some tasks have not run")
	}
}

func TestTasksRunOneAtATimeInTheOrderOfPush(t *testing.T) {
	const pushers, each = 8, 2000
	q := dispatch.Start()
	var running atomic.Int32
	var last [pushers]int // of the goroutine that runs the tasks
	var ran int
	var wg sync.WaitGroup
	for p := range pushers {
		wg.Go(func() {
			for n := 1; n <= each; n++ {
				push(t, q, func() {
					if running.Add(1) != 1 {
						t.Error("two tasks run at a time")
					}
					if last[p] != n-1 {
						t.Errorf("pusher %d: task %d after %d", p, n, last[p])
					}
					last[p] = n
					ran++
					running.Add(-1)
				})
				if n%100 == 0 {
					runtime.Gosched() // the queue runs empty now and then
				}
			}
		})
	}
	wg.Wait()
	finish(t, q)
	if ran != pushers*each {
		t.Errorf("%d tasks ran, want %d", ran, pushers*each)
	}
}

func TestPushDoesNotWait(t *testing.T) {
	const total = 100_000
	q := dispatch.Start()
	release := make(chan struct{})
	push(t, q, func() { <-release })
	var ran int
	for range total {
		push(t, q, func() { ran++ })
	}
	close(release)
	finish(t, q)
	if ran != total {
		t.Errorf("%d tasks ran, want %d", ran, total)
	}
}

func TestTaskMayPush(t *testing.T) {
	q := dispatch.Start()
	done := make(chan struct{})
	var n int
	var again func()
	again = func() {
		if n++; n == 1000 {
			close(done)
			return
		}
		push(t, q, again)
	}
	push(t, q, again)
	<-done
	finish(t, q)
}

func TestClosedQueueTakesNothing(t *testing.T) {
	q := dispatch.Start()
	finish(t, q)
	if q.Push(dispatch.Func(func() { t.Error("ran") })) {
		t.Error("accepted")
	}
	finish(t, q) // again
}

func TestCloseRunsWhatWasAccepted(t *testing.T) {
	for range 200 {
		q := dispatch.Start()
		var accepted, ran atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for q.Push(dispatch.Func(func() { ran.Add(1) })) {
					accepted.Add(1)
					runtime.Gosched()
				}
			})
		}
		runtime.Gosched()
		finish(t, q)
		wg.Wait()
		if a, r := accepted.Load(), ran.Load(); a != r {
			t.Fatalf("%d accepted, %d ran", a, r)
		}
	}
}

func TestCloseDoesNotWaitBeyondItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := dispatch.Start()
		release := make(chan struct{})
		var ran int
		push(t, q, func() { <-release })
		push(t, q, func() { ran++ })
		start := time.Now()
		if q.Close(3 * time.Second) {
			t.Error("claims that all tasks have run")
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("waited %s", d)
		}
		close(release)
		finish(t, q) // they still run
		if ran != 1 {
			t.Errorf("ran %d times", ran)
		}
	})
}

func TestCloseWithoutLimitReportsAllHaveRun(t *testing.T) {
	q := dispatch.Start()
	finish(t, q)
	for range 1000 {
		if !q.Close(-1) {
			t.Fatal("claims that some have not run")
		}
	}
}

func TestCloseFromATaskReturnsAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := dispatch.Start()
		done := make(chan bool, 1)
		push(t, q, func() { done <- q.Close(time.Second) })
		if <-done {
			t.Error("claims that all tasks have run")
		}
		finish(t, q)
	})
}

// The maker of the tasks handles a panic: the framework recovers in each.
func TestTaskThatRecoversDoesNotStopTheOthers(t *testing.T) {
	q := dispatch.Start()
	var recovered, ran int
	for range 10 {
		push(t, q, func() {
			defer func() {
				if recover() != nil {
					recovered++
				}
			}()
			panic("in a callback")
		})
		push(t, q, func() { ran++ })
	}
	finish(t, q)
	if recovered != 10 || ran != 10 {
		t.Errorf("%d recovered, %d ran", recovered, ran)
	}
}

// A test that fails inside a callback ends its goroutine.
func TestTaskThatEndsItsGoroutineDoesNotStopTheOthers(t *testing.T) {
	q := dispatch.Start()
	var ran int
	for range 10 {
		push(t, q, runtime.Goexit)
		push(t, q, func() { ran++ })
	}
	finish(t, q)
	if ran != 10 {
		t.Errorf("%d ran, want 10", ran)
	}
}

type counter struct{ n int }

func (c *counter) Run() { c.n++ }

func BenchmarkPush(b *testing.B) {
	q := dispatch.Start()
	c := new(counter)
	b.ReportAllocs()
	for b.Loop() {
		q.Push(c)
	}
	q.Close(time.Minute)
}
