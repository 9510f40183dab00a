package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/retry"
)

const (
	shardsPath = "/shards"
	threshold  = 6
)

// fakeLeader leads when its test says so, and counts the calls: one when a queue is full.
type fakeLeader struct {
	leads atomic.Bool
	asked atomic.Int32
}

func leading(leads bool) *fakeLeader {
	l := &fakeLeader{}
	l.leads.Store(leads)
	return l
}

func (l *fakeLeader) HasLeadership() bool {
	l.asked.Add(1)
	return l.leads.Load()
}

// awaitChecks waits until full queues were found a few times more.
func (l *fakeLeader) awaitChecks(tb testing.TB) {
	tb.Helper()
	before := l.asked.Load()
	testenv.Eventually(tb, func() bool { return l.asked.Load() >= before+3 }, "full queues are found")
}

type (
	stringQueue   = *queue.DistributedQueue[string]
	stringSharder = *queue.QueueSharder[stringQueue]
)

// sharder returns a sharder of queues of strings, which looks at them all the time.
func sharder(
	tb testing.TB, client *framework.Client, l queue.Leader, consumer queue.Consumer[string], opts ...queue.SharderOption,
) stringSharder {
	tb.Helper()
	allocate := func(path string) (stringQueue, error) {
		return queue.NewBuilder(client, consumer, codec.Text{}, path).BuildQueue()
	}
	return queue.NewQueueSharder(client, allocate, shardsPath, l, append([]queue.SharderOption{
		queue.WithNewQueueThreshold(threshold),
		queue.WithThresholdCheck(time.Millisecond),
		queue.WithOnError(func(_ context.Context, err error) { tb.Errorf("in the background: %v", err) }),
	}, opts...)...)
}

// fill puts items in the queues that a sharder chooses.
func fill(tb testing.TB, s stringSharder, items ...string) {
	tb.Helper()
	ctx := testenv.Context(tb)
	for _, item := range items {
		q, err := s.Queue(ctx)
		must(tb, err)
		must(tb, q.Put(ctx, item))
		must(tb, q.FlushPuts(ctx))
	}
}

// awaitShards waits until a sharder has n queues, and returns their paths.
func awaitShards[Q queue.Shard](tb testing.TB, s *queue.QueueSharder[Q], n int) []string {
	tb.Helper()
	testenv.Eventually(tb, func() bool { return s.ShardQty() >= n }, fmt.Sprintf("%d queues", n))
	return s.QueuePaths()
}

// chosen returns how often each of the queues is chosen of a hundred times.
func chosen(tb testing.TB, s stringSharder) map[stringQueue]int {
	tb.Helper()
	times := make(map[stringQueue]int)
	for range 100 {
		q, err := s.Queue(testenv.Context(tb))
		must(tb, err)
		times[q]++
	}
	return times
}

func TestSharderThatMakesNoSense(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t))
	allocate := func(path string) (*fakeShard, error) { return &fakeShard{}, nil }
	tests := map[string]*queue.QueueSharder[*fakeShard]{
		"path":      queue.NewQueueSharder(client, allocate, "shards", leading(true)),
		"allocator": queue.NewQueueSharder[*fakeShard](client, nil, shardsPath, leading(true)),
		"leader":    queue.NewQueueSharder(client, allocate, shardsPath, nil),
		"threshold": queue.NewQueueSharder(client, allocate, shardsPath, leading(true), queue.WithNewQueueThreshold(0)),
		"check":     queue.NewQueueSharder(client, allocate, shardsPath, leading(true), queue.WithThresholdCheck(0)),
		"queues":    queue.NewQueueSharder(client, allocate, shardsPath, leading(true), queue.WithMaxQueues(0)),
	}
	for name, s := range tests {
		if err := s.Start(); err == nil || !strings.HasPrefix(err.Error(), "queue: ") {
			t.Errorf("%s: %v", name, err)
		}
		must(t, s.Close())
	}
}

