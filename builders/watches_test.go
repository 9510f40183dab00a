package builders_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// wantEvents checks that events come of these types and paths, in order.
func wantEvents(tb testing.TB, events <-chan zk.Event, want ...zk.Event) {
	tb.Helper()
	for _, w := range want {
		got := receive(tb, events)
		equal(tb, "event", zk.Event{Type: got.Type, Path: got.Path}, w)
	}
}

// wantNoEvents checks that nothing more has come, after everything the server has reported so far.
func wantNoEvents(tb testing.TB, client *framework.Client, events <-chan zk.Event) {
	tb.Helper()
	succeed(tb, background.sync(tb, client.Sync(), "/")) // its callback comes behind theirs
	select {
	case ev := <-events:
		tb.Errorf("event %v", ev)
	default:
	}
}

func TestWatchers(t *testing.T) {
	t.Parallel()
	created := zk.Event{Type: zk.EventNodeCreated, Path: "/n"}
	changed := zk.Event{Type: zk.EventNodeDataChanged, Path: "/n"}
	deleted := zk.Event{Type: zk.EventNodeDeleted, Path: "/n"}
	children := zk.Event{Type: zk.EventNodeChildrenChanged, Path: "/n"}
	exists := func(t *testing.T, w way, c *framework.Client, watcher *callbacks.Watcher) error {
		t.Helper()
		return w.exists(t, c.CheckExists().UsingWatcher(watcher), "/n").Err
	}
	getData := func(t *testing.T, w way, c *framework.Client, watcher *callbacks.Watcher) error {
		t.Helper()
		return w.getData(t, c.GetData().UsingWatcher(watcher), "/n").Err
	}
	getChildren := func(t *testing.T, w way, c *framework.Client, watcher *callbacks.Watcher) error {
		t.Helper()
		return w.getChildren(t, c.GetChildren().UsingWatcher(watcher), "/n").Err
	}
	create := func(tr tree) { tr.make("/ns/n", "") }
	remove := func(tr tree) { tr.remove("/ns/n") }
	change := func(tr tree) { _, _ = tr.conn.Set(tr.root+"/ns/n", nil, -1) }
	makeChild := func(tr tree) { tr.make("/ns/n/child", "") }
	tests := []struct {
		name    string
		there   bool
		watch   func(*testing.T, way, *framework.Client, *callbacks.Watcher) error
		wantErr error
		do      []func(tree)
		want    []zk.Event
	}{
		{"exists, absent", false, exists, nil, []func(tree){create, change}, []zk.Event{created}},
		{"exists, present", true, exists, nil, []func(tree){change, remove}, []zk.Event{changed}},
		{"exists, deleted", true, exists, nil, []func(tree){remove, create}, []zk.Event{deleted}},
		{"exists, child made", true, exists, nil, []func(tree){makeChild}, nil},
		{"getData, changed", true, getData, nil, []func(tree){change, change}, []zk.Event{changed}},
		{"getData, deleted", true, getData, nil, []func(tree){remove}, []zk.Event{deleted}},
		{"getData, absent", false, getData, zk.ErrNoNode, []func(tree){create, change}, nil},
		{"getChildren, child made", true, getChildren, nil, []func(tree){makeChild}, []zk.Event{children}},
		{"getChildren, deleted", true, getChildren, nil, []func(tree){remove}, []zk.Event{deleted}},
		{"getChildren, changed", true, getChildren, nil, []func(tree){change}, nil},
		{"getChildren, absent", false, getChildren, zk.ErrNoNode, []func(tree){create, makeChild}, nil},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					client, tr := setUp(t, framework.WithNamespace("ns"))
					tr.make("/ns", "")
					if tt.there {
						create(tr)
					}
					watcher, events := chanWatcher()
					for range 2 { // set twice, a watcher is notified once
						if err := tt.watch(t, w, client, watcher); !errors.Is(err, tt.wantErr) {
							t.Fatal(err)
						}
					}
					for _, do := range tt.do {
						do(tr)
					}
					wantEvents(t, events, tt.want...)
					wantNoEvents(t, client, events)
				})
			}
		})
	}
}

