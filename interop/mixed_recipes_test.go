package interop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
)

// witness watches who is inside: writers by themselves, or no more than most.
type witness struct {
	t                *testing.T
	most             int32
	readers, writers atomic.Int32
	entered          atomic.Int32
}

func (w *witness) enter(writes bool) {
	if writes {
		w.writers.Add(1)
	} else {
		w.readers.Add(1)
	}
	if r, n := w.readers.Load(), w.writers.Load(); r > w.most || n > 1 || n == 1 && r > 0 {
		w.t.Errorf("%d readers and %d writers inside", r, n)
	}
	w.entered.Add(1)
	if writes {
		w.writers.Add(-1)
	} else {
		w.readers.Add(-1)
	}
}

// contend has two clients of Go and two of Java, each in a process of its own, enter so often.
func contend(t *testing.T, w *witness, ours func(*framework.Client) func(i int) error, theirs func(*java) func(i int) error) {
	t.Helper()
	const rounds = 20
	connect := testenv.ConnectString(t)
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for range 2 {
		j := startJava(t)
		j.start("", connect)
		for _, turn := range []func(int) error{ours(startGo(t, connect)), theirs(j)} {
			wg.Go(func() {
				<-begin
				for i := range rounds {
					if err := turn(i); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	close(begin)
	wg.Wait()
	if n := w.entered.Load(); n != 4*rounds {
		t.Errorf("entered %d times", n)
	}
}

func TestGoAndJavaReadAndWriteInTurn(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	w := &witness{t: t, most: 4}
	writes := func(i int) bool { return i%3 == 0 }
	contend(t, w, func(client *framework.Client) func(int) error {
		rw := locks.NewInterProcessReadWriteLock(client, "/rw")
		return func(i int) error {
			l := rw.ReadLock()
			if writes(i) {
				l = rw.WriteLock()
			}
			return locks.Do(ctx, l, func(context.Context) error {
				w.enter(writes(i))
				return nil
			})
		}
	}, func(j *java) func(int) error {
		j.must("readWriteLockNew", interop.Args{"name": "rw", "path": "/rw"}, nil)
		return func(i int) error {
			lock := "readLock"
			if writes(i) {
				lock = "writeLock"
			}
			if err := j.Call(ctx, lock+"Acquire", interop.Args{"name": "rw"}, nil); err != nil {
				return err
			}
			w.enter(writes(i))
			return j.Call(ctx, lock+"Release", interop.Args{"name": "rw"}, nil)
		}
	})
}

func TestGoAndJavaShareASemaphoreMutex(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	w := &witness{t: t}
	contend(t, w, func(client *framework.Client) func(int) error {
		mu := locks.NewInterProcessSemaphoreMutex(client, "/semaphoreMutex")
		return func(int) error {
			return locks.Do(ctx, mu, func(context.Context) error {
				w.enter(true)
				return nil
			})
		}
	}, func(j *java) func(int) error {
		j.must("semaphoreMutexNew", interop.Args{"name": "m", "path": "/semaphoreMutex"}, nil)
		return func(int) error {
			if err := j.Call(ctx, "semaphoreMutexAcquire", interop.Args{"name": "m"}, nil); err != nil {
				return err
			}
			w.enter(true)
			return j.Call(ctx, "semaphoreMutexRelease", interop.Args{"name": "m"}, nil)
		}
	})
}

func TestGoAndJavaShareLeases(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	const most = 2
	w := &witness{t: t, most: most}
	contend(t, w, func(client *framework.Client) func(int) error {
		s := locks.NewInterProcessSemaphoreV2(client, "/semaphore", most)
		return func(int) error {
			lease, err := s.Acquire(ctx)
			if err != nil {
				return err
			}
			w.enter(false)
			return lease.Return(ctx)
		}
	}, func(j *java) func(int) error {
		j.must("semaphoreNew", interop.Args{"name": "s", "path": "/semaphore", "leases": most}, nil)
		return func(int) error {
			var nodes []string
			if err := j.Call(ctx, "semaphoreAcquire", interop.Args{"name": "s"}, &nodes); err != nil {
				return err
			}
			w.enter(false)
			return j.Call(ctx, "semaphoreRelease", interop.Args{"name": "s", "leases": nodes}, nil)
		}
	})
}

func TestGoAndJavaElectOneLeader(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	j := startJava(t)
	javaSession := j.start("", connect)
	client := startGo(t, connect)
	ours := leader.NewLeaderLatch(client, "/latch", leader.WithID("go"))
	if err := ours.Start(); err != nil {
		t.Fatal(err)
	}
	defer ours.Close() //nolint:errcheck // it has no error
	if _, err := ours.Await(ctx); err != nil {
		t.Fatal(err)
	}
	j.must("latchStart", interop.Args{"name": "l", "path": "/latch", "participant": "java"}, nil)
	same := func(want ...string) {
		t.Helper()
		var mine, theirs []leader.Participant
		testenv.Eventually(t, func() bool {
			var err error
			if mine, err = ours.Participants(ctx); err != nil {
				return false
			}
			var told []interop.Participant
			j.must("latchParticipants", interop.Args{"name": "l"}, &told)
			theirs = theirs[:0]
			for _, p := range told {
				theirs = append(theirs, leader.Participant{ID: p.ID, IsLeader: p.Leader})
			}
			ids := make([]string, len(mine))
			for i, p := range mine {
				ids[i] = p.ID
			}
			return slices.Equal(ids, want) && cmp.Equal(mine, theirs)
		}, fmt.Sprintf("%v take part, for both", want))
	}
	same("go", "java")
	// Go's session ends: Java leads, and Go stands behind it.
	if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	j.yes("latchAwait", interop.Args{"name": "l", "timeoutMs": 30_000})
	same("java", "go")
	if ours.HasLeadership() {
		t.Error("two lead")
	}
	// Java's session ends: Go leads.
	if err := testenv.Server(t).ExpireSession(javaSession); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Await(ctx); err != nil {
		t.Fatal(err)
	}
	j.must("latchClose", interop.Args{"name": "l"}, nil)
}

func TestGoAndJavaSelectorsTakeTurns(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	j := startJava(t)
	j.start("", connect)
	began, end := make(chan struct{}, 10), make(chan struct{})
	ours := leader.NewLeaderSelector(startGo(t, connect), "/selector", func(ctx context.Context) error {
		began <- struct{}{}
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, leader.WithAutoRequeue(), leader.WithID("go"))
	if err := ours.Start(); err != nil {
		t.Fatal(err)
	}
	<-began
	j.must("selectorStart", interop.Args{"name": "s", "path": "/selector", "participant": "java", "autoRequeue": true}, nil)
	for range 3 {
		testenv.Eventually(t, func() bool {
			all, err := ours.Participants(ctx)
			return err == nil && len(all) == 2
		}, "both stand in line")
		if id := j.text("selectorLeader", interop.Args{"name": "s"}); id != "go" {
			t.Errorf("%s leads", id)
		}
		end <- struct{}{}
		if _, err := j.WaitEvent(ctx, func(e interop.Event) bool { return e.Kind == "taken" && e.Name == "s" }); err != nil {
			t.Fatal(err)
		}
		if who, err := ours.Leader(ctx); err != nil || who.ID != "java" || ours.HasLeadership() {
			t.Errorf("%+v leads, error %v", who, err)
		}
		j.must("selectorRelinquish", interop.Args{"name": "s"}, nil)
		<-began
	}
	closed := make(chan error, 1)
	go func() { closed <- ours.Close() }()
	select {
	case err := <-closed:
		if err != nil && !errors.Is(err, leader.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("Close hangs")
	}
	j.must("selectorClose", interop.Args{"name": "s"}, nil)
}
