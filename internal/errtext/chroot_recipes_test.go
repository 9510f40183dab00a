package errtext_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/recipes/barrier"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/recipes/shared"
	"github.com/gocurator/curator/retry"
)

// chrootCall is a call that needs the chroot.
type chrootCall = func(ctx context.Context, c *framework.Client, path string) error

// readCalls are more calls that need the chroot: those that find nothing without it, and background work. Each row is a
// line.
var readCalls = map[string]chrootCall{
	"mutex, participants": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(locks.NewInterProcessMutex(c, path).ParticipantNodes(ctx))
	},
	"mutex, try": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(locks.NewInterProcessMutex(c, path).TryAcquire(ctx, 0))
	},
	"mutex, revoke": func(ctx context.Context, c *framework.Client, path string) error {
		return locks.Revoke(ctx, c, path+"/x")
	},
	"write lock": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(locks.NewInterProcessReadWriteLock(c, path).WriteLock().TryAcquire(ctx, time.Second))
	},
	"read write lock, participants": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(locks.NewInterProcessReadWriteLock(c, path).ReadLock().ParticipantNodes(ctx))
	},
	"semaphore, participants": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(locks.NewInterProcessSemaphoreV2(c, path, 2).ParticipantNodes(ctx))
	},
	"semaphore, try": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(locks.NewInterProcessSemaphoreV2(c, path, 2).TryAcquireN(ctx, 2, 0))
	},
	"semaphore mutex": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(locks.NewInterProcessSemaphoreMutex(c, path).Acquire(ctx))
	},
	"multi lock": func(ctx context.Context, c *framework.Client, path string) error {
		one, two := locks.NewInterProcessMutex(c, path), locks.NewInterProcessSemaphoreMutex(c, path+"x")
		return failure(locks.NewInterProcessMultiLock(one, two).Acquire(ctx))
	},
	"latch, participants": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(leader.NewLeaderLatch(c, path).Participants(ctx))
	},
	"atomic number, get": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(atomic.NewDistributedAtomicLong(c, path, retry.NTimes(3, time.Millisecond)).Get(ctx))
	},
	"latch, leader": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(leader.NewLeaderLatch(c, path).Leader(ctx))
	},
	"latch, observe": func(ctx context.Context, c *framework.Client, path string) error {
		for _, err := range leader.ObserveLatch(ctx, c, path) {
			return err
		}
		return nil
	},
	"value, watch": func(ctx context.Context, c *framework.Client, path string) error {
		for _, err := range shared.NewValue(c, path, codec.Codec[string](codec.Text{})).Watch(ctx) {
			return err
		}
		return nil
	},
	"persistent watcher": func(ctx context.Context, c *framework.Client, path string) error {
		errs := make(reported, 1)
		defer c.AddUnhandledErrorListener(func(ctx context.Context, e framework.UnhandledError) { errs.report(ctx, e.Err) })()
		w := cache.NewPersistentWatcher(c, path, true)
		return cached(w.Start(), w.Close, func() error { return errs.wait(ctx) })
	},
	"barrier, wait": func(ctx context.Context, c *framework.Client, path string) error {
		return barrier.NewDistributedBarrier(c, path).WaitOnBarrier(ctx)
	},
	"simple queue, poll": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(queue.NewSimpleDistributedQueue(c, path).Poll(ctx))
	},
	"simple queue, poll for": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(queue.NewSimpleDistributedQueue(c, path).PollFor(ctx, time.Second))
	},
	"simple queue, peek": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(queue.NewSimpleDistributedQueue(c, path).Peek(ctx))
	},
	"simple queue, element": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(queue.NewSimpleDistributedQueue(c, path).Element(ctx))
	},
	"simple queue, remove": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(queue.NewSimpleDistributedQueue(c, path).Remove(ctx))
	},
	"queue, items": func(ctx context.Context, c *framework.Client, path string) error {
		return pull(ctx, texts(c, path))
	},
	"queue with locks, items": func(ctx context.Context, c *framework.Client, path string) error {
		return pull(ctx, texts(c, path).LockPath(path+"-locks"))
	},
	"queue, consumer": func(ctx context.Context, c *framework.Client, path string) error {
		errs := make(reported, 1)
		b := queue.NewBuilder(c, func(context.Context, string) error { return nil }, codec.Codec[string](codec.Text{}), path)
		q, err := b.OnError(errs.report).LockPath(path + "-locks").BuildQueue()
		return started(q, err, func() error { return errs.wait(ctx) })
	},
	"bounded queue": func(ctx context.Context, c *framework.Client, path string) error {
		q, err := texts(c, path).MaxItems(2).BuildQueue()
		return started(q, err, func() error { return waitFor(ctx)(q.PutAsync(ctx, "a")) })
	},
	"priority queue": func(ctx context.Context, c *framework.Client, path string) error {
		q, err := texts(c, path).BuildPriorityQueue(1)
		return started(q, err, func() error { return waitFor(ctx)(q.PutAsync(ctx, "a", 1)) })
	},
	"delay queue": func(ctx context.Context, c *framework.Client, path string) error {
		q, err := texts(c, path).BuildDelayQueue()
		return started(q, err, func() error { return waitFor(ctx)(q.PutAsync(ctx, "a", time.Now())) })
	},
	"id queue": func(ctx context.Context, c *framework.Client, path string) error {
		q, err := texts(c, path).BuildIDQueue()
		return started(q, err, func() error { return waitFor(ctx)(q.PutAsync(ctx, "a", "id")) })
	},
	"id queue, remove": func(ctx context.Context, c *framework.Client, path string) error {
		q, err := texts(c, path).BuildIDQueue()
		return started(q, err, func() error { return failure(q.Remove(ctx, "id")) })
	},
	"queue sharder, queue": func(ctx context.Context, c *framework.Client, path string) error {
		open := func(path string) (*queue.DistributedQueue[string], error) { return texts(c, path).BuildQueue() }
		s := queue.NewQueueSharder(c, open, path, leading{})
		if err := s.Start(); err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		return failure(s.Queue(ctx))
	},
	"node, wait": func(ctx context.Context, c *framework.Client, path string) error {
		n := nodes.NewPersistentNode(c, path, builders.Ephemeral, nil)
		if err := n.Start(); err != nil {
			return err
		}
		defer func() { _ = n.Close(ctx) }()
		return n.WaitForInitialCreate(ctx)
	},
	"node, data": func(ctx context.Context, c *framework.Client, path string) error {
		n := nodes.NewPersistentNode(c, path, builders.PersistentSequential, nil)
		if err := n.Start(); err != nil {
			return err
		}
		defer func() { _ = n.Close(ctx) }()
		return n.SetData(ctx, []byte("x"))
	},
	"cache": func(ctx context.Context, c *framework.Client, path string) error {
		tree := cache.NewCuratorCache(c, path)
		return cached(tree.Start(), tree.Close, func() error { return tree.Ready(ctx) })
	},
	"cache, err": func(ctx context.Context, c *framework.Client, path string) error {
		tree := cache.NewCuratorCache(c, path)
		return cached(tree.Start(), tree.Close, func() error { _ = tree.Ready(ctx); return tree.Err(path) })
	},
	"cache, sync": func(ctx context.Context, c *framework.Client, path string) error {
		tree := cache.NewCuratorCache(c, path)
		return cached(tree.Start(), tree.Close, func() error { return tree.Sync(ctx) })
	},
	"cache, rebuild": func(ctx context.Context, c *framework.Client, path string) error {
		tree := cache.NewCuratorCache(c, path, cache.WithMaxDepth(2))
		return cached(tree.Start(), tree.Close, func() error { return tree.Rebuild(ctx) })
	},
	"node cache": func(ctx context.Context, c *framework.Client, path string) error {
		one := cache.NewNodeCache(c, path)
		return cached(nil, one.Close, func() error { return one.StartAndBuild(ctx) })
	},
	"node cache, err": func(ctx context.Context, c *framework.Client, path string) error {
		one := cache.NewNodeCache(c, path)
		return cached(nil, one.Close, func() error { _ = one.StartAndBuild(ctx); return one.Err() })
	},
	"children cache": func(ctx context.Context, c *framework.Client, path string) error {
		children := cache.NewPathChildrenCache(c, path)
		return cached(nil, children.Close, func() error { return children.Start(ctx, cache.BuildInitialCache) })
	},
	"children cache, one": func(ctx context.Context, c *framework.Client, path string) error {
		children := cache.NewPathChildrenCache(c, path)
		start := children.Start(ctx, cache.Normal)
		return cached(start, children.Close, func() error { return children.RebuildNode(ctx, path+"/x") })
	},
	"tree cache": func(ctx context.Context, c *framework.Client, path string) error {
		tree := cache.NewTreeCache(c, path)
		return cached(tree.Start(), tree.Close, func() error { return tree.Rebuild(ctx) })
	},
	"cache of the root": func(ctx context.Context, c *framework.Client, _ string) error {
		tree := cache.NewCuratorCache(c.UsingNamespace(""), "/")
		return cached(tree.Start(), tree.Close, func() error { return tree.Ready(ctx) })
	},
}

