package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// In Java: TestFrameworkBackground.testBasic.
func TestBackgroundResultsInOrderOfSubmission(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	results := newEvents()
	const n = 3000
	for i := range n {
		p := numbered("/a", i)
		var err error
		switch i % 3 {
		case 0:
			err = client.Create().InBackground(results.callback).ForPath(t.Context(), p, []byte{})
		case 1:
			err = client.GetData().InBackground(results.callback).ForPath(t.Context(), p)
		case 2:
			err = client.CheckExists().InBackground(results.callback).ForPath(t.Context(), p)
		}
		must(t, err)
	}
	for i := range n {
		if ev := receive(t, results); ev.Path != numbered("/a", i) {
			t.Fatalf("result %d is that of %s", i, ev.Path)
		}
	}
}

// Java has a test for each: TestFramework.testBackground…WithConcurrentClose; C-673, C-677. Whoever waits
// for a callback must get it.
func TestBackgroundCallbackDuringCloseRunsOnce(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	setUp := connectClient(t, connect)
	create(t, setUp, "/a/b", "")
	tests := map[string]func(t *testing.T) *framework.Client{
		"connected": func(t *testing.T) *framework.Client {
			t.Helper()
			return connectClient(t, connect)
		},
		"in a namespace": func(t *testing.T) *framework.Client {
			t.Helper()
			return connectClient(t, connect, framework.WithNamespace("ns"))
		},
		"never connected": func(t *testing.T) *framework.Client {
			t.Helper()
			return startClient(t, nowhere)
		},
	}
	for name, open := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, op := range operations {
				t.Run(op.name, func(t *testing.T) { closeUnder(t, open(t), op) })
			}
		})
	}
}

// closeUnder closes client while op is submitted again and again.
func closeUnder(t *testing.T, client *framework.Client, op operation) {
	t.Helper()
	const most = 5000
	var called [most]atomic.Int32
	first := make(chan struct{})
	var once sync.Once
	accepted := make(chan int)
	go func() {
		for i := range most {
			err := op.background(t.Context(), client, "/a/b", func(_ context.Context, ev callbacks.Event) {
				called[i].Add(1)
				once.Do(func() { close(first) })
			})
			if err != nil {
				wantErr(t, op.name, err, framework.ErrClosed)
				accepted <- i
				return
			}
			if i == 20 { // without a connection nothing comes back
				once.Do(func() { close(first) })
			}
		}
		accepted <- most
	}()
	<-first
	closeClient(t, client)
	n := <-accepted
	for i := range n {
		if got := called[i].Load(); got != 1 {
			t.Fatalf("callback %d of %d was called %d times", i, n, got)
		}
	}
}

func TestForegroundOperationDuringCloseReturns(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client := connectClient(t, connect)
	create(t, client, "/a/b", "")
	var running, wg sync.WaitGroup
	for _, op := range operations {
		running.Add(1)
		wg.Go(func() {
			_ = op.foreground(testenv.Context(t), client, "/a/b")
			running.Done()
			for {
				began := time.Now()
				err := op.foreground(testenv.Context(t), client, "/a/b")
				if errors.Is(err, framework.ErrClosed) {
					return
				}
				if d := time.Since(began); d > patience/2 {
					t.Errorf("%s took %v", op.name, d)
					return
				}
			}
		})
	}
	running.Wait()
	closeClient(t, client)
	wg.Wait()
}

// C-443, testBackgroundLatencyUnSleep: what waits for the first connection starts the moment that it stands.
func TestBackgroundOperationBeforeFirstConnectionStartsWithIt(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		restore := proxy.Faults().RefuseConnects()
		client := newClient(t, connect, dial)
		recorded := record(client)
		start(t, client)
		results := newEvents()
		for i := range 3 {
			must(t, client.Create().InBackground(results.callback).ForPath(t.Context(), numbered("/a", i), nil))
		}
		recorded.want(t, suspended)
		restore()
		recorded.want(t, connected)
		took(t, 700*time.Millisecond, "three operations", func() {
			for i := range 3 {
				if ev := receive(t, results); ev.Err != nil || ev.Path != numbered("/a", i) {
					t.Errorf("%s: %v", ev.Path, ev.Err)
				}
			}
		})
	})
}

