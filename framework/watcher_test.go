package framework_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// fence returns when all that client got before has been delivered.
func fence(t *testing.T, client *framework.Client) {
	t.Helper()
	results := newEvents()
	must(t, client.Sync().InBackground(results.callback).ForPath(t.Context(), "/"))
	receive(t, results)
}

// wantCount fails unless the watcher got so many events.
func wantCount(t *testing.T, client *framework.Client, what string, seen watched, want int) {
	t.Helper()
	fence(t, client)
	n := len(seen)
	for range n {
		<-seen
	}
	if n != want {
		t.Errorf("%s: the watcher gets %d events, want %d", what, n, want)
	}
}

// Issue 232: a watcher is notified once of an event, however often it was set.
func TestWatcherSetTwiceGetsEventOnce(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	create(t, client, "/ns/a", "")
	ctx := testenv.Context(t)
	view := func() *framework.Client { return client.UsingNamespace("ns") }
	removing := client.WatcherRemoving()
	tests := []struct {
		name string
		set  func(w *callbacks.Watcher) error
		want int
	}{
		{"once", func(w *callbacks.Watcher) error {
			_, err := client.GetData().UsingWatcher(w).ForPath(ctx, "/ns/a")
			return err
		}, 1},
		{"twice", func(w *callbacks.Watcher) error {
			for range 2 {
				if _, err := client.GetData().UsingWatcher(w).ForPath(ctx, "/ns/a"); err != nil {
					return err
				}
			}
			return nil
		}, 1},
		{"with exists and with data", func(w *callbacks.Watcher) error {
			if _, err := client.CheckExists().UsingWatcher(w).ForPath(ctx, "/ns/a"); err != nil {
				return err
			}
			_, err := client.GetData().UsingWatcher(w).ForPath(ctx, "/ns/a")
			return err
		}, 1},
		{"for good and once", func(w *callbacks.Watcher) error {
			if err := client.Watches().Add().UsingWatcher(w).ForPath(ctx, "/ns"); err != nil {
				return err
			}
			_, err := client.GetData().UsingWatcher(w).ForPath(ctx, "/ns/a")
			return err
		}, 1},
		{"through two views of a namespace", func(w *callbacks.Watcher) error {
			for range 2 {
				if _, err := view().GetData().UsingWatcher(w).ForPath(ctx, "/a"); err != nil {
					return err
				}
			}
			return nil
		}, 1},
		{"twice through a watcher-removing view", func(w *callbacks.Watcher) error {
			for range 2 {
				if _, err := removing.GetData().UsingWatcher(w).ForPath(ctx, "/ns/a"); err != nil {
					return err
				}
			}
			return nil
		}, 1},
		{"through two views of a namespace of a watcher-removing view", func(w *callbacks.Watcher) error {
			for range 2 {
				if _, err := removing.UsingNamespace("ns").GetData().UsingWatcher(w).ForPath(ctx, "/a"); err != nil {
					return err
				}
			}
			return nil
		}, 1},
		// Its paths differ: they are two events.
		{"through views of different namespaces", func(w *callbacks.Watcher) error {
			if _, err := client.GetData().UsingWatcher(w).ForPath(ctx, "/ns/a"); err != nil {
				return err
			}
			_, err := view().GetData().UsingWatcher(w).ForPath(ctx, "/a")
			return err
		}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			watcher, seen := newWatcher()
			must(t, tt.set(watcher))
			setData(t, client, "/ns/a", "")
			wantCount(t, client, "first change", seen, tt.want)
			must(t, client.Watches().Remove(watcher).Quietly().ForPath(ctx, "/ns"))
			setData(t, client, "/ns/a", "")
			wantCount(t, client, "second change", seen, 0)
		})
	}
}

func TestWatchersOfOneNodeAllGetEvent(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	create(t, client, "/a", "")
	ctx := testenv.Context(t)
	var all []watched
	for range 3 {
		watcher, seen := newWatcher()
		all = append(all, seen)
		_, err := client.GetData().UsingWatcher(watcher).ForPath(ctx, "/a")
		must(t, err)
	}
	setData(t, client, "/a", "")
	for _, seen := range all {
		wantCount(t, client, "change", seen, 1)
	}
}

// serverWatches returns the watches that the server has below root.
func serverWatches(t *testing.T, root string) (watches []string) {
	t.Helper()
	answer, err := testenv.Server(t).FourLetterWord(testenv.Context(t), "wchp")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(answer) {
		if p := strings.TrimSpace(line); strings.HasPrefix(p, root+"/") || p == root {
			watches = append(watches, p)
		}
	}
	return watches
}

