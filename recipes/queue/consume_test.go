package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// failures holds the errors that OnError reports.
type failures struct {
	errs chan error
}

func newFailures() *failures { return &failures{make(chan error, 10_000)} }

func (f *failures) notify(_ context.Context, err error) { f.errs <- err }

func (f *failures) next(tb testing.TB) error {
	tb.Helper()
	select {
	case err := <-f.errs:
		return err
	case <-testenv.Context(tb).Done():
		tb.Fatal("nothing is reported")
		return nil
	}
}

func TestBatchIsOneNode(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		client := newClient(t, connect)
		producer := start(t, built(mode(builder(t, client, nil)).BuildQueue()))
		must(t, producer.PutMulti(ctx, "one", "", "three"))
		must(t, producer.PutMulti(ctx, "four", "five"))
		must(t, producer.PutMulti(ctx)) // nothing
		must(t, producer.FlushPuts(ctx))
		if got := children(t, connect, queuePath); len(got) != 2 {
			t.Fatalf("nodes %q", got)
		}
		got := newBasket(t)
		start(t, built(mode(builder(t, client, got.consume)).BuildQueue()))
		if diff := cmp.Diff([]string{"one", "", "three", "four", "five"}, got.await(5)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		awaitNothing(t, connect)
	})
}

// In Java: TestDistributedQueue.testErrorMode, testPutMultiWithErrorMode.
func TestItemWhoseConsumerFailsIsPutBack(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	client := newClient(t, connect)
	broken := errors.New("broken")
	got, failed := newBasket(t), newFailures()
	var once sync.Map
	consume := func(_ context.Context, item string) error {
		got.add(item)
		if _, again := once.LoadOrStore(item, true); item == "b" && !again {
			return broken
		}
		return nil
	}
	producer := start(t, built(builder(t, client, nil).BuildQueue()))
	must(t, producer.PutMulti(ctx, "a", "b", "c"))
	must(t, producer.Put(ctx, "d"))
	must(t, producer.FlushPuts(ctx))
	start(t, built(builder(t, client, consume).LockPath(lockPath).OnError(failed.notify).BuildQueue()))
	// What was consumed before the failure is not consumed again; the rest comes behind.
	if diff := cmp.Diff([]string{"a", "b", "d", "b", "c"}, got.await(5)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var item *queue.ItemError
	if err := failed.next(t); !errors.Is(err, broken) || !errors.As(err, &item) || string(item.Data) != "b" {
		t.Errorf("got %v", err)
	}
	awaitNothing(t, connect)
}

// A consumer changes the bytes that it gets, and fails. The item is put back as it was.
func TestItemOfRawBytesThatItsConsumerChangesIsPutBackUnchanged(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	got := newBasket(t)
	failed := false
	consume := func(_ context.Context, item []byte) error {
		got.add(string(item))
		item[0] = 'x'
		if failed {
			return nil
		}
		failed = true
		return errors.New("broken")
	}
	client := newClient(t, testenv.ConnectString(t))
	q := start(t, built(queue.NewBuilder(client, consume, codec.Raw{}, queuePath).LockPath(lockPath).BuildQueue()))
	must(t, q.Put(ctx, []byte("item")))
	if diff := cmp.Diff([]string{"item", "item"}, got.await(2)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestItemWhoseConsumerFailsIsDropped(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		client := newClient(t, connect)
		got, failed := newBasket(t), newFailures()
		consume := func(_ context.Context, item string) error {
			got.add(item)
			switch item {
			case "a":
				return errors.New("broken")
			case "b":
				panic("beyond repair")
			}
			return nil
		}
		q := start(t, built(mode(builder(t, client, consume)).
			ErrorMode(queue.DeleteOnError).OnError(failed.notify).BuildQueue()))
		must(t, q.PutMulti(ctx, "a", "b", "c"))
		must(t, q.Put(ctx, "d"))
		if diff := cmp.Diff([]string{"a", "b", "c", "d"}, got.await(4)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, want := range []string{"broken", "beyond repair"} {
			if err := failed.next(t); !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		awaitNothing(t, connect)
	})
}

func TestConsumerGetsInfoOfItem(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	infos := make(chan queue.Info, 1)
	q := start(t, built(builder(t, newClient(t, connect), func(ctx context.Context, _ string) error {
		infos <- queue.InfoOf(ctx)
		return nil
	}).BuildPriorityQueue(0)))
	paths := make(chan string, 1)
	q.AddPutListener(func(_ context.Context, ev queue.PutEvent[string]) { paths <- ev.Path })
	must(t, q.Put(ctx, "a", -7))
	info := <-infos
	if path := <-paths; info.Path != path || info.Priority != -7 || time.Since(info.Put).Abs() > time.Hour {
		t.Errorf("info %+v of %s", info, path)
	}
	if info := queue.InfoOf(ctx); info != (queue.Info{}) {
		t.Errorf("info %+v of another context", info)
	}
}

// In Java: TestDistributedQueue.testCustomExecutor.
func TestConcurrencyBoundsTheCallsOfTheConsumer(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		const n = 4
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		got := newBasket(t)
		var running, most atomic.Int32
		together := make(chan struct{})
		consume := func(ctx context.Context, item string) error {
			now := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			if now == n {
				select {
				case <-together:
				default:
					close(together)
				}
			}
			select { // the first ones wait until they are as many as they may be
			case <-together:
			case <-testenv.Context(t).Done():
			}
			return got.consume(ctx, item)
		}
		q := start(t, built(mode(builder(t, newClient(t, connect), consume)).Concurrency(n).BuildQueue()))
		want := numbered(200)
		for _, item := range want {
			must(t, q.Put(ctx, item))
		}
		items := got.await(len(want))
		slices.Sort(items)
		slices.Sort(want)
		if diff := cmp.Diff(want, items); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if m := most.Load(); m != n {
			t.Errorf("%d at a time, want %d", m, n)
		}
	})
}

// In Java: TestDistributedQueue.testNoDuplicateProcessing.
func TestItemsGoToOneOfTheConsumersEach(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		got := newBasket(t)
		var each [4]atomic.Int32
		var all [4]*queue.DistributedQueue[string]
		for i := range all {
			consume := func(ctx context.Context, item string) error {
				each[i].Add(1)
				return got.consume(ctx, item)
			}
			all[i] = start(t, built(mode(builder(t, newClient(t, connect), consume)).BuildQueue()))
		}
		want := numbered(400)
		for i, item := range want {
			must(t, all[i%len(all)].Put(ctx, item))
		}
		got.await(len(want))
		awaitNothing(t, connect)
		items := got.await(len(want))
		slices.Sort(items)
		slices.Sort(want)
		if diff := cmp.Diff(want, items); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		t.Logf("%v", []int32{each[0].Load(), each[1].Load(), each[2].Load(), each[3].Load()})
	})
}

