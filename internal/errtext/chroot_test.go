package errtext_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/recipes/barrier"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/recipes/shared"
	"github.com/gocurator/curator/retry"
)

// lostChroot is the chroot of the clients of TestRecipeInMissingChroot.
const lostChroot = "/apps/mine"

// reported passes on the first error that a recipe reports in the background.
type reported chan error

func (r reported) report(_ context.Context, err error) {
	select {
	case r <- err:
	default:
	}
}

func (r reported) wait(ctx context.Context) error {
	select {
	case err := <-r:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leading is a leader.
type leading struct{}

func (leading) HasLeadership() bool { return true }

// chrootCalls are calls of all recipes that need the chroot. path is one level or several below it.
var chrootCalls = map[string]func(ctx context.Context, c *framework.Client, path string) error{
	"create": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(c.Create().CreatingParentsIfNeeded().ForPath(ctx, path, nil))
	},
	"ensure path": func(ctx context.Context, c *framework.Client, path string) error {
		return c.EnsurePath(ctx, path)
	},
	"ensure path of the chroot": func(ctx context.Context, c *framework.Client, _ string) error {
		return c.EnsurePath(ctx, "/")
	},
	"create ephemeral, the chroot": func(ctx context.Context, c *framework.Client, _ string) error {
		return c.CreateEphemeral(ctx, "/", nil)
	},
	"create containers": func(ctx context.Context, c *framework.Client, path string) error {
		return c.CreateContainers(ctx, path)
	},
	"exists": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(c.CheckExists().CreatingParentsIfNeeded().ForPath(ctx, path))
	},
	"mutex": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(locks.NewInterProcessMutex(c, path).Acquire(ctx))
	},
	"read write lock": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(locks.NewInterProcessReadWriteLock(c, path).ReadLock().Acquire(ctx))
	},
	"semaphore": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(locks.NewInterProcessSemaphoreV2(c, path, 2).Acquire(ctx))
	},
	"selector": func(ctx context.Context, c *framework.Client, path string) error {
		errs := make(reported, 1)
		lead := func(context.Context) error { return nil }
		s := leader.NewLeaderSelector(c, path, lead, leader.WithOnError(errs.report))
		if err := s.Start(); err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		return errs.wait(ctx)
	},
	"latch": func(ctx context.Context, c *framework.Client, path string) error {
		l := leader.NewLeaderLatch(c, path)
		if err := l.Start(); err != nil {
			return err
		}
		defer func() { _ = l.Close() }()
		return failure(l.Await(ctx))
	},
	"leader, do": func(ctx context.Context, c *framework.Client, path string) error {
		return leader.Do(ctx, c, path, func(context.Context) error { return errors.New("it leads") })
	},
	"ephemeral node": func(ctx context.Context, c *framework.Client, path string) error {
		return c.CreateEphemeral(ctx, path, nil)
	},
	"claim": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(c.Claim(ctx, path, "/epochs/a", nil))
	},
	"barrier": func(ctx context.Context, c *framework.Client, path string) error {
		return barrier.NewDistributedBarrier(c, path).SetBarrier(ctx)
	},
	"double barrier": func(ctx context.Context, c *framework.Client, path string) error {
		return barrier.NewDistributedDoubleBarrier(c, path, 1).Enter(ctx)
	},
	"simple queue, offer": func(ctx context.Context, c *framework.Client, path string) error {
		return queue.NewSimpleDistributedQueue(c, path).Offer(ctx, []byte("x"))
	},
	"simple queue, take": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(queue.NewSimpleDistributedQueue(c, path).Take(ctx))
	},
	"queue": func(ctx context.Context, c *framework.Client, path string) error {
		q, err := queue.NewBuilder(c, nil, codec.Codec[string](codec.Text{}), path).BuildQueue()
		if err != nil {
			return err
		}
		if err := q.Start(); err != nil {
			return err
		}
		defer func() { _ = q.Close() }()
		if err := q.Put(ctx, "a"); err != nil {
			return err
		}
		return q.FlushPuts(ctx)
	},
	"queue sharder": func(ctx context.Context, c *framework.Client, path string) error {
		errs := make(reported, 1)
		open := func(path string) (*queue.DistributedQueue[string], error) {
			return queue.NewBuilder(c, nil, codec.Codec[string](codec.Text{}), path).BuildQueue()
		}
		s := queue.NewQueueSharder(c, open, path, leading{}, queue.WithOnError(errs.report))
		if err := s.Start(); err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		return errs.wait(ctx)
	},
	"shared value": func(ctx context.Context, c *framework.Client, path string) error {
		v := shared.NewSharedValue(c, path, nil)
		defer func() { _ = v.Close() }()
		return v.Start(ctx)
	},
	"shared count": func(ctx context.Context, c *framework.Client, path string) error {
		n := shared.NewSharedCount(c, path, 1)
		defer func() { _ = n.Close() }()
		return n.Start(ctx)
	},
	"value, set": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(shared.NewValue(c, path, codec.Raw{}).Set(ctx, nil))
	},
	"value, modify": func(ctx context.Context, c *framework.Client, path string) error {
		same := func(_ context.Context, data []byte) ([]byte, error) { return data, nil }
		return failure(shared.NewValue(c, path, codec.Raw{}).Modify(ctx, same))
	},
	"atomic value": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(atomic.NewDistributedAtomicValue(c, path, retry.NTimes(3, time.Millisecond)).TrySet(ctx, nil))
	},
	"atomic number": func(ctx context.Context, c *framework.Client, path string) error {
		return failure(atomic.NewDistributedAtomicLong(c, path, retry.NTimes(3, time.Millisecond)).Increment(ctx))
	},
	"node": func(ctx context.Context, c *framework.Client, path string) error {
		n := nodes.NewPersistentNode(c, path, builders.Ephemeral, nil)
		if err := n.Start(); err != nil {
			return err
		}
		defer func() { _ = n.Close(ctx) }()
		refused := make(reported, 1)
		n.AddListener(func(ctx context.Context, ev nodes.Event) { refused.report(ctx, ev.Err) })
		_ = n.WaitForInitialCreate(ctx)
		return n.Err()
	},
	"node with a TTL": func(ctx context.Context, c *framework.Client, path string) error {
		n := nodes.NewPersistentTTLNode(c, path, time.Minute, nil)
		if err := n.Start(); err != nil {
			return err
		}
		defer func() { _ = n.Close(ctx) }()
		return n.WaitForInitialCreate(ctx)
	},
	"group member": func(ctx context.Context, c *framework.Client, path string) error {
		m := nodes.NewGroupMember(c, path, "a", nil)
		if err := m.Start(); err != nil {
			return err
		}
		defer func() { _ = m.Close(ctx) }()
		return m.Ready(ctx)
	},
	"discovery": func(ctx context.Context, c *framework.Client, path string) error {
		d := discovery.New[string](c, path)
		if err := d.Start(); err != nil {
			return err
		}
		defer func() { _ = d.Close(ctx) }()
		return d.Register(ctx, discovery.NewServiceInstance[string]("a", "h", 1))
	},
	"discovery, names": reading(func(ctx context.Context, d *discovery.ServiceDiscovery[string]) error {
		return failure(d.Names(ctx))
	}),
	"discovery, instances": reading(func(ctx context.Context, d *discovery.ServiceDiscovery[string]) error {
		return failure(d.Instances(ctx, "a"))
	}),
	"discovery, instance": reading(func(ctx context.Context, d *discovery.ServiceDiscovery[string]) error {
		return failure(d.Instance(ctx, "a", "1"))
	}),
	"discovery, register once": reading(func(ctx context.Context, d *discovery.ServiceDiscovery[string]) error {
		i := discovery.NewServiceInstance[string]("a", "h", 1)
		i.Type = discovery.Static
		return d.RegisterOnce(ctx, i)
	}),
	"discovery, unregister": reading(func(ctx context.Context, d *discovery.ServiceDiscovery[string]) error {
		return d.Unregister(ctx, discovery.NewServiceInstance[string]("a", "h", 1))
	}),
	"discovery, purge": reading(func(ctx context.Context, d *discovery.ServiceDiscovery[string]) error {
		return failure(d.Purge(ctx, time.Hour))
	}),
	"discovery, cache": reading(func(ctx context.Context, d *discovery.ServiceDiscovery[string]) error {
		c := d.Cache("a")
		if err := c.Start(ctx); !errors.Is(err, framework.ErrNoChroot) {
			return fmt.Errorf("Start: %w", err)
		}
		if err := c.Sync(ctx); !errors.Is(err, framework.ErrNoChroot) {
			return fmt.Errorf("Sync: %w", err)
		}
		return c.Err()
	}),
	"discovery, provider": reading(func(ctx context.Context, d *discovery.ServiceDiscovery[string]) error {
		return d.Provider("a").Start(ctx)
	}),
	"discovery, pick": reading(func(ctx context.Context, d *discovery.ServiceDiscovery[string]) error {
		p := d.Provider("a")
		_ = p.Start(ctx)
		if _, err := p.Instance(); !errors.Is(err, framework.ErrNoChroot) {
			return fmt.Errorf("Instance: %w", err)
		}
		return failure(p.Pick(ctx))
	}),
}