// In Java: TestWatcherRemovalManager.
func TestWatcherRemovingViewCountsItsWatchers(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	ctx := testenv.Context(t)
	type step func(t *testing.T, c *framework.WatcherRemoveClient, w *callbacks.Watcher) error
	getData := func(p string) step {
		return func(_ *testing.T, c *framework.WatcherRemoveClient, w *callbacks.Watcher) error {
			_, err := c.GetData().UsingWatcher(w).ForPath(ctx, p)
			return err
		}
	}
	checkExists := func(p string) step {
		return func(_ *testing.T, c *framework.WatcherRemoveClient, w *callbacks.Watcher) error {
			_, err := c.CheckExists().UsingWatcher(w).ForPath(ctx, p)
			return err
		}
	}
	getChildren := func(p string) step {
		return func(_ *testing.T, c *framework.WatcherRemoveClient, w *callbacks.Watcher) error {
			_, err := c.GetChildren().UsingWatcher(w).ForPath(ctx, p)
			return err
		}
	}
	add := func(p string) step {
		return func(_ *testing.T, c *framework.WatcherRemoveClient, w *callbacks.Watcher) error {
			return c.Watches().Add().UsingWatcher(w).ForPath(ctx, p)
		}
	}
	background := func(what func(c *framework.WatcherRemoveClient, w *callbacks.Watcher, e events) error) step {
		return func(t *testing.T, c *framework.WatcherRemoveClient, w *callbacks.Watcher) error {
			t.Helper()
			results := newEvents()
			must(t, what(c, w, results))
			return receive(t, results).Err
		}
	}
	change := func(t *testing.T, c *framework.WatcherRemoveClient, _ *callbacks.Watcher) error {
		t.Helper()
		setData(t, c.Client, "/a", "")
		fence(t, c.Client)
		return nil
	}
	tests := []struct {
		name  string
		steps []step
		err   error // of the last step
		want  int
	}{
		{"none", nil, nil, 0},
		{"one", []step{getData("/a")}, nil, 1},
		{"the same again", []step{getData("/a"), getData("/a")}, nil, 1},
		{"the same with another kind", []step{getData("/a"), checkExists("/a"), getChildren("/a")}, nil, 1},
		{"other paths", []step{getData("/a"), getData("/b"), getChildren("/")}, nil, 3},
		{"a missing node is waited for", []step{checkExists("/none")}, nil, 1},
		{"a missing node is no success", []step{getData("/none")}, zk.ErrNoNode, 0},
		{"a missing node has no children", []step{getChildren("/none")}, zk.ErrNoNode, 0},
		{"in background", []step{
			background(func(c *framework.WatcherRemoveClient, w *callbacks.Watcher, e events) error {
				return c.GetData().UsingWatcher(w).InBackground(e.callback).ForPath(ctx, "/a")
			}),
			background(func(c *framework.WatcherRemoveClient, w *callbacks.Watcher, e events) error {
				return c.CheckExists().UsingWatcher(w).InBackground(e.callback).ForPath(ctx, "/none")
			}),
		}, nil, 2},
		{"a failure in background", []step{
			background(func(c *framework.WatcherRemoveClient, w *callbacks.Watcher, e events) error {
				return c.GetData().UsingWatcher(w).InBackground(e.callback).ForPath(ctx, "/none")
			}),
		}, zk.ErrNoNode, 0},
		{"its event ends it", []step{getData("/a"), getData("/b"), change}, nil, 1},
		{"its event does not end it for good", []step{add("/a"), change}, nil, 1},
		{"removed", []step{
			getData("/a"), getData("/b"),
			func(_ *testing.T, c *framework.WatcherRemoveClient, w *callbacks.Watcher) error {
				return c.Watches().Remove(w).ForPath(ctx, "/a")
			},
		}, nil, 1},
		{"of a view of a namespace", []step{
			func(_ *testing.T, c *framework.WatcherRemoveClient, w *callbacks.Watcher) error {
				_, err := c.UsingNamespace("ns").CheckExists().UsingWatcher(w).ForPath(ctx, "/a")
				return err
			},
		}, nil, 1},
		{"of the whole tree of a namespace", []step{ // C-710
			func(_ *testing.T, c *framework.WatcherRemoveClient, w *callbacks.Watcher) error {
				_, err := c.UsingNamespace("ns").UsingNamespace("").CheckExists().UsingWatcher(w).ForPath(ctx, "/a")
				return err
			}}, nil, 1},
		{"the configuration", []step{
			func(_ *testing.T, c *framework.WatcherRemoveClient, w *callbacks.Watcher) error {
				_, err := c.GetConfig().UsingWatcher(w).ForEnsemble(ctx)
				return err
			},
		}, nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := testenv.Chroot(t)
			addr, _ := split(connect)
			client := connectClient(t, addr+root)
			create(t, client, "/a", "")
			create(t, client, "/b", "")
			removing := client.WatcherRemoving()
			watcher, seen := newWatcher()
			for i, step := range tt.steps {
				err := step(t, removing, watcher)
				if i == len(tt.steps)-1 {
					wantErr(t, "last step", err, tt.err)
				} else {
					must(t, err)
				}
			}
			if n := removing.WatcherCount(); n != tt.want {
				t.Errorf("%d watchers, want %d", n, tt.want)
			}
			fence(t, client)
			for len(seen) > 0 {
				<-seen
			}
			removing.RemoveWatchers(ctx)
			if n := removing.WatcherCount(); n != 0 {
				t.Errorf("%d watchers after their removal", n)
			}
			fence(t, client)
			for _, p := range []string{"/a", "/b"} {
				setData(t, client, p, "")
			}
			create(t, client, "/none", "")
			wantCount(t, client, "after the removal", seen, 0)
			if left := serverWatches(t, root); len(left) > 0 {
				t.Errorf("watches left on the server: %q", left)
			}
		})
	}
}