func TestCloseWaitsForTheConsumer(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		client := newClient(t, connect)
		began, goOn := make(chan context.Context), make(chan struct{})
		var got atomic.Int32
		q := start(t, built(mode(builder(t, client, func(ctx context.Context, _ string) error {
			if got.Add(1) == 1 {
				began <- ctx
				<-goOn
			}
			return nil
		})).FinalFlushTime(time.Minute).BuildQueue()))
		must(t, q.Put(ctx, "a"))
		work := <-began
		closed := make(chan error)
		go func() { closed <- q.Close() }()
		puts := 0
		for err := q.Put(ctx, "late"); !errors.Is(err, queue.ErrClosed); err = q.Put(ctx, "late") {
			must(t, err)
			puts++
			time.Sleep(time.Millisecond) // until Close has begun
		}
		select {
		case err := <-closed:
			t.Fatalf("closed while the consumer is at work: %v", err)
		default:
		}
		if work.Err() != nil {
			t.Error("the work was ended at once")
		}
		close(goOn)
		must(t, <-closed)
		must(t, q.Close())
		left := len(children(t, connect, queuePath))
		if late := int(got.Load()) - 1; left+late != puts || late < 0 {
			t.Errorf("%d put late, %d of them consumed, %d left", puts, late, left)
		}
	})
}

func TestCloseEndsTheWorkOfAConsumerThatTakesTooLong(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	client := newClient(t, connect)
	began := make(chan struct{})
	failed := newFailures()
	q := built(builder(t, client, func(ctx context.Context, _ string) error {
		close(began)
		<-ctx.Done()
		return context.Cause(ctx)
	}).LockPath(lockPath).OnError(failed.notify).FinalFlushTime(10 * time.Millisecond).BuildQueue())
	must(t, q.Start())
	must(t, q.Put(ctx, "a"))
	<-began
	if err := q.Close(); err != nil && !errors.Is(err, queue.ErrClosed) { // the time is up: it may not be settled yet
		t.Errorf("close: %v", err)
	}
	if err := failed.next(t); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("the work ended with %v", err)
	}
	// It is there for others.
	got := newBasket(t)
	start(t, built(builder(t, client, got.consume).LockPath(lockPath).BuildQueue()))
	got.await(1)
	awaitNothing(t, connect)
}