// C-52, TestFrameworkBackground.testCuratorCallbackOnError.
func TestBackgroundOperationWithoutServerFails(t *testing.T) {
	t.Parallel()
	client := startClient(t, nowhere, framework.WithConnectionTimeout(100*time.Millisecond),
		framework.WithRetryPolicy(retry.OneTime(10*time.Millisecond)))
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			results := newEvents()
			must(t, op.background(t.Context(), client, "/a", results.callback))
			ev := receive(t, results)
			switch {
			case op.name == "remove watches": // quietly
				wantErr(t, op.name, ev.Err, nil)
			case offline(op):
				wantErr(t, op.name, ev.Err, framework.ErrNoWatcher)
			default:
				wantErr(t, op.name, ev.Err, framework.ErrConnectionLoss)
			}
		})
	}
}

// In Java: TestFrameworkBackground.testErrorListener.
func TestUnhandledErrorListenerGetsOperationsGivenUp(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client := connectClient(t, connect, framework.WithRetryPolicy(retry.NTimes(1, time.Millisecond)))
	unhandled := make(chan framework.UnhandledError, 10)
	remove := client.AddUnhandledErrorListener(
		func(_ context.Context, e framework.UnhandledError) { unhandled <- e })
	proxy.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Action: curatortest.CutBefore})
	ctx := testenv.Context(t)
	results := newEvents()

	must(t, client.SetData().InBackground(results.callback).ForPath(ctx, "/a", nil))
	wantErr(t, "callback", receive(t, results).Err, framework.ErrConnectionLoss)
	wantErr(t, "listener", receive(t, unhandled).Err, framework.ErrConnectionLoss)

	own := make(chan error, 10) // in place of those of the client
	must(t, client.SetData().InBackground(results.callback).
		WithUnhandledErrorListener(func(_ string, err error) { own <- err }).ForPath(ctx, "/a", nil))
	wantErr(t, "callback", receive(t, results).Err, framework.ErrConnectionLoss)
	wantErr(t, "listener of the operation", receive(t, own), framework.ErrConnectionLoss)

	must(t, client.GetData().InBackground(results.callback).ForPath(ctx, "/none")) // an answer like any other
	wantErr(t, "callback", receive(t, results).Err, zk.ErrNoNode)

	remove()
	must(t, client.SetData().InBackground(results.callback).ForPath(ctx, "/a", nil))
	receive(t, results)
	closeClient(t, client)
	if len(unhandled) > 0 {
		t.Errorf("unhandled: %v", <-unhandled)
	}
}

func TestCallbackOrWatcherPanicIsReported(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	unhandled := make(chan string, 10)
	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
		unhandled <- e.Message + ": " + e.Err.Error()
	})
	client.AddCuratorListener(func(_ context.Context, ev callbacks.Event) {
		if ev.Type == callbacks.Sync {
			panic("in a listener")
		}
	})
	ctx := testenv.Context(t)
	watcher := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
		if ev.Type != zk.EventSession {
			panic("in a watcher")
		}
	})
	if _, err := client.CheckExists().UsingWatcher(watcher).ForPath(ctx, "/a"); err != nil {
		t.Fatal(err)
	}
	create(t, client, "/a", "")
	must(t, client.GetData().InBackground(func(context.Context, callbacks.Event) { panic("in a callback") }).
		ForPath(ctx, "/a"))
	must(t, client.Sync().InBackground(nil).ForPath(ctx, "/a"))
	for _, want := range []string{"in a watcher", "in a callback", "in a listener"} {
		got := receive(t, unhandled)
		if !strings.Contains(got, want) || !strings.Contains(got, "background_test.go") {
			t.Errorf("unhandled %q, want %q and where it was", got, want)
		}
	}
	results := newEvents()
	must(t, client.GetData().InBackground(results.callback).ForPath(ctx, "/a"))
	receive(t, results)
}