// texts builds queues of strings.
func texts(c *framework.Client, path string) queue.Builder[string] {
	return queue.NewBuilder(c, nil, codec.Codec[string](codec.Text{}), path)
}

// started starts a queue, which err says cannot be built, and returns the error of call.
func started(q interface {
	Start() error
	Close() error
}, err error, call func() error,
) error {
	if err == nil {
		err = q.Start()
	}
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	return call()
}

// waitFor returns the error of a put.
func waitFor(ctx context.Context) func(put *queue.PendingPut, err error) error {
	return func(put *queue.PendingPut, err error) error {
		if err != nil {
			return err
		}
		return failure(put.Wait(ctx))
	}
}

// pull returns the error that ends a loop of Items.
func pull(ctx context.Context, b queue.Builder[string]) error {
	q, err := b.BuildQueue()
	return started(q, err, func() error {
		for _, err := range q.Items(ctx) {
			return err
		}
		return nil
	})
}

// cached returns the error of call, with a cache that is started unless err says so, and closes the cache.
func cached(err error, stop, call func() error) error {
	defer func() { _ = stop() }()
	if err != nil {
		return err
	}
	return call()
}

// allChrootCalls returns the calls of both tables.
func allChrootCalls() map[string]chrootCall {
	all := maps.Clone(chrootCalls)
	maps.Copy(all, readCalls)
	return all
}

