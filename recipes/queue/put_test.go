package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/retry"
)

func TestBuilderRefusesWhatMakesNoSense(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t))
	ok := queue.NewBuilder(client, nil, codec.Text{}, queuePath)
	tests := map[string]queue.Builder[string]{
		"path":             queue.NewBuilder(client, nil, codec.Text{}, "queue"),
		"codec":            queue.NewBuilder[string](client, nil, nil, queuePath),
		"lock path":        ok.LockPath("locks"),
		"dead letters":     ok.DeadLetterPath("//"),
		"the same path":    ok.LockPath(queuePath),
		"two in one path":  ok.LockPath(lockPath).DeadLetterPath(lockPath),
		"max items":        ok.MaxItems(0),
		"window":           ok.PutWindow(-1),
		"prefetch":         ok.Prefetch(-1),
		"concurrency":      ok.Concurrency(0),
		"error mode":       ok.ErrorMode(7),
		"requeue no locks": ok.ErrorMode(queue.RequeueOnError),
		"final flush":      ok.FinalFlushTime(-time.Second),
	}
	for name, b := range tests {
		if q, err := b.BuildQueue(); err == nil || q != nil {
			t.Errorf("%s: %v, %v", name, q, err)
		}
	}
	if _, err := ok.BuildPriorityQueue(-1); err == nil {
		t.Error("a refresh after -1 items")
	}
	if _, err := ok.BuildQueue(); err != nil {
		t.Error(err)
	}
}

func TestLifeOfAQueue(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	q := built(builder(t, client, newBasket(t).consume).BuildQueue())
	if q.State() != queue.Latent {
		t.Errorf("state %v", q.State())
	}
	if err := q.Put(ctx, "a"); !errors.Is(err, queue.ErrNotStarted) {
		t.Errorf("put before the start: %v", err)
	}
	must(t, q.Start())
	if err := q.Start(); !errors.Is(err, queue.ErrStarted) || q.State() != queue.Started {
		t.Errorf("second start: %v, state %v", err, q.State())
	}
	for _, err := range q.Items(ctx) {
		if !errors.Is(err, queue.ErrHasConsumer) {
			t.Errorf("items beside the consumer: %v", err)
		}
	}
	must(t, q.Close())
	must(t, q.Close())
	if err := q.Put(ctx, "a"); !errors.Is(err, queue.ErrClosed) || q.State() != queue.Closed {
		t.Errorf("put after close: %v, state %v", err, q.State())
	}
	if err := q.Start(); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("start after close: %v", err)
	}
	never := built(builder(t, client, nil).BuildQueue())
	must(t, never.Close())
}

func TestPutListenersAreCalledInOrder(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	q := start(t, built(builder(t, newClient(t, connect), nil).BuildQueue()))
	var reported []string
	q.AddPutListener(func(_ context.Context, ev queue.PutEvent[string]) {
		reported = append(reported, ev.Items...)
		if ev.Err != nil || !strings.HasPrefix(ev.Path, queuePath+"/queue-") {
			t.Errorf("got %+v", ev)
		}
	})
	q.AddPutListener(func(context.Context, queue.PutEvent[string]) { panic("a listener") })
	want := numbered(100)
	for _, item := range want[:98] {
		must(t, q.Put(ctx, item))
	}
	must(t, q.PutMulti(ctx, want[98:]...))
	must(t, q.FlushPuts(ctx))
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFailedPutIsReported(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	client := newClient(t, connect)
	if _, err := client.Create().WithACL(zk.WorldACL(zk.PermRead)...).ForPath(ctx, queuePath, nil); err != nil {
		t.Fatal(err)
	}
	q := built(builder(t, client, nil).BuildQueue())
	must(t, q.Start())
	reported := make(chan error, 2)
	q.AddPutListener(func(_ context.Context, ev queue.PutEvent[string]) { reported <- ev.Err })
	must(t, q.Put(ctx, "a"))
	must(t, q.Put(ctx, "b"))
	if err := q.FlushPuts(ctx); !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), "2 puts") {
		t.Errorf("flush: %v", err)
	}
	must(t, q.FlushPuts(ctx)) // which reports it once
	for range 2 {
		if err := <-reported; !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("listener gets %v", err)
		}
	}
	must(t, q.Put(ctx, "c"))
	if err := q.Close(); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("close: %v", err)
	}
}