// reading returns the call of a discovery that keeps nothing.
func reading(
	call func(ctx context.Context, d *discovery.ServiceDiscovery[string]) error,
) func(ctx context.Context, c *framework.Client, path string) error {
	return func(ctx context.Context, c *framework.Client, path string) error {
		d := discovery.New[string](c, path)
		if err := d.Start(); err != nil {
			return err
		}
		defer func() { _ = d.Close(ctx) }()
		return call(ctx, d)
	}
}

// Each recipe says that the chroot is missing, with its path, after a bounded number of requests, whether its node is
// directly below the chroot or further down, and with a namespace in between.
func TestRecipeInMissingChrootNamesChroot(t *testing.T) {
	t.Parallel()
	for name, call := range allChrootCalls() {
		for _, at := range []struct{ namespace, path string }{{"", "/a"}, {"", "/a/b/c"}, {"ns", "/a"}} {
			t.Run(name+" "+at.namespace+at.path, func(t *testing.T) {
				t.Parallel()
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					forever := framework.WithRetryPolicy(retry.Forever(time.Second))
					c := testclient.ConnectAt(t, place, chroot+lostChroot, forever)
					if at.namespace != "" {
						c = c.UsingNamespace(at.namespace)
					}
					place.Faults().ResetTrace()
					ctx, cancel := context.WithTimeout(testenv.Context(t), 5*time.Second)
					defer cancel()
					err := call(ctx, c, at.path)
					if !errors.Is(err, framework.ErrNoChroot) || !errors.Is(err, zk.ErrNoNode) ||
						!strings.Contains(err.Error(), "the chroot "+chroot+lostChroot+" does not exist") {
						t.Errorf("error %v does not name the chroot", err)
					}
					if n := len(place.Faults().Trace()); n > 200 {
						t.Errorf("%d requests and replies in 5 s", n)
					}
				})
			})
		}
	}
}