func TestCuratorListenerGetsResultsWithoutCallback(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	create(t, client, "/a/b", "")
	recorded := newEvents()
	client.AddCuratorListener(recorded.callback)
	want := map[string]callbacks.EventType{
		"check exists": callbacks.Exists, "check exists with parents": callbacks.Exists,
		"get data": callbacks.GetData, "set data": callbacks.SetData, "set data idempotent": callbacks.SetData,
		"get children": callbacks.Children, "get ACL": callbacks.GetACL, "set ACL": callbacks.SetACL,
		"sync": callbacks.Sync, "transaction": callbacks.Transaction, "add watch": callbacks.AddWatch,
		"remove watches": callbacks.RemoveWatches, "remove all watches": callbacks.RemoveWatches,
		"get config": callbacks.GetConfig, "reconfig": callbacks.Reconfig,
	}
	for _, op := range operations {
		must(t, op.background(t.Context(), client, "/a/b", nil))
		ev := receive(t, recorded)
		typ, ok := want[op.name]
		switch {
		case ok:
		case strings.HasPrefix(op.name, "create"):
			typ = callbacks.Create
		case strings.HasPrefix(op.name, "delete"):
			typ = callbacks.Delete
		}
		if ev.Type != typ {
			t.Errorf("%s: event %v, want %v", op.name, ev.Type, typ)
		}
		if strings.HasPrefix(op.name, "delete") {
			_, err := client.Create().OrSetData().ForPath(testenv.Context(t), "/a/b", nil)
			must(t, err)
		}
	}
	results := newEvents()
	must(t, client.Sync().InBackground(results.callback).ForPath(t.Context(), "/a"))
	receive(t, results)
	for len(recorded) > 0 { // of the watch
		if ev := <-recorded; ev.Type != callbacks.Watched {
			t.Errorf("listeners get %v of an operation with a callback", ev.Type)
		}
	}
}

func TestCuratorListenerGetsWatchEventsAndClosing(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	recorded := newEvents()
	client.AddCuratorListener(recorded.callback)
	ctx := testenv.Context(t)
	if _, err := client.CheckExists().Watched().ForPath(ctx, "/a"); err != nil {
		t.Fatal(err)
	}
	create(t, client, "/a", "")
	ev := receive(t, recorded)
	if ev.Type != callbacks.Watched || ev.Path != "/a" || ev.Watched.Type != zk.EventNodeCreated {
		t.Errorf("event %v of %s: %v, want WATCHED", ev.Type, ev.Path, ev.Watched)
	}
	must(t, client.Sync().InBackground(nil).ForPath(ctx, "/a"))
	if ev := receive(t, recorded); ev.Type != callbacks.Sync {
		t.Errorf("event %v, want SYNC", ev.Type)
	}
	closeClient(t, client)
	if ev := receive(t, recorded); ev.Type != callbacks.Closing {
		t.Errorf("event %v, want CLOSING", ev.Type)
	}
	if len(recorded) > 0 {
		t.Errorf("event %v after the end", (<-recorded).Type)
	}
}

func TestCuratorListenerOfUnstartedClientGetsNoEvent(t *testing.T) {
	client := newClient(t, nowhere)
	recorded := newEvents()
	client.AddCuratorListener(recorded.callback)
	closeClient(t, client)
	if len(recorded) > 0 {
		t.Errorf("event %v", (<-recorded).Type)
	}
}