// goesOn are recipes that try again in the background. Each is started and runs until stop is called.
var goesOn = map[string]func(t *testing.T, c *framework.Client, path string) (stop func()){
	"node": func(t *testing.T, c *framework.Client, path string) func() {
		n := nodes.NewPersistentNode(c, path, builders.Ephemeral, nil)
		testclient.Must(t, n.Start())
		return func() { _ = n.Close(testenv.Context(t)) }
	},
	"sequential node": func(t *testing.T, c *framework.Client, path string) func() {
		n := nodes.NewPersistentNode(c, path, builders.PersistentSequential, nil)
		testclient.Must(t, n.Start())
		return func() { _ = n.Close(testenv.Context(t)) }
	},
	"group member": func(t *testing.T, c *framework.Client, path string) func() {
		m := nodes.NewGroupMember(c, path, "a", nil)
		testclient.Must(t, m.Start())
		return func() { _ = m.Close(testenv.Context(t)) }
	},
	"queue": func(t *testing.T, c *framework.Client, path string) func() {
		b := queue.NewBuilder(c, func(context.Context, string) error { return nil }, codec.Codec[string](codec.Text{}), path)
		q, err := b.MeasureDepth().OnError(func(context.Context, error) {}).BuildQueue()
		testclient.Must(t, err)
		testclient.Must(t, q.Start())
		return func() { _ = q.Close() }
	},
	"priority queue with locks": func(t *testing.T, c *framework.Client, path string) func() {
		b := queue.NewBuilder(c, func(context.Context, string) error { return nil }, codec.Codec[string](codec.Text{}), path)
		q, err := b.LockPath(path + "-locks").OnError(func(context.Context, error) {}).BuildPriorityQueue(1)
		testclient.Must(t, err)
		testclient.Must(t, q.Start())
		return func() { _ = q.Close() }
	},
	"queue sharder": func(t *testing.T, c *framework.Client, path string) func() {
		open := func(path string) (*queue.DistributedQueue[string], error) { return texts(c, path).BuildQueue() }
		s := queue.NewQueueSharder(c, open, path, leading{}, queue.WithOnError(func(context.Context, error) {}))
		testclient.Must(t, s.Start())
		return func() { _ = s.Close() }
	},
	"latch": func(t *testing.T, c *framework.Client, path string) func() {
		l := leader.NewLeaderLatch(c, path)
		testclient.Must(t, l.Start())
		return func() { _ = l.Close() }
	},
	"selector": func(t *testing.T, c *framework.Client, path string) func() {
		lead := func(context.Context) error { return nil }
		discard := leader.WithOnError(func(context.Context, error) {})
		s := leader.NewLeaderSelector(c, path, lead, leader.WithAutoRequeue(), discard)
		testclient.Must(t, s.Start())
		return func() { _ = s.Close() }
	},
	"cache": func(t *testing.T, c *framework.Client, path string) func() {
		tree := cache.NewCuratorCache(c, path)
		testclient.Must(t, tree.Start())
		return func() { _ = tree.Close() }
	},
	"node cache": func(t *testing.T, c *framework.Client, path string) func() {
		one := cache.NewNodeCache(c, path)
		testclient.Must(t, one.Start())
		return func() { _ = one.Close() }
	},
	"children cache": func(t *testing.T, c *framework.Client, path string) func() {
		children := cache.NewPathChildrenCache(c, path)
		testclient.Must(t, children.Start(testenv.Context(t), cache.Normal))
		return func() { _ = children.Close() }
	},
	"tree cache": func(t *testing.T, c *framework.Client, path string) func() {
		tree := cache.NewTreeCache(c, path)
		testclient.Must(t, tree.Start())
		return func() { _ = tree.Close() }
	},
	"persistent watcher": func(t *testing.T, c *framework.Client, path string) func() {
		w := cache.NewPersistentWatcher(c, path, true)
		testclient.Must(t, w.Start())
		return func() { _ = w.Close() }
	},
}

