package framework_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// fill has a client with WithMaxPending(1) refuse the background until the function that it returns is called.
func fill(tb testing.TB, client *framework.Client) (release func()) {
	tb.Helper()
	ctx := testenv.Context(tb)
	must(tb, client.Drain(ctx))
	running, released := make(chan struct{}, 2), make(chan struct{})
	block := func(context.Context, callbacks.Event) {
		running <- struct{}{}
		<-released
	}
	must(tb, client.CheckExists().InBackground(block).ForPath(ctx, "/"))
	receive(tb, running)
	must(tb, client.CheckExists().InBackground(block).ForPath(ctx, "/")) // behind it
	return func() { close(released) }
}

// A watcher-removing view removes its watchers whatever else the client has to do.
func TestMaxPendingReachedWatchersAreRemoved(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := connectClient(t, testenv.ConnectString(t), framework.WithMaxPending(1))
	view := client.WatcherRemoving()
	_, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/bound/a", nil)
	must(t, err)
	watcher, events := newWatcher()
	_, err = view.GetData().UsingWatcher(watcher).ForPath(ctx, "/bound/a")
	must(t, err)
	release := fill(t, client)
	view.RemoveWatchers(ctx)
	if n := view.WatcherCount(); n != 0 {
		t.Errorf("%d watchers are left", n)
	}
	_, err = client.SetData().ForPath(ctx, "/bound/a", []byte("changed"))
	must(t, err)
	release()
	must(t, client.Drain(ctx))
	select {
	case ev := <-events:
		t.Errorf("a watcher that was removed gets %v", ev)
	default:
	}
}

// The tracker reads the configuration in each session, whatever else the client has to do: else it watches no more.
func TestMaxPendingReachedTrackerReads(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client := newClient(t, connect, framework.WithMaxPending(1), framework.WithEnsembleTracker())
	states := record(client)
	start(t, client)
	states.want(t, connected)
	release := fill(t, client)
	reads := func() (n int) {
		for _, e := range proxy.Faults().Trace() {
			if e.Path == "/zookeeper/config" && !e.Reply {
				n++
			}
		}
		return n
	}
	before := reads()
	for range 2 {
		must(t, client.Reset())
		states.want(t, lost)
		states.want(t, reconnected)
	}
	release()
	must(t, client.Drain(testenv.Context(t)))
	deadline := time.Now().Add(2 * time.Second)
	for reads() == before {
		if time.Now().After(deadline) {
			t.Fatal("was not read in the new session")
		}
		<-time.After(10 * time.Millisecond)
	}
}

// A guaranteed delete whose context ends while it waits for room is done all the same.
func TestMaxPendingReachedGuaranteedDeleteIsDone(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	proxy, connect := newProxy(t)
	client := newClient(t, connect, framework.WithMaxPending(1))
	states := record(client)
	start(t, client)
	states.want(t, connected)
	create(t, client, "/kept/a", "")
	restore := outage(proxy)
	states.want(t, suspended)
	must(t, client.CheckExists().InBackground(newEvents().callback).ForPath(ctx, "/"))
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := client.Delete().Guaranteed().ForPath(short, "/kept/a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	restore()
	states.want(t, reconnected)
	deadline := time.Now().Add(3 * time.Second)
	for {
		stat, err := client.CheckExists().ForPath(ctx, "/kept/a")
		must(t, err)
		if stat == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("is still there")
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestMaxPendingReachedRefusesBackgroundAndDelaysForeground(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	proxy, connect := newProxy(t)
	client := newClient(t, connect, framework.WithMaxPending(3))
	states := record(client)
	start(t, client)
	states.want(t, connected)
	restore := outage(proxy)
	states.want(t, suspended)

	results := newEvents()
	get := client.CheckExists().InBackground(results.callback)
	for range 3 {
		must(t, get.ForPath(ctx, "/"))
	}
	err := get.ForPath(ctx, "/")
	if !errors.Is(err, framework.ErrTooManyPending) {
		t.Errorf("the fourth of the background: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := client.CheckExists().ForPath(short, "/"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the fourth of the foreground: %v", err)
	}
	waited := make(chan error)
	go func() {
		_, err := client.CheckExists().ForPath(ctx, "/")
		waited <- err
	}()
	restore()
	must(t, receive(t, waited))
	for range 3 {
		must(t, receive(t, results).Err)
	}
	must(t, client.Drain(ctx))
	must(t, get.ForPath(ctx, "/"))
	must(t, receive(t, results).Err)
}

// The foreground does not wait for callbacks: a callback may use it at the bound.
func TestMaxPendingLeavesRoomForCallback(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := startClient(t, testenv.ConnectString(t), framework.WithMaxPending(2))
	done := make(chan error, 1)
	must(t, client.CheckExists().InBackground(func(ctx context.Context, _ callbacks.Event) {
		for range 2 { // as many as may be pending: their callbacks are behind this one
			must(t, client.CheckExists().InBackground(func(context.Context, callbacks.Event) {}).ForPath(ctx, "/"))
		}
		_, err := client.CheckExists().ForPath(ctx, "/")
		done <- err
	}).ForPath(ctx, "/"))
	must(t, receive(t, done))
}

func TestMaxPendingWaitEndsWithClose(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := newClient(t, "127.0.0.1:1", framework.WithMaxPending(1))
	start(t, client)
	results := newEvents()
	must(t, client.CheckExists().InBackground(results.callback).ForPath(ctx, "/"))
	waited := make(chan error)
	go func() {
		_, err := client.CheckExists().ForPath(ctx, "/")
		waited <- err
	}()
	must(t, client.Close())
	wantErr(t, "waiting", receive(t, waited), framework.ErrClosed)
}
