package simulation_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/barrier"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/recipes/shared"
)

// recipeWait starts a recipe and waits for it. It leaves nothing that runs.
type recipeWait func(ctx context.Context, c *framework.Client) error

// waits are the calls of recipes that wait for answers, events or states of the connection.
var waits = map[string]recipeWait{
	"CuratorCache.Ready": func(ctx context.Context, c *framework.Client) error {
		cc := cache.NewCuratorCache(c, "/")
		defer cc.Close() //nolint:errcheck // always nil
		return errors.Join(cc.Start(), cc.Ready(ctx))
	},
	"CuratorCache.Sync": func(ctx context.Context, c *framework.Client) error {
		cc := cache.NewCuratorCache(c, "/")
		defer cc.Close() //nolint:errcheck // always nil
		return errors.Join(cc.Start(), cc.Sync(ctx), cc.Rebuild(ctx))
	},
	"CuratorCache.Changes": func(ctx context.Context, c *framework.Client) error {
		cc := cache.NewCuratorCache(c, "/")
		defer cc.Close() //nolint:errcheck // always nil
		if err := cc.Start(); err != nil {
			return err
		}
		for ev := range cc.Changes(ctx) {
			if ev.Type == cache.Initialized {
				return nil
			}
		}
		return errors.New("no end of the first load")
	},
	"PathChildrenCache.Start": func(ctx context.Context, c *framework.Client) error {
		cc := cache.NewPathChildrenCache(c, "/")
		defer cc.Close() //nolint:errcheck // always nil
		return cc.Start(ctx, cache.BuildInitialCache)
	},
	"NodeCache.StartAndBuild": func(ctx context.Context, c *framework.Client) error {
		cc := cache.NewNodeCache(c, "/")
		defer cc.Close() //nolint:errcheck // always nil
		return cc.StartAndBuild(ctx)
	},
	"TreeCache": func(ctx context.Context, c *framework.Client) error {
		cc := cache.NewTreeCache(c, "/")
		defer cc.Close() //nolint:errcheck // always nil
		loaded := make(chan struct{})
		cc.AddListener(func(_ context.Context, ev cache.TreeCacheEvent) {
			if ev.Type == cache.TreeInitialized {
				close(loaded)
			}
		})
		if err := cc.Start(); err != nil {
			return err
		}
		return awaitClosed(ctx, loaded)
	},
	"PersistentWatcher": func(ctx context.Context, c *framework.Client) error {
		w := cache.NewPersistentWatcher(c, "/", true)
		defer w.Close() //nolint:errcheck // always nil
		set := make(chan struct{})
		var once sync.Once
		w.AddResetListener(func(context.Context, struct{}) { once.Do(func() { close(set) }) })
		if err := w.Start(); err != nil {
			return err
		}
		return awaitClosed(ctx, set)
	},
	"SharedCount.Start": func(ctx context.Context, c *framework.Client) error {
		s := shared.NewSharedCount(c, "/count", 1)
		defer s.Close() //nolint:errcheck // always nil
		return s.Start(ctx)
	},
	"Value.Watch": func(ctx context.Context, c *framework.Client) error {
		v := shared.NewValue(c, "/value", codec.JSON[int]{})
		for _, err := range v.Watch(ctx) {
			if errors.Is(err, zk.ErrNoNode) { // nobody has created it
				return nil
			}
			return err
		}
		return ctx.Err()
	},
	"LeaderLatch.Await": func(ctx context.Context, c *framework.Client) error {
		l := leader.NewLeaderLatch(c, "/latch")
		if err := l.Start(); err != nil {
			return err
		}
		_, err := l.Await(ctx)
		return errors.Join(err, l.Close())
	},
	"leader.Do": func(ctx context.Context, c *framework.Client) error {
		return leader.Do(ctx, c, "/election", func(ctx context.Context) error {
			_, err := leader.LeadershipOf(ctx).Client().Create().ForPath(ctx, "/plan", nil)
			return err
		})
	},
	"Client.Claim": func(ctx context.Context, c *framework.Client) error {
		claim, err := c.Claim(ctx, "/workers/1", "/epochs/1", nil)
		if err != nil {
			return err
		}
		return claim.Client().Delete().ForPath(ctx, "/workers/1")
	},
	"InterProcessMutex.Acquire": func(ctx context.Context, c *framework.Client) error {
		hold, err := locks.NewInterProcessMutex(c, "/mutex").Acquire(ctx)
		if err != nil {
			return err
		}
		return hold.Release(ctx)
	},
	"DistributedBarrier.Wait": func(ctx context.Context, c *framework.Client) error {
		return barrier.NewDistributedBarrier(c, "/barrier").WaitOnBarrier(ctx)
	},
	"Queue.FlushPuts": func(ctx context.Context, c *framework.Client) error {
		q, err := queue.NewBuilder[int](c, nil, codec.JSON[int]{}, "/queue").BuildQueue()
		if err != nil {
			return err
		}
		return errors.Join(q.Start(), q.Put(ctx, 1), q.FlushPuts(ctx), q.Close())
	},
	"PersistentNode.WaitForInitialCreate": func(ctx context.Context, c *framework.Client) error {
		n := nodes.NewPersistentNode(c, "/node", builders.Ephemeral, nil)
		return errors.Join(n.Start(), n.WaitForInitialCreate(ctx), n.Close(ctx))
	},
	"GroupMember.Ready": func(ctx context.Context, c *framework.Client) error {
		m := nodes.NewGroupMember(c, "/group", "a", nil)
		return errors.Join(m.Start(), m.Ready(ctx), m.Close(ctx))
	},
	"ServiceDiscovery.Register": func(ctx context.Context, c *framework.Client) error {
		d := discovery.New[string](c, "/services")
		return errors.Join(d.Start(), d.Register(ctx, discovery.NewServiceInstance[string]("a", "h", 1)), d.Close(ctx))
	},
	"ServiceDiscovery.Update": func(ctx context.Context, c *framework.Client) error {
		d, i := discovery.New[string](c, "/services"), discovery.NewServiceInstance[string]("a", "h", 1)
		err := errors.Join(d.Start(), d.Register(ctx, i))
		return errors.Join(err, d.Update(ctx, i), d.Unregister(ctx, i), d.Close(ctx))
	},
	"ServiceCache.Sync": func(ctx context.Context, c *framework.Client) error {
		d := discovery.New[string](c, "/services")
		a := d.Cache("a")
		return errors.Join(d.Start(), a.Start(ctx), a.Sync(ctx), d.Close(ctx))
	},
	"ServiceProvider.Pick": func(ctx context.Context, c *framework.Client) error {
		d := discovery.New[string](c, "/services")
		p := d.Provider("a")
		err := errors.Join(d.Start(), p.Start(ctx), d.Register(ctx, discovery.NewServiceInstance[string]("a", "h", 1)))
		if err == nil {
			_, err = p.Pick(ctx)
		}
		return errors.Join(err, d.Close(ctx))
	},
	"ServiceCache.Start": func(ctx context.Context, c *framework.Client) error {
		d := discovery.New[string](c, "/services")
		return errors.Join(d.Start(), d.Cache("a").Start(ctx), d.Close(ctx))
	},
	"ServiceProvider.Start": func(ctx context.Context, c *framework.Client) error {
		d := discovery.New[string](c, "/services")
		return errors.Join(d.Start(), d.Provider("a").Start(ctx), d.Close(ctx))
	},
}