func TestWatcherRemovingViewKeepsWatchersOfOthers(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	create(t, client, "/a", "")
	ctx := testenv.Context(t)
	watcher, seen := newWatcher()
	one, two := client.WatcherRemoving(), client.WatcherRemoving()
	for _, c := range []*framework.Client{client, one.Client, two.Client} {
		if _, err := c.GetData().UsingWatcher(watcher).ForPath(ctx, "/a"); err != nil {
			t.Fatal(err)
		}
	}
	one.RemoveWatchers(ctx)
	if one.WatcherCount() != 0 || two.WatcherCount() != 1 {
		t.Errorf("%d and %d watchers, want 0 and 1", one.WatcherCount(), two.WatcherCount())
	}
	fence(t, client)
	setData(t, client, "/a", "")
	wantCount(t, client, "change", seen, 2)
	if n := two.WatcherCount(); n != 0 {
		t.Errorf("%d watchers after the event, want none", n)
	}
}

// In Java: TestWatcherRemovalManager.testResetFromWatcher.
func TestWatcherSetAgainFromWithin(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	create(t, client, "/a", "")
	removing := client.WatcherRemoving()
	recorded := make(chan int, 10)
	var watcher *callbacks.Watcher
	watcher = callbacks.NewWatcher(func(ctx context.Context, ev zk.Event) {
		if ev.Type == zk.EventNodeDataChanged {
			_, err := removing.GetData().UsingWatcher(watcher).ForPath(ctx, ev.Path)
			must(t, err)
			recorded <- removing.WatcherCount()
		}
	})
	_, err := removing.GetData().UsingWatcher(watcher).ForPath(testenv.Context(t), "/a")
	must(t, err)
	for range 3 {
		setData(t, client, "/a", "")
		if n := receive(t, recorded); n != 1 {
			t.Errorf("%d watchers, want 1", n)
		}
	}
}

func TestWatchersEndWithSession(t *testing.T) {
	t.Parallel()
	client, recorded := connectRecorded(t, testenv.ConnectString(t))
	removing := client.WatcherRemoving()
	ctx := testenv.Context(t)
	watcher, seen := newWatcher()
	_, err := removing.CheckExists().UsingWatcher(watcher).ForPath(ctx, "/a")
	must(t, err)
	must(t, removing.Watches().Add().UsingWatcher(watcher).ForPath(ctx, "/"))
	must(t, client.Reset())
	recorded.want(t, lost, reconnected)
	if n := removing.WatcherCount(); n != 0 {
		t.Errorf("%d watchers of a session that has ended", n)
	}
	create(t, client, "/a", "")
	wantCount(t, client, "change", seen, 0)
	removing.RemoveWatchers(ctx)
}

// The server hears of the removal later, or never: the watcher gets no further events all the same.
func TestWatchersRemovedWithoutConnectionGetNothing(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client, recorded := connectRecorded(t, connect)
	other := connectClient(t, testenv.Addr(t)+chrootOf(connect))
	create(t, other, "/a", "")
	ctx := testenv.Context(t)
	removing := client.WatcherRemoving()
	watcher, seen := newWatcher()
	_, err := removing.GetData().UsingWatcher(watcher).ForPath(ctx, "/a")
	must(t, err)
	must(t, removing.Watches().Add().UsingWatcher(watcher).ForPath(ctx, "/b"))
	restore := outage(proxy)
	recorded.want(t, suspended)
	removing.RemoveWatchers(ctx)
	if n := removing.WatcherCount(); n != 0 {
		t.Errorf("%d watchers after their removal", n)
	}
	setData(t, other, "/a", "")
	restore()
	recorded.want(t, reconnected)
	fence(t, client)
	create(t, other, "/b", "")
	wantCount(t, client, "changes during the outage and after it", seen, 0)
	if left := serverWatches(t, chrootOf(connect)); len(left) > 0 {
		t.Errorf("watches left on the server: %q", left)
	}
}

// Watchers hear of the end of their session before anything of the next one can happen.
func TestWatchersGetEndOfSessionAtOnce(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	for range 20 {
		removing := client.WatcherRemoving()
		recorded := make(chan zk.Event, 10)
		_, err := removing.CheckExists().UsingWatcher(callbacks.NewChanWatcher(recorded)).
			ForPath(testenv.Context(t), "/none")
		must(t, err)
		must(t, client.Reset())
		select {
		case ev := <-recorded:
			if ev.Type != zk.EventSession || ev.State != zk.StateExpired {
				t.Errorf("watcher gets %v", ev)
			}
		default:
			t.Fatal("watcher gets nothing")
		}
		if n := removing.WatcherCount(); n != 0 {
			t.Errorf("%d watchers of a session that has ended", n)
		}
	}
}