func TestWatchedNotifiesCuratorListeners(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			events := make(chan callbacks.Event, 10)
			client.AddCuratorListener(func(_ context.Context, ev callbacks.Event) {
				if ev.Type == callbacks.Watched && ev.Watched.Type != zk.EventSession {
					events <- ev
				}
			})
			tr.make("/data", "")
			tr.make("/children", "")
			succeed(t, w.exists(t, client.CheckExists().Watched(), "/exists"))
			succeed(t, w.getData(t, client.GetData().Watched(), "/data"))
			succeed(t, w.getChildren(t, client.GetChildren().Watched(), "/children"))
			succeed(t, w.addWatch(t, client.Watches().Add().Watched(), "/added"))
			tr.make("/exists", "")
			tr.remove("/data")
			tr.make("/children/child", "")
			tr.make("/added", "")
			for _, path := range []string{"/exists", "/data", "/children", "/added"} {
				ev := receive(t, events)
				if ev.Path != path || ev.Watched.Path != path || ev.Err != nil {
					t.Errorf("event is %+v, want one of %s", ev, path)
				}
			}
		})
	}
}

// A background operation without a callback reports to the listeners.
func TestResultsWithoutACallbackGoToTheListeners(t *testing.T) {
	t.Parallel()
	client, _ := setUp(t)
	ctx := testenv.Context(t)
	events := make(chan callbacks.Event, 10)
	client.AddCuratorListener(func(_ context.Context, ev callbacks.Event) { events <- ev })
	if err := client.Create().InBackground(nil).ForPath(ctx, "/n", []byte("data")); err != nil {
		t.Fatal(err)
	}
	if err := client.GetData().InBackground(nil).ForPath(ctx, "/none"); err != nil {
		t.Fatal(err)
	}
	ev := receive(t, events)
	equal(t, "name", ev.Name, "/n")
	equal(t, "type", ev.Type, callbacks.Create)
	ev = receive(t, events)
	wantErr(t, ev.Err, zk.ErrNoNode, "getData", "/none")
	equal(t, "type", ev.Type, callbacks.GetData)
}

func TestPersistentWatch(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t, framework.WithNamespace("ns"))
			tr.make("/ns", "")
			watcher, events := chanWatcher()
			b := client.Watches().Add().WithMode(builders.PersistentWatch).UsingWatcher(watcher)
			for range 2 { // a watcher is notified once, however often it is added
				succeed(t, w.addWatch(t, b, "/n"))
			}
			tr.make("/ns/n", "")
			tr.make("/ns/n/child", "")
			tr.make("/ns/n/child/below", "")
			for range 2 {
				succeed(t, w.setData(t, client.SetData(), "/n", nil))
			}
			tr.remove("/ns/n/child/below")
			tr.remove("/ns/n/child")
			tr.remove("/ns/n")
			tr.make("/ns/n", "")
			wantEvents(t, events,
				zk.Event{Type: zk.EventNodeCreated, Path: "/n"},
				zk.Event{Type: zk.EventNodeChildrenChanged, Path: "/n"},
				zk.Event{Type: zk.EventNodeDataChanged, Path: "/n"},
				zk.Event{Type: zk.EventNodeDataChanged, Path: "/n"},
				zk.Event{Type: zk.EventNodeChildrenChanged, Path: "/n"},
				zk.Event{Type: zk.EventNodeDeleted, Path: "/n"},
				zk.Event{Type: zk.EventNodeCreated, Path: "/n"},
			)
			wantNoEvents(t, client, events)
		})
	}
}

func TestPersistentRecursiveWatchIsTheDefault(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t, framework.WithNamespace("ns"))
			tr.make("/ns", "")
			watcher, events := chanWatcher()
			succeed(t, w.addWatch(t, client.Watches().Add().UsingWatcher(watcher), "/n"))
			tr.make("/ns/n", "")
			tr.make("/ns/n/child", "")
			tr.make("/ns/other", "")
			tr.make("/ns/n/child/below", "")
			succeed(t, w.setData(t, client.SetData(), "/n/child", nil))
			tr.remove("/ns/n/child/below")
			wantEvents(t, events,
				zk.Event{Type: zk.EventNodeCreated, Path: "/n"},
				zk.Event{Type: zk.EventNodeCreated, Path: "/n/child"},
				zk.Event{Type: zk.EventNodeCreated, Path: "/n/child/below"},
				zk.Event{Type: zk.EventNodeDataChanged, Path: "/n/child"},
				zk.Event{Type: zk.EventNodeDeleted, Path: "/n/child/below"},
			)
			wantNoEvents(t, client, events)
		})
	}
}