func awaitClosed(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// callbackPlaces have fn called in one kind of callback each, once or more often.
var callbackPlaces = map[string]func(t *testing.T, c *framework.Client, fn func()){
	"background callback": func(t *testing.T, c *framework.Client, fn func()) {
		err := c.CheckExists().InBackground(func(context.Context, callbacks.Event) { fn() }).ForPath(t.Context(), "/")
		testclient.Must(t, err)
	},
	"watcher": func(t *testing.T, c *framework.Client, fn func()) {
		w := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
			if ev.Type == zk.EventNodeCreated {
				fn()
			}
		})
		_, err := c.CheckExists().UsingWatcher(w).ForPath(t.Context(), "/watched")
		testclient.Must(t, err)
		_, err = c.Create().ForPath(t.Context(), "/watched", nil)
		testclient.Must(t, err)
	},
	"curator listener": func(t *testing.T, c *framework.Client, fn func()) {
		c.AddCuratorListener(func(_ context.Context, ev callbacks.Event) {
			if ev.Type == callbacks.Create {
				fn()
			}
		})
		testclient.Must(t, c.Create().InBackground(nil).ForPath(t.Context(), "/x", nil))
	},
	"connection state listener": func(t *testing.T, c *framework.Client, fn func()) {
		c.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
			if state == framework.Lost { // while it runs, the library has to hear of the next session
				fn()
			}
		})
		testclient.Must(t, c.Reset())
	},
	"unhandled-error listener": func(t *testing.T, c *framework.Client, fn func()) {
		c.AddUnhandledErrorListener(func(context.Context, framework.UnhandledError) { fn() })
		err := c.CheckExists().InBackground(func(context.Context, callbacks.Event) { panic("of a test") }).
			ForPath(t.Context(), "/")
		testclient.Must(t, err)
	},
	"revocation callback": func(t *testing.T, c *framework.Client, fn func()) {
		m := locks.NewInterProcessMutex(c, "/revocable")
		m.MakeRevocable(func(*locks.Hold) { fn() })
		hold, err := m.Acquire(t.Context())
		testclient.Must(t, err)
		testclient.Must(t, locks.Revoke(t.Context(), c, hold.Path()))
	},
	"cache listener": func(t *testing.T, c *framework.Client, fn func()) {
		cc := cache.NewCuratorCache(c, "/")
		cc.AddListener(func(_ context.Context, ev cache.Event) {
			if ev.Type == cache.Initialized {
				fn()
			}
		})
		t.Cleanup(func() { _ = cc.Close() })
		testclient.Must(t, cc.Start())
	},
	"service cache listener": func(t *testing.T, c *framework.Client, fn func()) {
		d, i := discovery.New[string](c, "/of-listener"), discovery.NewServiceInstance[string]("a", "h", 1)
		cc := d.Cache("a")
		cc.AddListener(func(context.Context, discovery.Change[string]) { fn() })
		t.Cleanup(func() { _ = d.Close(context.WithoutCancel(t.Context())) })
		testclient.Must(t, errors.Join(d.Start(), cc.Start(t.Context()), d.Register(t.Context(), i)))
	},
	"filter of a provider": func(t *testing.T, c *framework.Client, fn func()) {
		d, i := discovery.New[string](c, "/of-filter"), discovery.NewServiceInstance[string]("a", "h", 1)
		p := d.Provider("a", discovery.WithFilter(func(discovery.ServiceInstance[string]) bool { fn(); return true }))
		t.Cleanup(func() { _ = d.Close(context.WithoutCancel(t.Context())) })
		testclient.Must(t, errors.Join(d.Start(), p.Start(t.Context()), d.Register(t.Context(), i)))
	},
	"latch listener": func(t *testing.T, c *framework.Client, fn func()) {
		l := leader.NewLeaderLatch(c, "/of-listener")
		l.AddListener(func(context.Context, leader.LatchEvent) { fn() })
		t.Cleanup(func() { _ = l.Close() })
		testclient.Must(t, l.Start())
	},
}

