package locks_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/zkpath"
)

func newReadWriteLock(t *testing.T, connect string) *locks.InterProcessReadWriteLock {
	t.Helper()
	return locks.NewInterProcessReadWriteLock(newClient(t, connect), lockPath)
}

// In Java: TestInterProcessReadWriteLock.testSimulation.
func TestOneWriterOrAnyNumberOfReaders(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	const clients, rounds = 8, 25
	var readers, writers, mostReaders atomic.Int32
	var wg sync.WaitGroup
	for i := range clients {
		rw := newReadWriteLock(t, connect)
		random := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			for range rounds {
				l, mine, limit := rw.ReadLock(), &readers, int32(clients)
				if random.IntN(3) == 0 {
					l, mine, limit = rw.WriteLock(), &writers, 1
				}
				hold, err := l.Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				n := mine.Add(1)
				if r, w := readers.Load(), writers.Load(); n > limit || w > 0 && r > 0 {
					t.Errorf("%d readers, %d writers", r, w)
				}
				if r := readers.Load(); r > mostReaders.Load() {
					mostReaders.Store(r)
				}
				mine.Add(-1)
				if err := hold.Release(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	awaitNothing(t, connect)
}

func TestReadersShareTheLock(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	first, second := newReadWriteLock(t, connect), newReadWriteLock(t, connect)
	one, two := acquire(t, ctx, first.ReadLock()), acquire(t, ctx, second.ReadLock())
	if _, err := first.WriteLock().TryAcquire(ctx, 0); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("a writer beside readers: %v", err)
	}
	release(t, one)
	if _, err := first.WriteLock().TryAcquire(ctx, 50*time.Millisecond); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("a writer beside a reader: %v", err)
	}
	release(t, two)
	release(t, acquire(t, ctx, first.WriteLock()))
	awaitNothing(t, connect)
}

// A reader that comes behind a waiting writer waits for it.
func TestWaitingWriterIsNotOvertaken(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	a, b, c := newReadWriteLock(t, connect), newReadWriteLock(t, connect), newReadWriteLock(t, connect)
	reading := acquire(t, ctx, a.ReadLock())
	wrote := make(chan *locks.Hold, 1)
	go func() {
		hold, err := b.WriteLock().Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		wrote <- hold
	}()
	testenv.Eventually(t, func() bool {
		nodes, err := b.WriteLock().ParticipantNodes(ctx)
		return err == nil && len(nodes) == 1
	}, "the writer stands in line")
	if _, err := c.ReadLock().TryAcquire(ctx, 50*time.Millisecond); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("a reader behind a writer: %v", err)
	}
	release(t, reading)
	writing := <-wrote
	release(t, writing)
	release(t, acquire(t, ctx, c.ReadLock()))
}

// In Java: testGetParticipantNodes, and the names of the nodes.
func TestParticipantsOfEachSide(t *testing.T) {
	ctx := testenv.Context(t)
	rw := newReadWriteLock(t, testenv.ConnectString(t))
	want := map[string]*regexp.Regexp{
		"read":  regexp.MustCompile(`^_c_[0-9a-f-]{36}-__READ__\d{10}$`),
		"write": regexp.MustCompile(`^_c_[0-9a-f-]{36}-__WRIT__\d{10}$`),
	}
	reading := []*locks.Hold{acquire(t, ctx, rw.ReadLock()), acquire(t, ctx, rw.ReadLock())}
	waiting, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := rw.WriteLock().Acquire(waiting)
		done <- err
	}()
	var writers []string
	testenv.Eventually(t, func() bool {
		var err error
		writers, err = rw.WriteLock().ParticipantNodes(ctx)
		return err == nil && len(writers) == 1
	}, "the writer stands in line")
	readers, err := rw.ReadLock().ParticipantNodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{reading[0].Path(), reading[1].Path()}, readers); diff != "" {
		t.Error(diff)
	}
	if !want["read"].MatchString(zkpath.Node(readers[0])) || !want["write"].MatchString(zkpath.Node(writers[0])) {
		t.Errorf("names %s, %s", readers[0], writers[0])
	}
	cancel()
	<-done
	for _, h := range reading {
		release(t, h)
	}
}