// setEach sets a watch of each kind.
func setEach(t *testing.T, w way, client *framework.Client, watcher *callbacks.Watcher) {
	t.Helper()
	succeed(t, w.exists(t, client.CheckExists().UsingWatcher(watcher), "/n"))
	succeed(t, w.exists(t, client.CheckExists().UsingWatcher(watcher), "/n-none"))
	succeed(t, w.getData(t, client.GetData().UsingWatcher(watcher), "/n"))
	succeed(t, w.getChildren(t, client.GetChildren().UsingWatcher(watcher), "/n"))
	add := client.Watches().Add().UsingWatcher(watcher)
	succeed(t, w.addWatch(t, add.WithMode(builders.PersistentWatch), "/n-added"))
	succeed(t, w.addWatch(t, add, "/n-added-recursively"))
}

func TestRemoveWatches(t *testing.T) {
	t.Parallel()
	one := func(b builders.Watches, w *callbacks.Watcher) builders.RemoveWatches { return b.Remove(w) }
	all := func(b builders.Watches, _ *callbacks.Watcher) builders.RemoveWatches { return b.RemoveAll() }
	plain := func(b builders.RemoveWatches) builders.RemoveWatches { return b }
	tests := []struct {
		name   string
		remove func(builders.Watches, *callbacks.Watcher) builders.RemoveWatches
		with   func(builders.RemoveWatches) builders.RemoveWatches
		all    bool // the watchers get an event
	}{
		{"one", one, plain, false},
		{"all", all, plain, true},
		{"guaranteed", one, builders.RemoveWatches.Guaranteed, false},
		{"locally", one, builders.RemoveWatches.Locally, false},
		{"all, locally", all, builders.RemoveWatches.Locally, true},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					client, tr := setUp(t, framework.WithNamespace("ns"))
					succeed(t, w.create(t, client.Create(), "/n", nil))
					watcher, events := chanWatcher()
					setEach(t, w, client, watcher)
					paths := []string{"/n", "/n-added", "/n-added-recursively", "/n-none"}
					tr.awaitWatches("/ns/n", "/ns/n-added", "/ns/n-added-recursively", "/ns/n-none")
					b := tt.with(tt.remove(client.Watches(), watcher))
					for _, p := range paths {
						succeed(t, w.removeWatches(t, b, p))
						if tt.all {
							wantEvents(t, events, zk.Event{Type: zk.EventNotWatching, Path: p})
						}
					}
					tr.awaitWatches()
					for _, p := range paths {
						err := w.removeWatches(t, b, p).Err
						wantErr(t, err, framework.ErrNoWatcher, "removeWatches", p)
						succeed(t, w.removeWatches(t, b.Quietly(), p))
					}
					tr.make("/ns/n/child", "")
					tr.make("/ns/n-none", "")
					tr.make("/ns/n-added", "")
					tr.make("/ns/n-added-recursively", "")
					wantNoEvents(t, client, events)
				})
			}
		})
	}
}

func TestRemoveWatchesOfAType(t *testing.T) {
	t.Parallel()
	created := zk.Event{Type: zk.EventNodeChildrenChanged, Path: "/n"}
	changed := zk.Event{Type: zk.EventNodeDataChanged, Path: "/n"}
	tests := []struct {
		name string
		typ  builders.WatcherType
		want []zk.Event // that still come
	}{
		{"children", builders.ChildrenWatches, []zk.Event{changed}},
		{"data", builders.DataWatches, []zk.Event{created}},
		{"any", builders.AnyWatches, nil},
	}
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, tt := range tests {
				for _, all := range []bool{false, true} {
					t.Run(tt.name, func(t *testing.T) {
						client, tr := setUp(t)
						tr.make("/n", "")
						watcher, events := chanWatcher()
						succeed(t, w.getData(t, client.GetData().UsingWatcher(watcher), "/n"))
						succeed(t, w.getChildren(t, client.GetChildren().UsingWatcher(watcher), "/n"))
						b := client.Watches().Remove(watcher)
						if all {
							b = client.Watches().RemoveAll()
						}
						b = b.OfType(tt.typ)
						succeed(t, w.removeWatches(t, b, "/n"))
						if all {
							wantEvents(t, events, zk.Event{Type: zk.EventNotWatching, Path: "/n"})
						}
						err := w.removeWatches(t, b, "/n").Err
						wantErr(t, err, framework.ErrNoWatcher, "removeWatches", "/n")
						tr.make("/n/child", "")
						succeed(t, w.setData(t, client.SetData(), "/n", nil))
						wantEvents(t, events, tt.want...)
						wantNoEvents(t, client, events)
						tr.awaitWatches()
					})
				}
			}
		})
	}
}