func TestLifeOfASharder(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	s := sharder(t, client, leading(true), nil)
	if _, err := s.Queue(ctx); !errors.Is(err, queue.ErrNotStarted) || s.ShardQty() != 0 {
		t.Errorf("queue before the start: %v", err)
	}
	must(t, s.Start())
	if err := s.Start(); !errors.Is(err, queue.ErrStarted) {
		t.Errorf("second start: %v", err)
	}
	q, err := s.Queue(ctx)
	must(t, err)
	must(t, q.Put(ctx, "a"))
	must(t, s.Close())
	must(t, s.Close())
	if q.State() != queue.Closed {
		t.Errorf("the queue is not closed")
	}
	if _, err := s.Queue(ctx); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("queue after close: %v", err)
	}
	if err := s.Start(); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("start after close: %v", err)
	}
	must(t, sharder(t, client, leading(true), nil).Close())
}

func TestFirstShardIsMadeAtTheStart(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	client := newClient(t, connect, framework.WithDefaultData([]byte("10.0.0.1")))
	s := start(t, sharder(t, client, leading(false), nil))
	fill(t, s, "a")
	paths := s.QueuePaths()
	const uuid = "00000000-0000-4000-8000-000000000000"
	if len(paths) != 1 || s.ShardQty() != 1 || len(paths[0]) != len(shardsPath+"/queue-"+uuid) ||
		!strings.HasPrefix(paths[0], shardsPath+"/queue-") {
		t.Fatalf("queues %q", paths)
	}
	var stat zk.Stat
	data, err := client.GetData().StoringStatIn(&stat).ForPath(ctx, paths[0])
	if err != nil || string(data) != "10.0.0.1" || stat.NumChildren != 1 {
		t.Errorf("queue %q, %+v, %v", data, stat, err)
	}
	if data, err := client.GetData().ForPath(ctx, shardsPath); err != nil || len(data) > 0 {
		t.Errorf("parent %q, %v", data, err)
	}
	// What is not a shard is left alone.
	_, err = client.Create().ForPath(ctx, shardsPath+"/locks", nil)
	must(t, err)
	other := start(t, sharder(t, client, leading(false), nil))
	if diff := cmp.Diff(paths, awaitShards(t, other, 1)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLeaderAddsAShardWhenOneIsFull(t *testing.T) {
	t.Parallel()
	client := newClient(t, testenv.ConnectString(t))
	l := leading(false)
	reported := make(chan error)
	s := start(t, sharder(t, client, l, nil, queue.WithMaxQueues(2), queue.WithOnError(func(_ context.Context, err error) {
		select {
		case reported <- err:
		default: // at each check
		}
	})))
	fill(t, s, numbered(threshold-1)...)
	first := awaitShards(t, s, 1)
	fill(t, s, "the last")
	l.awaitChecks(t)
	if diff := cmp.Diff(first, s.QueuePaths()); diff != "" {
		t.Errorf("without leadership (-want +got):\n%s", diff)
	}
	full := chosen(t, s) // it is all there is
	if len(full) != 1 {
		t.Errorf("%d queues are chosen", len(full))
	}
	l.leads.Store(true)
	awaitShards(t, s, 2)
	fresh := chosen(t, s)
	for q := range full {
		if fresh[q] > 0 || len(fresh) != 1 {
			t.Errorf("a full queue is chosen: %v", fresh)
		}
	}
	// The second is full, too, and there may be no more.
	fill(t, s, numbered(threshold)...)
	if err := <-reported; !errors.Is(err, queue.ErrMaxQueues) || s.ShardQty() != 2 {
		t.Fatalf("got %v, %d queues", err, s.ShardQty())
	}
	testenv.Eventually(t, func() bool { return len(chosen(t, s)) == 2 }, "both are chosen")
	// Where it becomes less again it is chosen again, not before it is much less.
	remove := func(n int) {
		names, err := client.GetChildren().ForPath(testenv.Context(t), first[0])
		must(t, err)
		for _, name := range names[:n] {
			must(t, client.Delete().ForPath(testenv.Context(t), first[0]+"/"+name))
		}
	}
	remove(1)
	l.awaitChecks(t)
	if got := chosen(t, s); len(got) != 2 {
		t.Errorf("chosen %v", got)
	}
	remove(threshold/2 - 1)
	testenv.Eventually(t, func() bool {
		got := chosen(t, s)
		for q := range full {
			return len(got) == 1 && got[q] > 0
		}
		return false
	}, "the emptied one is chosen alone")
}

func TestShardWhoseNodeIsDeletedIsKept(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect)
	s := start(t, sharder(t, client, leading(true), nil))
	paths := awaitShards(t, s, 1)
	must(t, client.Delete().ForPath(ctx, paths[0]))
	proxy.Faults().ResetTrace()
	testenv.Eventually(t, func() bool { return requests(proxy.Faults())["getChildren2"] >= 3 }, "a few checks")
	if diff := cmp.Diff(paths, s.QueuePaths()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	fill(t, s, "a") // which makes it anew
	if n := len(children(t, testenv.Addr(t)+chroot, paths[0])); n != 1 {
		t.Errorf("%d items", n)
	}
}

// In Java: TestQueueSharder.testDistribution.
func TestItemsSpreadOverShards(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	s := start(t, sharder(t, newClient(t, connect), leading(true), nil))
	for n := 0; s.ShardQty() < 5; n++ {
		fill(t, s, fmt.Sprint(n))
	}
	notFull := 0
	for _, path := range s.QueuePaths() {
		if len(children(t, connect, path)) < threshold {
			notFull++
		}
	}
	if notFull > 1 {
		t.Errorf("%d queues are not full", notFull)
	}
}

// In Java: TestQueueSharder.testSharderWatchSync.
func TestShardsOfOthersAreFound(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	latches := make([]*leader.LeaderLatch, 2)
	sharders := make([]stringSharder, 2)
	for i := range sharders {
		client := newClient(t, connect)
		latches[i] = start(t, leader.NewLeaderLatch(client, "/leader"))
		if i == 0 {
			_, err := latches[0].Await(testenv.Context(t))
			must(t, err)
		}
		sharders[i] = start(t, sharder(t, client, latches[i], nil, queue.WithMaxQueues(1000)))
		awaitShards(t, sharders[i], 1)
	}
	for n := 0; sharders[0].ShardQty() < 3 || sharders[1].ShardQty() < 3; n++ {
		fill(t, sharders[n%2], fmt.Sprint(n))
	}
	must(t, latches[0].Close()) // and the other leads
	for before := sharders[0].ShardQty(); sharders[0].ShardQty() == before; {
		fill(t, sharders[0], "a")
	}
	testenv.Eventually(t, func() bool {
		return slices.Equal(sharders[0].QueuePaths(), sharders[1].QueuePaths())
	}, "both have the same queues")
}

// In Java: TestQueueSharder.testSimpleDistributedQueue.
func TestShardsAreConsumedAndFoundAgain(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	producer := sharder(t, client, leading(true), nil)
	must(t, producer.Start())
	items := 0
	for ; producer.ShardQty() < 3; items++ {
		fill(t, producer, fmt.Sprint(items))
	}
	paths := producer.QueuePaths()
	must(t, producer.Close())
	got := newBasket(t)
	consumer := start(t, sharder(t, client, leading(false), got.consume))
	if diff := cmp.Diff(paths, awaitShards(t, consumer, 3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	fill(t, consumer, "the last")
	seen := map[string]bool{}
	for _, item := range got.await(items + 1) {
		seen[item] = true
	}
	if len(seen) != items+1 {
		t.Errorf("%d of %d items", len(seen), items+1)
	}
}

func TestSharderWaitsForAConnection(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	server := testenv.NewServer(t)
	must(t, server.Stop())
	client := newClient(t, server.ConnectString(), framework.WithRetryPolicy(retry.NTimes(1, time.Millisecond)))
	s := start(t, sharder(t, client, leading(false), nil))
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := s.Queue(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("queue without a server: %v", err)
	}
	closing := sharder(t, client, leading(false), nil)
	must(t, closing.Start())
	waited := make(chan error)
	go func() {
		_, err := closing.Queue(ctx)
		waited <- err
	}()
	must(t, closing.Close())
	if err := <-waited; !errors.Is(err, queue.ErrClosed) {
		t.Errorf("queue of a closed sharder: %v", err)
	}
	must(t, server.Restart())
	if _, err := s.Queue(ctx); err != nil {
		t.Error(err)
	}
}

func TestSharderOfAClosedClient(t *testing.T) {
	t.Parallel()
	client, err := framework.New(testenv.ConnectString(t))
	must(t, err)
	must(t, client.Start())
	failed := newFailures()
	s := sharder(t, client, leading(true), nil, queue.WithOnError(failed.notify))
	must(t, s.Start())
	_, err = s.Queue(testenv.Context(t))
	must(t, err)
	must(t, client.Close())
	if err := failed.next(t); !errors.Is(err, framework.ErrClosed) {
		t.Errorf("got %v", err)
	}
	must(t, s.Close())
	if n := len(failed.errs); n > 0 {
		t.Errorf("got %d times more", n)
	}
}

// fakeShard is a queue that cannot do everything.
type fakeShard struct {
	start func() error
	close error
}

func (f *fakeShard) Start() error {
	if f.start == nil {
		return nil
	}
	return f.start()
}

func (f *fakeShard) Close() error { return f.close }

func TestShardThatCannotBeBuiltIsTriedAgain(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	broken := errors.New("broken")
	tries := []func() (*fakeShard, error){
		func() (*fakeShard, error) { return nil, broken },
		func() (*fakeShard, error) { return &fakeShard{start: func() error { return broken }}, nil },
		func() (*fakeShard, error) { panic(broken) },
		func() (*fakeShard, error) { return &fakeShard{close: broken}, nil },
	}
	failed := newFailures()
	s := queue.NewQueueSharder(client, func(string) (*fakeShard, error) {
		next := tries[0]
		tries = tries[1:]
		return next()
	}, shardsPath, leading(true), queue.WithThresholdCheck(time.Millisecond), queue.WithOnError(failed.notify))
	must(t, s.Start())
	for range 3 {
		if err := failed.next(t); !strings.Contains(err.Error(), "broken") || !strings.Contains(err.Error(), shardsPath) {
			t.Errorf("got %v", err)
		}
	}
	_, err := s.Queue(testenv.Context(t))
	must(t, err)
	if n := len(children(t, connect, shardsPath)); n != 1 {
		t.Errorf("%d queues", n)
	}
	for range 2 {
		if err := s.Close(); !errors.Is(err, broken) {
			t.Errorf("close: %v", err)
		}
	}
}

// TestNoShardIsAddedWhileOneCannotBeBuilt has an allocator that fails for each but the first, which is full.
func TestNoShardIsAddedWhileOneCannotBeBuilt(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	var first string
	failed := newFailures()
	s := queue.NewQueueSharder(client, func(path string) (*fakeShard, error) {
		if first == "" {
			first = path
			return &fakeShard{start: func() error {
				_, err := client.Create().ForPath(testenv.Context(t), path+"/item", nil)
				return err
			}}, nil
		}
		return nil, errors.New("broken")
	}, shardsPath, leading(true), queue.WithNewQueueThreshold(1), queue.WithThresholdCheck(time.Millisecond),
		queue.WithOnError(failed.notify))
	must(t, s.Start())
	for range 5 {
		if err := failed.next(t); !strings.Contains(err.Error(), "broken") {
			t.Errorf("got %v", err)
		}
	}
	must(t, s.Close())
	if n := len(children(t, connect, shardsPath)); n != 2 {
		t.Errorf("%d queues", n)
	}
}

// leaderFunc is a leader of the user.
type leaderFunc func() bool

func (f leaderFunc) HasLeadership() bool { return f() }

func TestSharderLeaderThatPanicsIsReportedAndAskedAgain(t *testing.T) {
	t.Parallel()
	client := newClient(t, testenv.ConnectString(t))
	var calls atomic.Int32
	failed := newFailures()
	s := start(t, sharder(t, client, leaderFunc(func() bool {
		if calls.Add(1) == 1 {
			panic("broken leader")
		}
		return true
	}), nil, queue.WithOnError(failed.notify)))
	fill(t, s, numbered(threshold)...)
	if err := failed.next(t); !strings.Contains(err.Error(), "broken leader") {
		t.Errorf("got %v", err)
	}
	awaitShards(t, s, 2)
}

func TestSharderCloseWithQueueThatPanicsReturnsError(t *testing.T) {
	t.Parallel()
	client := newClient(t, testenv.ConnectString(t))
	allocate := func(string) (panicking, error) { return panicking{}, nil }
	s := queue.NewQueueSharder(client, allocate, shardsPath, leading(true))
	must(t, s.Start())
	_, err := s.Queue(testenv.Context(t))
	must(t, err)
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "broken close") {
		t.Errorf("close: %v", err)
	}
}

// panicking is a queue whose Close panics.
type panicking struct{}

func (panicking) Start() error { return nil }
func (panicking) Close() error { panic("broken close") }

func TestSharderErrorsWithoutHandlerGoToClient(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	client := newClient(t, connect)
	readOnly := client.Create().WithACL(zk.WorldACL(zk.PermRead)...)
	_, err := readOnly.ForPath(ctx, shardsPath, nil)
	must(t, err)
	heard := make(chan error, 100)
	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) { heard <- e.Err })
	allocate := func(string) (*fakeShard, error) { return &fakeShard{}, nil }
	every := queue.WithThresholdCheck(time.Hour) // an hour is not waited for as long as there is no queue
	s := start(t, queue.NewQueueSharder(client, allocate, shardsPath, leading(true), every, queue.WithOnError(nil)))
	for range 2 {
		if err := <-heard; !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("got %v", err)
		}
	}
	must(t, s.Close())
	panics := queue.WithOnError(func(context.Context, error) { panic("not again") })
	start(t, queue.NewQueueSharder(client, allocate, shardsPath, leading(true), every, panics))
	for err := range heard {
		if errors.Is(err, zk.ErrNoAuth) && strings.Contains(err.Error(), "not again") {
			break
		}
	}
}