func TestPutsWaitForAConnection(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx := testenv.Context(t)
		server := testenv.NewServer(t)
		must(t, server.Stop())
		client := newClient(t, server.ConnectString(), framework.WithRetryPolicy(retry.NTimes(1, time.Millisecond)))
		q := start(t, built(mode(builder(t, client, nil)).PutWindow(3).BuildQueue()))
		want := numbered(3)
		for _, item := range want {
			must(t, q.Put(ctx, item))
		}
		full, cancel := context.WithCancel(ctx)
		cancel()
		if err := q.Put(full, "beyond the window"); !errors.Is(err, context.Canceled) {
			t.Errorf("put beyond the window: %v", err)
		}
		if err := q.FlushPuts(full); !errors.Is(err, context.Canceled) {
			t.Errorf("flush: %v", err)
		}
		must(t, server.Restart())
		must(t, q.FlushPuts(ctx))
		got := newBasket(t)
		start(t, built(mode(builder(t, client, got.consume)).BuildQueue()))
		if diff := cmp.Diff(want, got.await(3)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestCloseGivesUpWhatItCannotFlush(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx := testenv.Context(t)
		proxy, connect := newProxy(t, testenv.Chroot(t))
		client := newClient(t, connect)
		q := built(mode(builder(t, client, nil)).FinalFlushTime(50 * time.Millisecond).BuildQueue())
		must(t, q.Start())
		must(t, q.Put(ctx, "a"))
		must(t, q.FlushPuts(ctx))
		restore := proxy.Faults().RefuseConnects()
		defer restore()
		proxy.Faults().CutAll()
		for client.IsConnected() {
			time.Sleep(time.Millisecond)
		}
		reported := make(chan error, 1)
		q.AddPutListener(func(_ context.Context, ev queue.PutEvent[string]) { reported <- ev.Err })
		must(t, q.Put(ctx, "b"))
		if err := q.Close(); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("close: %v", err)
		}
		if err := <-reported; !errors.Is(err, queue.ErrClosed) || errors.Is(err, queue.ErrUncertain) {
			t.Errorf("got %v of what was never sent", err)
		}
	})
}