// In Java: TestFrameworkEdges.testNestedCalls.
func TestCallbackMayCallClient(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	ctx := testenv.Context(t)
	type key struct{}
	done := make(chan error, 1)
	nested := func(ctx context.Context, ev callbacks.Event) {
		if ctx.Value(key{}) != "value" || ctx.Err() != nil {
			done <- fmt.Errorf("context: value %v, %w", ctx.Value(key{}), ctx.Err())
			return
		}
		if _, err := client.Create().ForPath(ctx, "/a", []byte("x")); err != nil {
			done <- err
			return
		}
		data, err := client.GetData().ForPath(ctx, "/a")
		if string(data) != "x" {
			done <- fmt.Errorf("read %q, %w", data, err)
			return
		}
		done <- client.Delete().InBackground(func(_ context.Context, ev callbacks.Event) { done <- ev.Err }).
			ForPath(ctx, "/a")
	}
	// The values of the context reach the callback, its end does not.
	ended, cancel := context.WithCancel(context.WithValue(ctx, key{}, "value"))
	must(t, client.Sync().InBackground(nested).ForPath(ended, "/"))
	cancel()
	for range 2 {
		if err := receive(t, done); err != nil {
			t.Error(err)
		}
	}

	watcher := callbacks.NewWatcher(func(ctx context.Context, ev zk.Event) {
		if ev.Type == zk.EventNodeCreated {
			done <- client.Delete().ForPath(ctx, ev.Path)
		}
	})
	if _, err := client.CheckExists().UsingWatcher(watcher).ForPath(ctx, "/b"); err != nil {
		t.Fatal(err)
	}
	create(t, client, "/b", "")
	if err := receive(t, done); err != nil {
		t.Error(err)
	}
}

// C-495: a callback that blocks delays other callbacks, not the client.
func TestCallbackBlockedDelaysOnlyCallbacks(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client := connectClient(t, connect)
	other := connectClient(t, connect)
	leave := make(chan struct{})
	results, others := newEvents(), newEvents()
	ctx := testenv.Context(t)
	must(t, client.Sync().InBackground(func(context.Context, callbacks.Event) { <-leave }).ForPath(ctx, "/"))
	must(t, client.Sync().InBackground(results.callback).ForPath(ctx, "/"))
	fired := make(chan zk.Event, 1)
	_, err := client.CheckExists().UsingWatcher(callbacks.NewChanWatcher(fired)).ForPath(ctx, "/a")
	must(t, err)
	create(t, client, "/a", "") // the foreground
	receive(t, fired)           // channels
	must(t, other.Sync().InBackground(others.callback).ForPath(ctx, "/"))
	receive(t, others) // other clients
	if len(results) > 0 {
		t.Error("a callback beside another")
	}
	close(leave)
	receive(t, results)
}

func TestBackgroundInvalidArgumentIsReturnedOnly(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	for _, op := range operations {
		if strings.HasSuffix(op.name, "config") { // have no path
			continue
		}
		err := op.background(t.Context(), client, "no/slash", func(context.Context, callbacks.Event) {
			t.Errorf("%s: called back", op.name)
		})
		wantErr(t, op.name, err, zk.ErrInvalidPath)
		wantErr(t, op.name, op.foreground(testenv.Context(t), client, "no/slash"), zk.ErrInvalidPath)
	}
}

func TestBackgroundEventHasReplyOfServer(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	results := newEvents()
	ctx := testenv.Context(t)
	next := func(err error) callbacks.Event {
		t.Helper()
		must(t, err)
		ev := receive(t, results)
		if ev.Err != nil {
			t.Errorf("%v: %v", ev.Type, ev.Err)
		}
		return ev
	}
	ev := next(client.Create().WithMode(builders.PersistentSequential).InBackground(results.callback).
		ForPath(ctx, "/s-", []byte("x")))
	if ev.Path != "/s-" || ev.Name != "/s-0000000000" || ev.Stat == nil {
		t.Errorf("create: %+v", ev)
	}
	ev = next(client.GetData().InBackground(results.callback).ForPath(ctx, ev.Name))
	if string(ev.Data) != "x" || ev.Stat == nil || ev.Stat.DataLength != 1 {
		t.Errorf("get data: %+v", ev)
	}
	ev = next(client.GetChildren().InBackground(results.callback).ForPath(ctx, "/"))
	if diff := cmp.Diff([]string{"s-0000000000"}, ev.Children); diff != "" || ev.Stat == nil {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	ev = next(client.GetACL().InBackground(results.callback).ForPath(ctx, "/s-0000000000"))
	if diff := cmp.Diff(builders.OpenACL, ev.ACL); diff != "" {
		t.Errorf("ACL (-want +got):\n%s", diff)
	}
	if ev = next(client.CheckExists().InBackground(results.callback).ForPath(ctx, "/none")); ev.Stat != nil {
		t.Errorf("stat %v of no node", ev.Stat)
	}
}