// TestSharderWithLostReplies cuts the connection before and after each request of a start in turn.
func TestSharderWithLostReplies(t *testing.T) {
	t.Parallel()
	testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
		chroot := testenv.Chroot(t)
		proxy, connect := newProxy(t, chroot)
		client := newClient(t, connect)
		must(t, client.BlockUntilConnected(testenv.Context(t)))
		injection := proxy.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
		s := start(t, sharder(t, client, leading(true), nil, queue.WithThresholdCheck(time.Hour)))
		awaitShards(t, s, 1)
		if n := len(children(t, testenv.Addr(t)+chroot, shardsPath)); n != 1 {
			t.Errorf("%v of request %d: %d queues", action, k, n)
		}
		return injection.Hits() > 0
	})
}

// However many sharders find no queue at the same time, or a full one, one adds it.
func TestShardersThatStartAtOnceAddOneQueue(t *testing.T) {
	t.Parallel()
	const n = 6
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		observer := clientAt(t, place, chroot)
		held := place.Faults().Add(curatortest.Rule{
			Ops: []string{"create2", "multi"}, Path: "/**/queue-*", Action: curatortest.HoldRequest,
		})
		var sharders []stringSharder
		for range n {
			client := clientAt(t, place, chroot)
			s := sharder(t, client, leading(true), nil, queue.WithMaxQueues(1), queue.WithThresholdCheck(time.Second))
			sharders = append(sharders, start(t, s))
		}
		testenv.Eventually(t, func() bool { return held.Hits() >= n }, "each has found that there is no queue")
		held.Remove()
		for _, s := range sharders {
			awaitShards(t, s, 1)
		}
		names, err := observer.GetChildren().ForPath(testenv.Context(t), shardsPath)
		must(t, err)
		if len(names) != 1 {
			t.Errorf("queues %q", names)
		}
		for _, s := range sharders {
			if paths := s.QueuePaths(); len(paths) != 1 || paths[0] != shardsPath+"/"+names[0] {
				t.Errorf("a sharder has %q", paths)
			}
		}
	})
}