// In Java: TestBoundedDistributedQueue.
func TestBoundedQueueIsNeverMuchLargerThanItsBound(t *testing.T) {
	t.Parallel()
	const bound, clients, each = 5, 3, 40
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	raw := testenv.Raw(t)
	_, chroot, _ := strings.Cut(connect, "/")
	got := newBasket(t)
	consume := func(ctx context.Context, item string) error {
		_, stat, err := raw.Exists("/" + chroot + queuePath)
		if err != nil {
			return err
		}
		if n := int(stat.NumChildren); n > bound+clients {
			t.Errorf("%d nodes", n)
		}
		return got.consume(ctx, item)
	}
	start(t, built(builder(t, newClient(t, connect), consume).BuildQueue()))
	var producers sync.WaitGroup
	for c := range clients {
		q := start(t, built(builder(t, newClient(t, connect), nil).MaxItems(bound).BuildQueue()))
		producers.Go(func() {
			for i := range each {
				if err := q.Put(ctx, fmt.Sprint(c, " ", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	got.await(clients * each)
	producers.Wait()
}

func TestPutToAFullQueueWaits(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	client := newClient(t, connect)
	q := built(builder(t, client, nil).MaxItems(2).BuildQueue())
	must(t, q.Start())
	must(t, q.Put(ctx, "a"))
	must(t, q.Put(ctx, "b"))
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := q.Put(short, "c"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("put to a full queue: %v", err)
	}
	put := make(chan error)
	go func() { put <- q.Put(ctx, "d") }()
	var items queue.Item[string]
	pull := start(t, built(builder(t, client, nil).BuildQueue()))
	for item, err := range pull.Items(ctx) {
		must(t, err)
		items = item
		break
	}
	must(t, <-put)
	if items.Value != "a" {
		t.Errorf("pulled %q", items.Value)
	}
	go func() { put <- q.Put(ctx, "e") }()
	must(t, q.Close())
	if err := <-put; !errors.Is(err, queue.ErrClosed) {
		t.Errorf("put to a queue that is closed: %v", err)
	}
}

type failing struct{ codec.Text }

func (failing) Encode(string) ([]byte, error) { return nil, errors.New("cannot") }

func TestItemThatCannotBeWrittenIsAnErrorOfPut(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	q := start(t, built(queue.NewBuilder(client, nil, failing{}, queuePath).BuildQueue()))
	if err := q.Put(ctx, "a"); err == nil || !strings.Contains(err.Error(), "cannot") {
		t.Errorf("put: %v", err)
	}
	large := built(builder(t, client, nil).BuildQueue())
	must(t, large.Start())
	must(t, large.Put(ctx, strings.Repeat("x", 2<<20)))
	if err := large.FlushPuts(ctx); !errors.Is(err, framework.ErrRequestTooLarge) {
		t.Errorf("put of 2 MiB: %v", err)
	}
	must(t, large.Close())
}

// TestPutWhoseAnswerIsLost has a put take effect without an answer: it is put again where nothing may be lost, and
// reported where nothing may be there twice. Those behind it keep their order.
func TestPutWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
			for cut := range 4 {
				testLostPut(t, mode, action, cut)
			}
		}
	})
}

func testLostPut(t *testing.T, mode modifier, action curatortest.Action, cut int) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	q := built(mode(builder(t, newClient(t, connect), nil)).BuildQueue())
	must(t, q.Start())
	must(t, q.Put(ctx, "first"))
	must(t, q.FlushPuts(ctx))
	uncertain := map[string]bool{}
	q.AddPutListener(func(_ context.Context, ev queue.PutEvent[string]) {
		if ev.Err != nil && !errors.Is(ev.Err, queue.ErrUncertain) {
			t.Errorf("got %v", ev.Err)
		}
		uncertain[ev.Items[0]] = ev.Err != nil
	})
	proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2", "multi"}, Skip: cut, Count: 1, Action: action})
	want := append([]string{"first"}, numbered(200)...) // of which 50 at most go together
	for _, item := range want[1:] {
		must(t, q.Put(ctx, item))
	}
	flushed := q.FlushPuts(ctx)
	var got []string
	seen := map[string]bool{}
	pull := start(t, built(builder(t, newClient(t, testenv.Addr(t)+chroot), nil).BuildQueue()))
	must(t, q.Close())
	n := len(children(t, testenv.Addr(t)+chroot, queuePath))
	next, stop := pullAll(ctx, pull)
	defer stop()
	for range n {
		item := next(t)
		if !seen[item] {
			got = append(got, item)
		}
		if seen[item] && flushed != nil {
			t.Errorf("%v of %d: %q is there twice", action, cut, item)
		}
		seen[item] = true
	}
	if flushed == nil { // nothing is lost, and the first of each are in order
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v of %d (-want +got):\n%s", action, cut, diff)
		}
		return
	}
	for _, item := range want[1:] {
		if !seen[item] && !uncertain[item] {
			t.Errorf("%v of %d: %q is lost without a word", action, cut, item)
		}
	}
}

// TestPutsGoTogether counts the requests of what is put while others are under way.
func TestPutsGoTogether(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 40<<10)
	for name, tt := range map[string]struct {
		items []string
		want  map[string]int
	}{
		"small items":         {numbered(150), map[string]int{"create2": 2, "multi": 3}}, // of 50, 50 and 48
		"items of many bytes": {[]string{"a", "b", large, large, "c", large}, map[string]int{"create2": 4, "multi": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, chroot := testenv.Context(t), testenv.Chroot(t)
			proxy, connect := newProxy(t, chroot)
			q := start(t, built(builder(t, newClient(t, connect), nil).PutWindow(200).BuildQueue()))
			must(t, q.Put(ctx, "first"))
			must(t, q.FlushPuts(ctx))
			proxy.Faults().ResetTrace()
			var put, paths []string
			q.AddPutListener(func(_ context.Context, ev queue.PutEvent[string]) {
				put, paths = append(put, ev.Items...), append(paths, ev.Path)
			})
			held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.HoldReply})
			for i, item := range tt.items {
				must(t, q.Put(ctx, item))
				if i < 2 {
					testenv.Eventually(t, func() bool { return requests(proxy.Faults())["create2"] == i+1 }, "it is sent at once")
				}
			}
			must(t, held.Wait(ctx))
			held.Remove()
			must(t, q.FlushPuts(ctx))
			if diff := cmp.Diff(tt.items, put); diff != "" {
				t.Errorf("put (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, requests(proxy.Faults())); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			for i, name := range children(t, connect, queuePath)[1:] {
				if paths[i] != queuePath+"/"+name {
					t.Errorf("item %d is reported at %s, not %s", i, paths[i], name)
				}
			}
		})
	}
}