// Each callback holds the goroutine on which it runs: what the recipes need must come on another one.
func TestWaitOfRecipeEndsInCallback(t *testing.T) {
	for place, call := range callbackPlaces {
		for name, wait := range waits {
			t.Run(place+"/"+name, func(t *testing.T) {
				t.Parallel()
				ctx := testenv.Context(t)
				c := testclient.Connect(t, testenv.ConnectString(t))
				done := make(chan error, 1)
				var once sync.Once
				call(t, c, func() { once.Do(func() { done <- wait(ctx, c) }) })
				select {
				case err := <-done:
					testclient.Must(t, err)
				case <-ctx.Done():
					t.Fatal("no end")
				}
			})
		}
	}
}

// A callback that never returns, or ends its goroutine, holds up other callbacks at most.
func TestRecipesGoOnBehindCallbackThatNeverReturns(t *testing.T) {
	for name, end := range map[string]func(release <-chan struct{}){
		"blocks": func(release <-chan struct{}) { <-release }, "exits": func(<-chan struct{}) { runtime.Goexit() },
	} {
		for _, place := range []string{
			"background callback", "watcher", "curator listener", "revocation callback", "connection state listener",
		} {
			t.Run(place+" "+name, func(t *testing.T) {
				ctx := testenv.Context(t)
				connect := testenv.ConnectString(t)
				c, other := testclient.Connect(t, connect), testclient.Connect(t, connect)
				cc := cache.NewCuratorCache(c, "/tree")
				testclient.Must(t, errors.Join(cc.Start(), cc.Ready(ctx)))
				defer cc.Close() //nolint:errcheck // always nil
				n := nodes.NewPersistentNode(c, "/kept", builders.Ephemeral, nil)
				testclient.Must(t, errors.Join(n.Start(), n.WaitForInitialCreate(ctx)))
				release, entered := make(chan struct{}), make(chan struct{})
				var once sync.Once
				defer close(release)
				callbackPlaces[place](t, c, func() {
					once.Do(func() { close(entered) })
					end(release)
				})
				<-entered
				_, err := other.Create().CreatingParentsIfNeeded().ForPath(ctx, "/tree/a", nil)
				testclient.Must(t, err)
				testenv.Eventually(t, func() bool { _, ok := cc.Get("/tree/a"); return ok }, "the cache follows")
				kept := func() bool { stat, err := other.CheckExists().ForPath(ctx, "/kept"); return err == nil && stat != nil }
				testenv.Eventually(t, kept, "the node is there")
				testclient.Must(t, other.Delete().ForPath(ctx, "/kept"))
				testenv.Eventually(t, kept, "the node is created again")
				hold, err := locks.NewInterProcessMutex(c, "/lock").Acquire(ctx)
				testclient.Must(t, err)
				testclient.Must(t, other.Delete().ForPath(ctx, hold.Path()))
				testclient.Must(t, awaitClosed(ctx, hold.Context().Done()))
			})
		}
	}
}