// In Java: testThatUpgradingIsDisallowed, where it waits for itself.
func TestReaderCannotBecomeAWriter(t *testing.T) {
	ctx := locks.WithOwner(testenv.Context(t))
	rw := newReadWriteLock(t, testenv.ConnectString(t))
	hold := acquire(t, ctx, rw.ReadLock())
	if _, err := rw.WriteLock().Acquire(ctx); !errors.Is(err, locks.ErrUpgrade) {
		t.Errorf("got %v", err)
	}
	release(t, hold)
	release(t, acquire(t, ctx, rw.WriteLock()))
}

// In Java: testThatDowngradingIsAllowed, testContendingDowngrading (CURATOR-621).
func TestWriterThatReadsKeepsItsPlace(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	rw, other := newReadWriteLock(t, connect), newReadWriteLock(t, connect)
	me := locks.WithOwner(ctx)
	writing := acquire(t, me, rw.WriteLock())
	next := make(chan *locks.Hold, 1)
	go func() {
		hold, err := other.WriteLock().Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		next <- hold
	}()
	testenv.Eventually(t, func() bool {
		nodes, err := other.WriteLock().ParticipantNodes(ctx)
		return err == nil && len(nodes) == 2
	}, "the other writer stands in line")
	reading := acquire(t, me, rw.ReadLock())
	numberOf := func(path string) string { return path[len(path)-10:] }
	if numberOf(reading.Path()) != numberOf(writing.Path()) || !strings.Contains(reading.Path(), "__READ__") {
		t.Errorf("reads with %s, wrote with %s", reading.Path(), writing.Path())
	}
	again := acquire(t, me, rw.ReadLock())
	release(t, writing)
	select {
	case <-next:
		t.Fatal("a writer beside a reader")
	case <-time.After(100 * time.Millisecond): // long enough for a grant that must not come
	}
	release(t, again)
	release(t, reading)
	release(t, <-next)
	awaitNothing(t, connect)
}

// In Java: testThatDowngradingRespectsThreads.
func TestAnotherOwnerDoesNotReadBesideAWriter(t *testing.T) {
	ctx := testenv.Context(t)
	rw := newReadWriteLock(t, testenv.ConnectString(t))
	writing := acquire(t, locks.WithOwner(ctx), rw.WriteLock())
	for name, other := range map[string]context.Context{"another": locks.WithOwner(ctx), "none": ctx} {
		if _, err := rw.ReadLock().TryAcquire(other, 20*time.Millisecond); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("%s: %v", name, err)
		}
	}
	release(t, writing)
}

func TestWriterThatHasLostTheLockDoesNotRead(t *testing.T) {
	ctx := locks.WithOwner(testenv.Context(t))
	client := newClient(t, testenv.ConnectString(t))
	rw := locks.NewInterProcessReadWriteLock(client, lockPath)
	writing := acquire(t, ctx, rw.WriteLock())
	if err := client.Delete().ForPath(ctx, writing.Path()); err != nil { // somebody does
		t.Fatal(err)
	}
	if _, err := rw.ReadLock().Acquire(ctx); !errors.Is(err, locks.ErrLockLost) {
		t.Errorf("got %v", err)
	}
	release(t, writing)
}

// In Java: testSetNodeData.
func TestDataOfBothSides(t *testing.T) {
	ctx := locks.WithOwner(testenv.Context(t))
	client := newClient(t, testenv.ConnectString(t))
	rw := locks.NewInterProcessReadWriteLock(client, lockPath, locks.WithLockNodeData([]byte("me")))
	for _, l := range []*locks.InterProcessMutex{rw.WriteLock(), rw.ReadLock()} {
		hold := acquire(t, ctx, l)
		if data, err := client.GetData().ForPath(ctx, hold.Path()); err != nil || string(data) != "me" {
			t.Errorf("%s has %q, error %v", hold.Path(), data, err)
		}
		release(t, hold)
	}
}