// A recipe that goes on without its chroot asks the server a few times a second at most, and less after a while.
func TestRecipeThatGoesOnInMissingChrootSendsFewRequests(t *testing.T) {
	t.Parallel()
	requests := func(place testenv.Place, during time.Duration, ctx context.Context) (n int) {
		place.Faults().ResetTrace()
		over, cancel := context.WithTimeout(ctx, during)
		defer cancel()
		<-over.Done()
		for _, entry := range place.Faults().Trace() {
			if !entry.Reply {
				n++
			}
		}
		return n
	}
	for name, start := range goesOn {
		for _, namespace := range []string{"", "ns"} {
			t.Run(name+" "+namespace, func(t *testing.T) {
				t.Parallel()
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					first, later := 5*time.Second, 10*time.Minute
					if testenv.Real() {
						later = 5 * time.Second
					}
					c := testclient.ConnectAt(t, place, chroot+lostChroot, framework.WithNamespace(namespace))
					defer start(t, c, "/a")()
					n := requests(place, first, t.Context())
					if n > 60 {
						t.Errorf("%d requests in the first %v", n, first)
					}
					m := requests(place, later, t.Context())
					if limit := 5 * int(later/time.Second); m > limit {
						t.Errorf("%d requests in the next %v", m, later)
					}
					t.Logf("%d requests in the first %v, %d in the next %v", n, first, m, later)
				})
			})
		}
	}
}