// What is tried in the background succeeds when the chroot is created; what has failed succeeds when it is called
// again.
func TestRecipeInChrootThatIsCreatedLaterSucceeds(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx := testenv.Context(t)
		c := testclient.ConnectAt(t, place, chroot+lostChroot)
		node := nodes.NewPersistentNode(c, "/members/a", builders.Ephemeral, nil)
		testclient.Must(t, node.Start())
		services := discovery.New[string](c, "/services")
		testclient.Must(t, services.Start())
		instances := services.Cache("a")
		if err := instances.Start(ctx); !errors.Is(err, framework.ErrNoChroot) {
			t.Errorf("start of a cache: %v", err)
		}
		registered := make(chan error, 1)
		go func() { registered <- services.Register(ctx, discovery.NewServiceInstance[string]("a", "h", 1)) }()
		testenv.Eventually(t, func() bool { return errors.Is(node.Err(), framework.ErrNoChroot) }, "the node is refused")
		simple := queue.NewSimpleDistributedQueue(c, "/jobs")
		if err := simple.Offer(ctx, []byte("x")); !errors.Is(err, framework.ErrNoChroot) {
			t.Errorf("Offer: %v", err)
		}

		above := testclient.ConnectAt(t, place, chroot)
		testclient.Must(t, failure(above.Create().CreatingParentsIfNeeded().ForPath(ctx, lostChroot, nil)))
		testclient.Must(t, node.WaitForInitialCreate(ctx))
		testclient.Must(t, node.Err())
		testclient.Must(t, simple.Offer(ctx, []byte("x")))
		if data, err := simple.Take(ctx); err != nil || string(data) != "x" {
			t.Errorf("Take: %q, %v", data, err)
		}
		if err := <-registered; err != nil && !errors.Is(err, framework.ErrNoChroot) {
			t.Errorf("Register: %v", err)
		}
		testenv.Eventually(t, func() bool { return len(instances.Instances()) == 1 }, "the cache has the instance")
		testclient.Must(t, instances.Err())
		testclient.Must(t, node.Close(ctx))
		testclient.Must(t, services.Close(ctx))
	})
}