// The error of a wait in an outage matches that of its context and names the reason, as that of a lock does.
func TestErrorOfWaitNamesReasonOfOutage(t *testing.T) {
	for name, wait := range waits {
		if name == "TreeCache" || name == "PersistentWatcher" || name == "CuratorCache.Changes" { // they have no error
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := curatortest.NewServerT(t)
			c := testclient.Connect(t, server.ConnectString())
			testclient.Must(t, server.Stop())
			testenv.Eventually(t, func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				err := c.BlockUntilConnected(ctx)
				return err != nil && strings.Contains(err.Error(), "refused")
			}, "no server is found")
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err := wait(ctx, c)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%v", err)
			}
		})
	}
}

// No recipe waits for a client that never connects again.
func TestWaitOnClosedClientIsErrClosed(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			ctx := testenv.Context(t)
			c := testclient.Connect(t, testenv.ConnectString(t))
			testclient.Must(t, c.Close())
			if err := wait(ctx, c); !errors.Is(err, framework.ErrClosed) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A cache that is loading, or waits for a sync or a change, ends with its client.
func TestCacheEndsWithItsClient(t *testing.T) {
	ctx := testenv.Context(t)
	c := testclient.Connect(t, testenv.ConnectString(t))
	cc := cache.NewCuratorCache(c, "/")
	testclient.Must(t, errors.Join(cc.Start(), cc.Ready(ctx)))
	causes := make(chan error, 1)
	entered := make(chan struct{})
	cc.AddListener(func(ctx context.Context, _ cache.Event) {
		close(entered) // once: the call waits for the end of the cache
		<-ctx.Done()
		causes <- context.Cause(ctx)
	})
	_, err := c.Create().ForPath(ctx, "/a", nil)
	testclient.Must(t, err)
	<-entered
	testenv.Eventually(t, func() bool { _, ok := cc.Get("/a"); return ok }, "the cache follows")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range cc.Changes(ctx) {
		}
	}()
	testclient.Must(t, c.Close())
	testclient.Must(t, awaitClosed(ctx, ended))
	if cause := <-causes; !errors.Is(cause, framework.ErrClosed) {
		t.Errorf("the context of a listener ends with %v", cause)
	}
	for name, err := range map[string]error{"ready": cc.Ready(ctx), "sync": cc.Sync(ctx), "rebuild": cc.Rebuild(ctx)} {
		if !errors.Is(err, framework.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, ok := cc.Get("/a"); !ok {
		t.Error("the contents are gone before Close")
	}
	testclient.Must(t, cc.Close())
	if cc.Size() != 0 {
		t.Error("Close leaves the contents")
	}
}
