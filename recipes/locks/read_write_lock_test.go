package locks_test

import (
	"context"
	"errors"
	"fmt"
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

// In Java: TestInterProcessReadWriteLock.testBasic.
func TestReadWriteLockHasOneWriterOrReaders(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	const clients, rounds = 8, 25
	var readers, writers atomic.Int32
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

func TestReadersShareLock(t *testing.T) {
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
func TestWaitingWriterIsNotOvertakenByReader(t *testing.T) {
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

// In Java: TestInterProcessReadWriteLock.testGetParticipantNodes, and the names of the nodes.
func TestReadWriteLockParticipantNodesOfEachSide(t *testing.T) {
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

// In Java: TestInterProcessReadWriteLock.testThatUpgradingIsDisallowed, where it waits for itself.
func TestReaderAcquiringWriteLockFails(t *testing.T) {
	ctx := locks.WithOwner(testenv.Context(t))
	rw := newReadWriteLock(t, testenv.ConnectString(t))
	hold := acquire(t, ctx, rw.ReadLock())
	if _, err := rw.WriteLock().Acquire(ctx); !errors.Is(err, locks.ErrUpgrade) {
		t.Errorf("got %v", err)
	}
	release(t, hold)
	release(t, acquire(t, ctx, rw.WriteLock()))
}

// In Java: TestInterProcessReadWriteLock.testDowngrading, TestInterProcessReadWriteLock.testContendingDowngrading
// (CURATOR-621).
func TestDowngradedWriterKeepsPlace(t *testing.T) {
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

// In Java: TestInterProcessReadWriteLock.testThatDowngradingRespectsThreads.
func TestOtherOwnerDoesNotReadBesideWriter(t *testing.T) {
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

func TestWriterLostDoesNotDowngrade(t *testing.T) {
	for name, isKnown := range map[string]bool{"before it is known": false, "when it is known": true} {
		t.Run(name, func(t *testing.T) { testWriterLostDoesNotDowngrade(t, isKnown) })
	}
}

func testWriterLostDoesNotDowngrade(t *testing.T, isKnown bool) {
	ctx := locks.WithOwner(testenv.Context(t))
	client := newClient(t, testenv.ConnectString(t))
	rw := locks.NewInterProcessReadWriteLock(client, lockPath)
	writing := acquire(t, ctx, rw.WriteLock())
	if err := client.Delete().ForPath(ctx, writing.Path()); err != nil { // as an operator may
		t.Fatal(err)
	}
	if isKnown {
		<-writing.Context().Done()
	}
	if _, err := rw.ReadLock().Acquire(ctx); !errors.Is(err, locks.ErrLockLost) {
		t.Errorf("got %v", err)
	}
	release(t, writing)
	release(t, acquire(t, ctx, rw.ReadLock())) // as anybody may
}

// In Java: TestInterProcessReadWriteLock.testSetNodeData.
func TestReadWriteLockNodeDataIsThatOfBothSides(t *testing.T) {
	ctx := locks.WithOwner(testenv.Context(t))
	client := newClient(t, testenv.ConnectString(t))
	data := []byte("me")
	rw := locks.NewInterProcessReadWriteLock(client, lockPath, locks.WithLockNodeData(data))
	data[0] = 'x' // which is no business of the lock any more
	for _, l := range []*locks.InterProcessMutex{rw.WriteLock(), rw.ReadLock()} {
		hold := acquire(t, ctx, l)
		if data, err := client.GetData().ForPath(ctx, hold.Path()); err != nil || string(data) != "me" {
			t.Errorf("%s has %q, error %v", hold.Path(), data, err)
		}
		release(t, hold)
	}
}

// In Java: TestInterProcessReadWriteLock.testLockPath.
func TestReaderWriterSessionExpiredIsGranted(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client, other := newClient(t, connect), newClient(t, connect)
	rw := locks.NewInterProcessReadWriteLock(client, lockPath)
	lost := acquire(t, ctx, rw.WriteLock())
	next := acquireBehind(t, ctx, locks.NewInterProcessReadWriteLock(other, lockPath).ReadLock(), connect)
	if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	reading := receive(t, next)
	if stat, err := other.CheckExists().ForPath(ctx, lost.Path()); err != nil || stat != nil {
		t.Errorf("the node of the writer is there: %v", err)
	}
	if cause := awaitEnd(t, ctx, lost); !errors.Is(cause, locks.ErrLockLost) {
		t.Errorf("cause %v", cause)
	}
	release(t, reading)
	release(t, lost)
	again := acquire(t, ctx, rw.WriteLock())
	if again.Path() == lost.Path() {
		t.Errorf("writes again with %s", again.Path())
	}
	release(t, again)
	awaitNothing(t, connect)
}

// CURATOR-211: a reader that finds its node gone is not granted anything by those that are left.
func TestWaitingReaderSessionExpiredQueuesAgain(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	writer := newReadWriteLock(t, connect)
	writing := acquire(t, ctx, writer.WriteLock())
	reader := locks.NewInterProcessReadWriteLock(client, lockPath).ReadLock()
	next := acquireLater(t, ctx, reader)
	testenv.Eventually(t, func() bool { return waitersOf(t, writing.Path()) == 1 }, "the reader waits")
	session := client.SessionID()
	if err := testenv.Server(t).ExpireSession(session); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool {
		nodes, err := reader.ParticipantNodes(ctx)
		return err == nil && len(nodes) == 1 && client.SessionID() != session
	}, "the reader stands in line anew")
	if reader.IsAcquiredInThisProcess() || len(next) != 0 {
		t.Error("a reader beside a writer")
	}
	release(t, writing)
	release(t, receive(t, next))
	awaitNothing(t, connect)
}

// watchersOf returns how many sessions watch a node: in the answer of the server their lines stand behind its path.
func watchersOf(tb testing.TB, node string) (n int) {
	tb.Helper()
	found := false
	for line := range strings.Lines(watches(tb)) {
		switch {
		case strings.HasPrefix(line, "/"):
			found = strings.HasSuffix(strings.TrimSpace(line), node)
		case found && strings.HasPrefix(line, "\t"):
			n++
		}
	}
	return n
}

// waitersOf returns how many sessions watch a node beside its own, which watches it while it holds a lock.
func waitersOf(tb testing.TB, node string) (n int) {
	tb.Helper()
	raw, found, owner := testenv.Raw(tb), false, ""
	for line := range strings.Lines(watches(tb)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "/"):
			if found = strings.HasSuffix(line, node); !found {
				continue
			}
			_, stat, err := raw.Exists(line)
			if err != nil {
				tb.Fatal(err)
			}
			owner = fmt.Sprintf("0x%x", stat.EphemeralOwner)
		case found && line != "" && line != owner:
			n++
		}
	}
	return n
}

// Java's waits for the first writer in line, then for the next.
func TestWaitingReaderWatchesLastWriter(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	rw := newReadWriteLock(t, connect)
	first := acquire(t, ctx, rw.WriteLock())
	second := acquireBehind(t, ctx, newReadWriteLock(t, connect).WriteLock(), connect)
	writers, err := rw.WriteLock().ParticipantNodes(ctx)
	if err != nil || len(writers) != 2 {
		t.Fatalf("%v, error %v", writers, err)
	}
	reading := acquireBehind(t, ctx, newReadWriteLock(t, connect).ReadLock(), connect)
	testenv.Eventually(t, func() bool {
		return waitersOf(t, writers[0]) == 1 && waitersOf(t, writers[1]) == 1
	}, "each waits for the one before it")
	release(t, first)
	release(t, receive(t, second))
	release(t, receive(t, reading))
	awaitNothing(t, connect)
}