// A cache fills when its chroot is created, whoever has been given the error before.
func TestCacheInChrootThatIsCreatedLaterFills(t *testing.T) {
	t.Parallel()
	for _, withNode := range []bool{false, true} {
		t.Run(map[bool]string{false: "empty chroot", true: "with the node"}[withNode], func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx := testenv.Context(t)
				c := testclient.ConnectAt(t, place, chroot+lostChroot)
				tree, one := cache.NewCuratorCache(c, "/a"), cache.NewNodeCache(c, "/a")
				initialized := make(chan struct{})
				tree.AddListener(func(_ context.Context, ev cache.Event) {
					if ev.Type == cache.Initialized {
						close(initialized)
					}
				})
				testclient.Must(t, tree.Start())
				defer tree.Close() //nolint:errcheck // it returns nil
				defer one.Close()  //nolint:errcheck // it returns nil
				for _, err := range []error{tree.Ready(ctx), tree.Ready(ctx), one.StartAndBuild(ctx), tree.Err("/a"), one.Err()} {
					if !errors.Is(err, framework.ErrNoChroot) {
						t.Errorf("error is %v", err)
					}
				}
				select {
				case <-initialized:
					t.Error("initialized without a chroot")
				default:
				}

				above := testclient.ConnectAt(t, place, chroot)
				testclient.Must(t, failure(above.Create().CreatingParentsIfNeeded().ForPath(ctx, lostChroot, nil)))
				testclient.Must(t, tree.Ready(ctx)) // it looks again, and does not wait for the next try
				<-initialized
				testclient.Must(t, one.Rebuild(ctx))
				if !withNode {
					testclient.Must(t, errors.Join(tree.Err("/a"), one.Err()))
					return
				}
				testclient.Must(t, failure(c.Create().ForPath(ctx, "/a", []byte("x"))))
				testenv.Eventually(t, func() bool { return tree.Size() == 1 && one.CurrentData() != nil }, "the caches are filled")
				testclient.Must(t, errors.Join(tree.Err("/a"), one.Err()))
			})
		})
	}
}

// A cache that is filled becomes empty with its chroot, and says why.
func TestCacheWhoseChrootIsDeletedNamesIt(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx := testenv.Context(t)
		above := testclient.ConnectAt(t, place, chroot)
		testclient.Must(t, above.CreateContainers(ctx, lostChroot+"/a"))
		c := testclient.ConnectAt(t, place, chroot+lostChroot)
		tree := cache.NewCuratorCache(c, "/a")
		testclient.Must(t, tree.Start())
		defer tree.Close() //nolint:errcheck // it returns nil
		testclient.Must(t, tree.Ready(ctx))

		testclient.Must(t, above.Delete().DeletingChildrenIfNeeded().ForPath(ctx, "/apps"))
		if err := tree.Sync(ctx); !errors.Is(err, framework.ErrNoChroot) || tree.Size() != 0 {
			t.Errorf("error is %v, %d nodes", err, tree.Size())
		}
		if err := tree.Err("/a"); !errors.Is(err, framework.ErrNoChroot) {
			t.Errorf("error is %v", err)
		}
		testclient.Must(t, above.CreateContainers(ctx, lostChroot+"/a"))
		testenv.Eventually(t, func() bool { return tree.Size() == 1 && tree.Err("/a") == nil }, "the cache is filled again")
	})
}

// The chroot is deleted some time after the root of a cache, which has heard of that alone.
func TestCacheWhoseChrootIsDeletedBehindItsRootNamesIt(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx := testenv.Context(t)
		above := testclient.ConnectAt(t, place, chroot)
		testclient.Must(t, above.EnsurePath(ctx, lostChroot+"/a"))
		c := testclient.ConnectAt(t, place, chroot+lostChroot)
		tree := cache.NewCuratorCache(c, "/a")
		testclient.Must(t, tree.Start())
		defer tree.Close() //nolint:errcheck // it returns nil
		testclient.Must(t, tree.Ready(ctx))
		testclient.Must(t, c.Delete().ForPath(ctx, "/a"))
		testclient.Must(t, tree.Sync(ctx))

		testclient.Must(t, above.Delete().DeletingChildrenIfNeeded().ForPath(ctx, "/apps"))
		if err := tree.Sync(ctx); !errors.Is(err, framework.ErrNoChroot) {
			t.Errorf("error is %v", err)
		}
		testclient.Must(t, above.EnsurePath(ctx, lostChroot))
		testclient.Must(t, tree.Sync(ctx))
		if err := tree.Err("/a"); err != nil {
			t.Errorf("the chroot is back: %v", err)
		}
	})
}