// The watch on the server goes with its last watcher only.
func TestRemoveWatchesLeavesTheOthersOfThePath(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, local := range []bool{false, true} {
				client, tr := setUp(t)
				view := client.UsingNamespace("ns")
				tr.make("/ns", "")
				tr.make("/ns/n", "")
				removed, events := chanWatcher()
				kept, keptEvents := chanWatcher()
				setEach(t, w, view, removed)
				setEach(t, w, view, kept)
				viaRoot, rootEvents := chanWatcher()
				succeed(t, w.getData(t, client.GetData().UsingWatcher(viaRoot), "/ns/n"))
				b := view.Watches().Remove(removed)
				if local {
					b = b.Locally()
				}
				for _, p := range []string{"/n", "/n-none", "/n-added", "/n-added-recursively"} {
					succeed(t, w.removeWatches(t, b, p))
				}
				tr.make("/ns/n/child", "")
				succeed(t, w.setData(t, view.SetData(), "/n", nil))
				for _, p := range []string{"/ns/n-none", "/ns/n-added", "/ns/n-added-recursively"} {
					tr.make(p, "")
				}
				wantEvents(t, keptEvents,
					zk.Event{Type: zk.EventNodeChildrenChanged, Path: "/n"},
					zk.Event{Type: zk.EventNodeDataChanged, Path: "/n"},
					zk.Event{Type: zk.EventNodeCreated, Path: "/n-none"},
					zk.Event{Type: zk.EventNodeCreated, Path: "/n-added"},
					zk.Event{Type: zk.EventNodeCreated, Path: "/n-added-recursively"},
				)
				wantEvents(t, rootEvents, zk.Event{Type: zk.EventNodeDataChanged, Path: "/ns/n"})
				wantNoEvents(t, client, events)
				b = view.Watches().Remove(kept)
				succeed(t, w.removeWatches(t, b, "/n-added"))
				succeed(t, w.removeWatches(t, b, "/n-added-recursively"))
				tr.awaitWatches()
			}
		})
	}
}

// setUpProxied returns a client that reaches the server through a proxy.
func setUpProxied(tb testing.TB, opts ...framework.Option) (*framework.Client, tree, *curatortest.Proxy) {
	tb.Helper()
	tr := newTree(tb)
	proxy := curatortest.NewProxyT(tb, testenv.Addr(tb))
	return newClient(tb, proxy.ConnectString()+tr.root, opts...), tr, proxy
}

// disconnect cuts the client off and returns when it knows; connect lets it come back.
func disconnect(tb testing.TB, client *framework.Client, proxy *curatortest.Proxy) (connect func()) {
	tb.Helper()
	suspended := make(chan struct{}, 10)
	remove := client.AddConnectionStateListener(
		func(_ context.Context, s framework.ConnectionState) {
			if s == framework.Suspended {
				suspended <- struct{}{}
			}
		})
	defer remove()
	restore := proxy.Faults().RefuseConnects()
	proxy.Faults().CutAll()
	receive(tb, suspended)
	return func() {
		tb.Helper()
		restore()
		if err := client.BlockUntilConnected(testenv.Context(tb)); err != nil {
			tb.Fatal(err)
		}
	}
}

// impatient has operations fail soon without a connection.
func impatient() []framework.Option {
	return []framework.Option{
		framework.WithConnectionTimeout(50 * time.Millisecond),
		framework.WithRetryPolicy(retry.NTimes(1, time.Millisecond)),
	}
}