// In Java: TestDistributedQueue.testSafetyWithCrash.
func TestItemOfAConsumerWhoseSessionEndsIsConsumedByAnother(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	first := newClient(t, connect)
	began, failed := make(chan context.Context, 1), newFailures()
	var again atomic.Bool
	q := start(t, built(builder(t, first, func(ctx context.Context, _ string) error {
		if again.Swap(true) { // it may be faster than the other one, with its next session
			return nil
		}
		began <- ctx
		<-ctx.Done()
		return context.Cause(ctx)
	}).LockPath(lockPath).OnError(failed.notify).BuildQueue()))
	must(t, q.Put(ctx, "a"))
	work := <-began
	// Another consumer, idle: the queue itself does not change when the lock goes.
	got := newBasket(t)
	start(t, built(builder(t, newClient(t, connect), got.consume).LockPath(lockPath).BuildQueue()))
	must(t, testenv.Server(t).ExpireSession(first.SessionID()))
	<-work.Done()
	if err := context.Cause(work); !errors.Is(err, queue.ErrLockLost) {
		t.Errorf("the work ended with %v", err)
	}
	if err := failed.next(t); !errors.Is(err, queue.ErrLockLost) {
		t.Errorf("got %v", err)
	}
	testenv.Eventually(t, func() bool { return len(children(t, connect, queuePath)) == 0 }, "it is consumed")
	awaitNothing(t, connect)
}

func TestLockedItemIsLeftAlone(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	client := newClient(t, connect)
	producer := start(t, built(builder(t, client, nil).LockPath(lockPath).BuildQueue()))
	paths := make(chan string, 2)
	producer.AddPutListener(func(_ context.Context, ev queue.PutEvent[string]) { paths <- ev.Path })
	must(t, producer.Put(ctx, "locked"))
	must(t, producer.Put(ctx, "free"))
	locked := <-paths
	lock := lockPath + strings.TrimPrefix(locked, queuePath)
	if _, err := client.Create().ForPath(ctx, lock, nil); err != nil {
		t.Fatal(err)
	}
	got := newBasket(t)
	start(t, built(builder(t, newClient(t, connect), got.consume).LockPath(lockPath).BuildQueue()))
	if diff := cmp.Diff([]string{"free"}, got.await(1)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	testenv.Eventually(t, func() bool { return len(children(t, connect, queuePath)) == 1 }, "the free one is gone")
	must(t, client.Delete().ForPath(ctx, lock))
	if diff := cmp.Diff([]string{"free", "locked"}, got.await(2)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	awaitNothing(t, connect)
}

// In Java: TestLongNetworkPartition, CURATOR-623.
func TestQueueGoesOnInTheNextSession(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		client := newClient(t, connect)
		got := newBasket(t)
		q := start(t, built(mode(builder(t, client, got.consume)).BuildQueue()))
		for i := range 3 {
			must(t, q.Put(ctx, fmt.Sprint(i)))
			got.await(i + 1)
			awaitNothing(t, connect)
			_, err := client.CheckExists().ForPath(ctx, "/") // behind the answer to the settlement, which has come
			must(t, err)
			session := client.Session()
			must(t, testenv.Server(t).ExpireSession(session.ID()))
			<-session.Context().Done()
		}
		must(t, q.Put(ctx, "3"))
		got.await(4)
	})
}

func TestQueueWhosePathIsDeletedGoesOn(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		client := newClient(t, connect)
		got := newBasket(t)
		q := start(t, built(mode(builder(t, client, got.consume)).BuildQueue()))
		must(t, q.Put(ctx, "a"))
		got.await(1)
		awaitNothing(t, connect)
		for _, path := range []string{queuePath, lockPath} {
			must(t, client.Delete().Quietly().ForPath(ctx, path))
		}
		must(t, q.Put(ctx, "b"))
		must(t, q.FlushPuts(ctx))
		got.await(2)
		awaitNothing(t, connect)
	})
}

func TestConsumerOfAClosedClientEnds(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client, err := framework.New(connect)
	must(t, err)
	must(t, client.Start())
	q := built(builder(t, client, newBasket(t).consume).OnError(newFailures().notify).BuildQueue())
	must(t, q.Start())
	must(t, client.BlockUntilConnected(testenv.Context(t)))
	must(t, client.Close())
	must(t, q.Close())
}