// What has begun without the chroot works when the chroot is created.
func TestRecipeThatGoesOnInChrootThatIsCreatedLaterWorks(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T, c *framework.Client) (works func(ctx context.Context) error){
		"consumer": func(t *testing.T, c *framework.Client) func(ctx context.Context) error {
			consumed := make(chan string, 1)
			consume := func(_ context.Context, item string) error { consumed <- item; return nil }
			b := queue.NewBuilder(c, consume, codec.Codec[string](codec.Text{}), "/a")
			q, err := b.LockPath("/locks").OnError(func(context.Context, error) {}).BuildQueue()
			testclient.Must(t, err)
			testclient.Must(t, q.Start())
			t.Cleanup(func() { _ = q.Close() })
			return func(ctx context.Context) error {
				if err := waitFor(ctx)(q.PutAsync(ctx, "x")); err != nil {
					return err
				}
				return await(ctx, consumed)
			}
		},
		"sharder": func(t *testing.T, c *framework.Client) func(ctx context.Context) error {
			open := func(path string) (*queue.DistributedQueue[string], error) { return texts(c, path).BuildQueue() }
			s := queue.NewQueueSharder(c, open, "/a", leading{}, queue.WithOnError(func(context.Context, error) {}))
			testclient.Must(t, s.Start())
			t.Cleanup(func() { _ = s.Close() })
			return func(ctx context.Context) error { return failure(s.Queue(ctx)) }
		},
		"latch": func(t *testing.T, c *framework.Client) func(ctx context.Context) error {
			l := leader.NewLeaderLatch(c, "/a")
			testclient.Must(t, l.Start())
			t.Cleanup(func() { _ = l.Close() })
			return func(ctx context.Context) error { return failure(l.Await(ctx)) }
		},
		"selector": func(t *testing.T, c *framework.Client) func(ctx context.Context) error {
			led := make(chan struct{}, 1)
			lead := func(ctx context.Context) error { led <- struct{}{}; <-ctx.Done(); return ctx.Err() }
			discard := leader.WithOnError(func(context.Context, error) {})
			s := leader.NewLeaderSelector(c, "/a", lead, leader.WithAutoRequeue(), discard)
			testclient.Must(t, s.Start())
			t.Cleanup(func() { _ = s.Close() })
			return func(ctx context.Context) error { return await(ctx, led) }
		},
		"group member": func(t *testing.T, c *framework.Client) func(ctx context.Context) error {
			m := nodes.NewGroupMember(c, "/a", "x", nil)
			testclient.Must(t, m.Start())
			t.Cleanup(func() { _ = m.Close(testenv.Context(t)) })
			return func(ctx context.Context) error { return errors.Join(m.Ready(ctx), m.Err()) }
		},
		"persistent watcher": func(t *testing.T, c *framework.Client) func(ctx context.Context) error {
			events := make(chan zk.Event, 10)
			w := cache.NewPersistentWatcher(c, "/a", true)
			w.AddListener(func(_ context.Context, ev zk.Event) { events <- ev })
			testclient.Must(t, w.Start())
			t.Cleanup(func() { _ = w.Close() })
			return func(ctx context.Context) error {
				return errors.Join(c.EnsurePath(ctx, "/a/b"), await(ctx, events))
			}
		},
		"value": func(t *testing.T, c *framework.Client) func(ctx context.Context) error {
			v := shared.NewValue(c, "/a", codec.Codec[string](codec.Text{}))
			values := make(chan string, 10)
			following, stop := context.WithCancel(testenv.Context(t))
			over := make(chan struct{})
			go func() {
				defer close(over)
				for value, err := range v.Watch(following) {
					if err == nil {
						values <- value
					}
				}
			}()
			t.Cleanup(func() { stop(); <-over })
			return func(ctx context.Context) error {
				return errors.Join(failure(v.Set(ctx, "x")), await(ctx, values))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx := testenv.Context(t)
				above := testclient.ConnectAt(t, place, chroot)
				c := testclient.ConnectAt(t, place, chroot+lostChroot)
				works := begin(t, c)
				short, cancel := context.WithTimeout(ctx, 2*time.Second) // for some tries
				defer cancel()
				<-short.Done()
				testclient.Must(t, above.CreateContainers(ctx, lostChroot))
				testclient.Must(t, works(ctx))
			})
		})
	}
}

// await waits for a value.
func await[T any](ctx context.Context, values <-chan T) error {
	select {
	case <-values:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