// The path is a container, which a server removes if it stays empty.
func TestShardIsAddedToAPathThatGoesAwayMeanwhile(t *testing.T) {
	t.Parallel()
	for what, op := range map[string]string{"before it is read": "getData", "before the queue is added": "multi"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
				held := place.Faults().Add(curatortest.Rule{
					Ops: []string{op}, SessionID: client.SessionID(), Count: 1, Action: curatortest.HoldRequest,
				})
				s := start(t, sharder(t, client, leading(true), nil))
				must(t, held.Wait(ctx))
				must(t, other.Delete().ForPath(ctx, shardsPath))
				held.Release()
				fill(t, s, "a")
			})
		})
	}
}

// What the path of the queues holds is as it was.
func TestAddingAShardKeepsTheDataOfThePath(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t), framework.WithDefaultData([]byte("default")))
	for _, data := range []string{"", "of somebody"} {
		_, err := client.Create().ForPath(ctx, shardsPath, []byte(data))
		must(t, err)
		s := sharder(t, client, leading(true), nil)
		must(t, s.Start())
		awaitShards(t, s, 1)
		must(t, s.Close())
		if got, err := client.GetData().ForPath(ctx, shardsPath); err != nil || string(got) != data {
			t.Errorf("data %q, %v, want %q", got, err, data)
		}
		deletePath(t, client, shardsPath)
	}
}