func TestRemoveWatchesWithoutAConnection(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for name, build := range map[string]func(builders.RemoveWatches) builders.RemoveWatches{
				"plain":      func(b builders.RemoveWatches) builders.RemoveWatches { return b },
				"guaranteed": builders.RemoveWatches.Guaranteed,
				"locally":    builders.RemoveWatches.Locally,
			} {
				t.Run(name, func(t *testing.T) {
					client, tr, proxy := setUpProxied(t, impatient()...)
					tr.make("/n", "")
					watcher, events := chanWatcher()
					setEach(t, w, client, watcher)
					connect := disconnect(t, client, proxy)
					b := build(client.Watches().Remove(watcher))
					for _, p := range []string{"/n", "/n-none", "/n-added", "/n-added-recursively"} {
						ev := w.removeWatches(t, b, p)
						if name == "locally" {
							succeed(t, ev)
							continue
						}
						wantErr(t, ev.Err, framework.ErrConnectionLoss, "removeWatches", p)
					}
					connect()
					succeed(t, w.exists(t, client.CheckExists(), "/n")) // the watches that are left are set again
					if name == "plain" {
						tr.awaitWatches("/n", "/n-added", "/n-added-recursively", "/n-none")
						return
					}
					tr.awaitWatches()
					tr.make("/n/child", "")
					tr.make("/n-none", "")
					tr.make("/n-added", "")
					tr.make("/n-added-recursively", "")
					wantNoEvents(t, client, events)
				})
			}
		})
	}
}

func TestRemoveAllWatchesWithoutAConnectionTellsTheWatchers(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(builders.RemoveWatches) builders.RemoveWatches{
		"guaranteed": builders.RemoveWatches.Guaranteed,
		"locally":    builders.RemoveWatches.Locally,
	} {
		t.Run(name, func(t *testing.T) {
			client, tr, proxy := setUpProxied(t, impatient()...)
			tr.make("/n", "")
			watcher, events := chanWatcher()
			setEach(t, foreground, client, watcher)
			connect := disconnect(t, client, proxy)
			defer connect()
			ev := foreground.removeWatches(t, build(client.Watches().RemoveAll()), "/n")
			if name == "guaranteed" {
				wantErr(t, ev.Err, framework.ErrConnectionLoss, "removeWatches", "/n")
			} else {
				succeed(t, ev)
			}
			wantEvents(t, events, zk.Event{Type: zk.EventNotWatching, Path: "/n"})
		})
	}
}

// The connection is back, with all watches set again, before the failure of the removal is reported.
func TestGuaranteedRemovalThatFailsIsNotUndoneByTheNextConnection(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t, framework.WithRetryPolicy(retry.NTimes(0, 0)))
	ctx := testenv.Context(t)
	tr.make("/n", "")
	watcher, events := chanWatcher()
	succeed(t, foreground.getData(t, client.GetData().UsingWatcher(watcher), "/n"))
	tr.awaitWatches("/n")

	busy, free := make(chan struct{}), make(chan struct{})
	hold := client.Sync().InBackground(func(context.Context, callbacks.Event) {
		close(busy)
		<-free
	})
	if err := hold.ForPath(ctx, "/n"); err != nil {
		t.Fatal(err)
	}
	<-busy
	cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"removeWatches"}, Count: 1, Action: curatortest.CutBefore})
	failed := make(chan error, 1)
	remove := client.Watches().Remove(watcher).Guaranteed().InBackground(func(_ context.Context, ev callbacks.Event) {
		failed <- ev.Err
	})
	if err := remove.ForPath(ctx, "/n"); err != nil {
		t.Fatal(err)
	}
	if err := cut.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	err := foreground.create(t, client.Create(), "/again", nil).Err
	for errors.Is(err, framework.ErrConnectionLoss) { // until there is a connection again
		err = foreground.create(t, client.Create(), "/again", nil).Err
	}
	close(free)
	wantErr(t, receive(t, failed), framework.ErrConnectionLoss, "removeWatches", "/n")
	tr.awaitWatches()
	succeed(t, foreground.setData(t, client.SetData(), "/n", nil))
	wantNoEvents(t, client, events)
}

