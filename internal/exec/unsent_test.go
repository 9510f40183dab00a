package exec_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/exec"
)

// holding has the server leave requests unanswered as long as the flag is set.
func (f *fixture) holding() *atomic.Bool {
	held := new(atomic.Bool)
	held.Store(true)
	f.server.serve = func(*peer, *request) bool { return held.Load() }
	return held
}

// leaveUnsent submits more than a connection sends without an answer, and returns how many requests have arrived. The
// server answers what comes later.
func (f *fixture) leaveUnsent() (arrived int) {
	f.tb.Helper()
	held := f.holding()
	for range 400 {
		if err := f.Go(context.Background(), &newSteps("/old").Operation); err != nil {
			f.tb.Fatal(err)
		}
	}
	synctest.Wait()
	held.Store(false)
	return len(f.server.paths())
}

// wantNewestLast awaits the requests behind those that have arrived, and checks that the newest is the last.
func (f *fixture) wantNewestLast(arrived int) {
	f.tb.Helper()
	<-time.After(time.Minute)
	paths := f.server.paths()[arrived:]
	if newest := slices.Index(paths, "/new"); len(paths) < 2 || newest != len(paths)-1 {
		f.tb.Errorf("%d requests on the next connection, the newest has the index %d", len(paths), newest)
	}
}

// replaceSession does what the framework does when the session clock has run out: the next session may be there before
// the last connection of the old one has ended.
func (f *fixture) replaceSession(before func()) {
	old := f.conn.Load()
	old.Expire()
	f.connect()
	for !f.conn.Load().IsConnected() {
		<-time.After(time.Millisecond)
	}
	synctest.Wait() // the executor has its state
	if before != nil {
		before()
	}
	old.Abandon()
}

// What the old session's connection has not sent is sent at once in the next session that stands already.
func TestUnsentOfAnOldSessionIsSentWhenTheNextOneStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(0), true)
		held := f.holding()
		const n = 400
		var ops []*steps
		for range n {
			op := newSteps("/held")
			if err := f.Go(context.Background(), &op.Operation); err != nil {
				t.Fatal(err)
			}
			ops = append(ops, op)
		}
		synctest.Wait()
		held.Store(false)
		begin := time.Now()
		f.replaceSession(nil)
		synctest.Wait()
		unsent := 0
		for i, op := range ops {
			err := receive(t, op.delivered)
			if !op.Sent() || err == nil {
				unsent++
			}
			if errors.Is(err, exec.ErrNotSent) {
				t.Fatalf("operation %d: %v after %v with a connection", i, err, time.Since(begin))
			}
		}
		if unsent == 0 {
			t.Error("all were in flight: the test shows nothing")
		}
		if d := time.Since(begin); d > time.Second {
			t.Errorf("took %v", d)
		}
	})
}

// They are older than what is submitted meanwhile.
func TestUnsentOfAnOldSessionIsSentBeforeWhatIsSubmittedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(0), true)
		arrived := f.leaveUnsent()
		f.replaceSession(func() {
			if err := f.Do(t.Context(), &newSteps("/new").Operation); err != nil {
				t.Error(err)
			}
		})
		f.wantNewestLast(arrived)
	})
}

// A goroutine that submits may find nothing parked, and be slow: what an earlier connection has not sent still comes
// first.
func TestUnsentIsSentBeforeWhatIsBeingSubmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(0), true)
		arrived := f.leaveUnsent()
		submitted := make(chan struct{})
		f.onUp = func() { <-submitted }
		var asked atomic.Int32
		f.onConn = func() {
			if asked.Add(1) != 2 { // the first time it is accepted, the second time it is about to be sent
				return
			}
			f.server.cutAll()
			synctest.Wait()
			for !f.conn.Load().IsConnected() { // until the next one stands, which the executor does not know yet
				<-time.After(time.Millisecond)
			}
		}
		if err := f.Go(context.Background(), &newSteps("/new").Operation); err != nil {
			t.Fatal(err)
		}
		close(submitted)
		f.wantNewestLast(arrived)
	})
}

// What its caller has given up is not sent any more: what it refers to is the caller's.
func TestUnsentThatWasGivenUpIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(0), true)
		held := f.holding()
		for range 400 {
			if err := f.Go(context.Background(), &newSteps("/held").Operation); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		var given []*givenUp
		for range 2 {
			op := &givenUp{steps: *newSteps("/given-up"), f: f}
			op.Protocol = op
			given = append(given, op)
			if err := f.Begin(ctx, &op.Operation); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		held.Store(false)
		f.unsent = sync.OnceFunc(func() { // taken from the connection, and not parked yet
			cancel()
			for _, op := range given {
				if err := f.Wait(ctx, &op.Operation); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			}
			close(left)
		})
		f.replaceSession(nil)
		<-left
		synctest.Wait()
		for _, path := range f.server.paths() {
			if path == "/given-up" {
				t.Fatal("was sent after its caller had left with its data")
			}
		}
	})
}

// givenUp has another goroutine notice, while it is cleaned up, that there is a connection.
type givenUp struct {
	steps
	f *fixture
}

func (o *givenUp) CleanUp(error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.f.Connected()
	}()
	<-done
}

// Those in flight are older than those that were not sent.
func TestOperationsOfAnOldSessionThatMayNotGoOnEndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, promptly{notAcross{everySecond(3)}}, true)
		held := f.holding()
		const n = 400
		ends := make(chan int, n)
		for i := range n {
			if err := f.Go(context.Background(), &numbered(i, ends).Operation); err != nil {
				t.Fatal(err)
			}
			<-time.After(1) // no two begin at the same time
		}
		synctest.Wait()
		if load := f.conn.Load().Load(); load.InFlight == 0 || load.Queued == 0 {
			t.Fatalf("%d in flight, %d queued: the test shows nothing", load.InFlight, load.Queued)
		}
		held.Store(false)
		f.replaceSession(nil)
		for i := range n {
			if got := receive(t, ends); got != i {
				t.Fatalf("operation %d ends as number %d", got, i)
			}
		}
	})
}

// promptly is a policy of the library: it is called on the goroutine that reads.
type promptly struct{ notAcross }

func (promptly) Prompt() bool { return true }

// numbered returns an operation that delivers its number.
func numbered(i int, ends chan<- int) *number {
	op := &number{steps: *newSteps("/numbered"), i: i, ends: ends}
	op.Protocol = op
	return op
}

type number struct {
	steps
	i    int
	ends chan<- int
}

func (o *number) Deliver() { o.ends <- o.i }

// The connection is lost, and its reader is about to give the unsent operations back when the session is given up.
func TestUnsentThatIsBeingGivenBackIsNotOvertakenInTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everySecond(3), true)
		arrived := f.leaveUnsent()
		entered, leave := make(chan struct{}), make(chan struct{})
		f.beforeUnsent = func() { close(entered); <-leave }
		f.server.cutAll()
		<-entered
		old := f.conn.Load()
		expired := make(chan struct{})
		go func() {
			old.Expire()
			f.connect()
			for !f.conn.Load().IsConnected() {
				<-time.After(time.Millisecond)
			}
			if err := f.Do(context.Background(), &newSteps("/new").Operation); err != nil {
				t.Error(err)
			}
			close(expired)
		}()
		<-time.After(time.Second) // of the bubble
		close(leave)
		<-expired
		old.Abandon()
		f.wantNewestLast(arrived)
	})
}