// TestQueueOfSharderWhoseClientIsClosed has no queue when the client is closed, so that none ever comes.
func TestQueueOfSharderWhoseClientIsClosed(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client := clientAt(t, place, chroot)
		onError := queue.WithOnError(func(context.Context, error) {})
		s := start(t, sharder(t, client, leading(false), nil, onError)) // no queue comes
		must(t, client.Close())
		if _, err := s.Queue(testenv.Context(t)); !errors.Is(err, framework.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := sharder(t, client, leading(true), nil).Start(); !errors.Is(err, framework.ErrClosed) {
			t.Errorf("Start: %v", err)
		}
	})
}

// TestSharderLeavesPathsBesideItsQueuesAlone has queues with lock paths and dead letters below the sharder's path.
func TestSharderLeavesPathsBesideItsQueuesAlone(t *testing.T) {
	t.Parallel()
	client, l := newClient(t, testenv.ConnectString(t)), leading(true)
	allocate := func(path string) (stringQueue, error) {
		return queue.NewBuilder(client, nil, codec.Text{}, path).
			LockPath(path + "-locks").DeadLetterPath(path + "-dead").BuildQueue()
	}
	s := start(t, queue.NewQueueSharder(client, allocate, shardsPath, l,
		queue.WithNewQueueThreshold(1), queue.WithThresholdCheck(time.Millisecond), queue.WithMaxQueues(2),
		queue.WithOnError(func(_ context.Context, err error) {
			if !errors.Is(err, queue.ErrMaxQueues) {
				t.Errorf("in the background: %v", err)
			}
		})))
	fill(t, s, "a") // its paths are there
	for _, path := range awaitShards(t, s, 2) {
		q, err := allocate(path)
		must(t, err)
		must(t, start(t, q).Put(testenv.Context(t), "b"))
	}
	l.awaitChecks(t)
	l.awaitChecks(t)
	if paths := s.QueuePaths(); len(paths) != 2 {
		t.Errorf("queues at %q", paths)
	}
}