// In Java the removal is tried again under a path with the namespace twice.
func TestGuaranteedRemovalOfAWatchInANamespaceOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr, proxy := setUpProxied(t, append(impatient(), framework.WithNamespace("ns"))...)
			views := []*framework.Client{client, client.UsingNamespace("other"), client.UsingNamespace("")}
			watcher, events := chanWatcher()
			for _, c := range views {
				succeed(t, w.create(t, c.Create(), "/n", nil))
				succeed(t, w.getData(t, c.GetData().UsingWatcher(watcher), "/n"))
			}
			tr.awaitWatches("/n", "/ns/n", "/other/n")
			connect := disconnect(t, client, proxy)
			for _, c := range views {
				err := w.removeWatches(t, c.Watches().Remove(watcher).Guaranteed(), "/n").Err
				wantErr(t, err, framework.ErrConnectionLoss, "removeWatches", "/n")
			}
			connect()
			for _, c := range views {
				succeed(t, w.setData(t, c.SetData(), "/n", nil)) // behind the watches that are set again
			}
			wantNoEvents(t, client, events)
			tr.awaitWatches()
		})
	}
}

func TestWatcherRemovingClientForgetsWhatHasEnded(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t, framework.WithNamespace("ns"))
			ctx := testenv.Context(t)
			tr.make("/ns", "")
			tr.make("/ns/n", "")
			removing := client.WatcherRemoving()
			watcher, events := chanWatcher()
			setEach(t, w, removing.Client, watcher)
			ignored, _ := chanWatcher()
			err := w.getData(t, removing.GetData().UsingWatcher(ignored), "/none").Err
			wantErr(t, err, zk.ErrNoNode, "getData", "/none")
			equal(t, "watchers", removing.WatcherCount(), 4) // of each path one

			tr.make("/ns/n-none", "")
			wantEvents(t, events, zk.Event{Type: zk.EventNodeCreated, Path: "/n-none"})
			equal(t, "watchers", removing.WatcherCount(), 3)
			tr.make("/ns/n-added", "")
			wantEvents(t, events, zk.Event{Type: zk.EventNodeCreated, Path: "/n-added"})
			equal(t, "watchers", removing.WatcherCount(), 3)

			// One kind has ended, another is still set.
			tr.make("/ns/n/child", "")
			wantEvents(t, events, zk.Event{Type: zk.EventNodeChildrenChanged, Path: "/n"})
			equal(t, "watchers", removing.WatcherCount(), 3)

			other, otherEvents := chanWatcher()
			succeed(t, w.getData(t, client.GetData().UsingWatcher(other), "/n"))
			removing.RemoveWatchers(ctx)
			equal(t, "watchers", removing.WatcherCount(), 0)
			tr.awaitWatches("/ns/n") // of the other watcher
			succeed(t, w.setData(t, client.SetData(), "/n", nil))
			wantEvents(t, otherEvents, zk.Event{Type: zk.EventNodeDataChanged, Path: "/n"})
			wantNoEvents(t, client, events)
			tr.awaitWatches()
		})
	}
}

func TestWatcherRemovingClientForgetsWhatIsRemoved(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			tr.make("/n", "")
			removing := client.WatcherRemoving()
			watcher, _ := chanWatcher()
			set := func() {
				t.Helper()
				succeed(t, w.getData(t, removing.GetData().UsingWatcher(watcher), "/n"))
				succeed(t, w.getChildren(t, removing.GetChildren().UsingWatcher(watcher), "/n"))
				equal(t, "watchers", removing.WatcherCount(), 1)
			}
			set()
			succeed(t, w.removeWatches(t, removing.Watches().Remove(watcher), "/n"))
			equal(t, "watchers", removing.WatcherCount(), 0)
			set()
			succeed(t, w.removeWatches(t, removing.Watches().Remove(watcher).Locally(), "/n"))
			equal(t, "watchers", removing.WatcherCount(), 0)
			tr.awaitWatches()
			set()
			succeed(t, w.removeWatches(t, removing.Watches().Remove(watcher).OfType(builders.DataWatches), "/n"))
			equal(t, "watchers with one kind removed", removing.WatcherCount(), 1)
			succeed(t, w.removeWatches(t, removing.Watches().RemoveAll(), "/n"))
			equal(t, "watchers with all removed", removing.WatcherCount(), 0)
			tr.awaitWatches()
		})
	}
}

func TestWatcherRemovingClientForgetsWhatEndsWithTheSession(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			client, tr := setUp(t)
			tr.make("/n", "")
			removing := client.WatcherRemoving()
			watcher, _ := chanWatcher()
			setEach(t, w, removing.Client, watcher)
			other := client.WatcherRemoving()
			succeed(t, w.getData(t, other.GetData().UsingWatcher(watcher), "/n"))
			lost := make(chan struct{}, 1)
			client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
				if s == framework.Lost {
					lost <- struct{}{}
				}
			})
			ctx := testenv.Context(t)
			if err := curatortest.ExpireSession(ctx, testenv.Addr(t), client.SessionID()); err != nil {
				t.Fatal(err)
			}
			receive(t, lost)
			if err := client.BlockUntilConnected(ctx); err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, func() bool {
				return removing.WatcherCount()+other.WatcherCount() == 0
			}, "no watcher is remembered")
			tr.awaitWatches()
		})
	}
}

// A lost connection ends no watch: it is set again on the next.
func TestWatcherRemovingClientRemembersOverALostConnection(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	tr.make("/n", "")
	removing := client.WatcherRemoving()
	watcher, events := chanWatcher()
	succeed(t, foreground.getData(t, removing.GetData().UsingWatcher(watcher), "/n"))
	proxy.Faults().CutAll()
	testenv.Eventually(t, func() bool { return !client.IsConnected() || proxy.Faults().Connections() > 0 },
		"the loss is seen")
	succeed(t, foreground.getData(t, client.GetData(), "/n"))
	equal(t, "watchers", removing.WatcherCount(), 1)
	removing.RemoveWatchers(testenv.Context(t))
	tr.awaitWatches()
	wantNoEvents(t, client, events)
}

// CURATOR-710: the watch of the configuration, which is outside the chroot and the namespace, does not
// escape.
func TestWatcherRemovingClientRemovesTheWatchOfTheConfiguration(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, ns := range []string{"", "ns"} {
				client, _ := setUp(t, framework.WithNamespace(ns))
				removing := client.WatcherRemoving()
				watcher, _ := chanWatcher()
				succeed(t, w.getConfig(t, removing.GetConfig().UsingWatcher(watcher)))
				root := tree{tb: t, root: "/zookeeper"}
				root.awaitWatches("/config")
				removing.RemoveWatchers(testenv.Context(t))
				root.awaitWatches()
				equal(t, "watchers", removing.WatcherCount(), 0)
			}
		})
	}
}

// The servers were 3.6 or newer and are 3.5 now, which has no persistent watches.
func TestPersistentWatchOnDowngradedServerEndsAndOthersStay(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t, framework.WithNamespace("ns"))
	tr.make("/ns", "")
	tr.make("/ns/n", "")
	removing := client.WatcherRemoving()
	persistent, gone := chanWatcher()
	add := removing.Watches().Add().WithMode(builders.PersistentWatch).UsingWatcher(persistent)
	succeed(t, foreground.addWatch(t, add, "/n"))
	oneShot, changed := chanWatcher() // the server has no watch for it: the persistent one covers it
	succeed(t, foreground.getData(t, removing.GetData().UsingWatcher(oneShot), "/n"))
	equal(t, "watchers", removing.WatcherCount(), 2)

	session := client.SessionID()
	testenv.Downgrade(proxy.Faults())
	ev := receive(t, gone)
	if want := (zk.Event{Type: zk.EventNotWatching, Path: "/n"}); ev.Type != want.Type || ev.Path != want.Path {
		t.Errorf("event %+v, want %+v", ev, want)
	}
	if !errors.Is(ev.Err, framework.ErrUnimplemented) {
		t.Errorf("its error is %v", ev.Err)
	}
	succeed(t, foreground.setData(t, client.SetData(), "/n", []byte("1")))
	wantEvents(t, changed, zk.Event{Type: zk.EventNodeDataChanged, Path: "/n"})
	equal(t, "watchers", removing.WatcherCount(), 0)
	equal(t, "session", client.SessionID(), session)
	wantNoEvents(t, client, gone)
	tr.awaitWatches()
}
