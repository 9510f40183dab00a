package waitqueue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/zkpath"
)

// Queue is a wait queue: contenders are child nodes of one path, and wait in the order of their numbers.
type Queue struct {
	Client *framework.Client
	Path   string
	Prefix string // the prefix of our nodes before their numbers, such as "lock-"
	Data   []byte // the data of our nodes; nil means the default data of the client
	// Judge decides whether a contender has its turn. The default is [First].
	Judge func(children []string, own string) Verdict
	// Order sorts the children for Participants. The default is by number.
	Order func(children []string) []string
	// PrepareCreate completes the create of a contender. The default is a protected, ephemeral, sequential node.
	PrepareCreate func(builders.Create) builders.Create
	// CountPath is a node whose children are counted after each list of the queue, in the same flight; "" means none.
	CountPath string
	// OnQueued receives the number of contenders before a new one. It may be nil.
	OnQueued func(ahead int)
}

// Contender is our node in a queue. It lives as long as our session.
type Contender struct {
	Path       string
	Stat       zk.Stat
	ChildCount int                // number of children of Queue.CountPath after the last list; -1 if not counted
	Session    *framework.Session // set when the contender has its turn
}

// Forever is the wait of a caller that only its context bounds.
const Forever time.Duration = -1

// Acquire creates a contender and waits for its turn. If it fails, it leaves neither node nor watch. With a wait of 0
// it does not wait for others. It fails with [ErrNotAcquired] if the turn does not come within wait.
func (q *Queue) Acquire(ctx context.Context, wait time.Duration) (*Contender, error) {
	return Retry(ctx, q.Client, wait, func(ctx context.Context) (*Contender, error) { return q.AcquireOnce(ctx, wait) })
}

// AcquireOnce is Acquire without a second try: it fails with [ErrNodeLost] if our node vanishes while it waits. It
// sends the create and the first list together, so an uncontended acquire takes one round trip.
func (q *Queue) AcquireOnce(ctx context.Context, wait time.Duration) (_ *Contender, err error) {
	ctx = builders.OutOfFlight(hook.Telemetry(q.Client).ExpectingErrors(ctx)) // a retry of the program holds up no grant
	c := &Contender{}
	creation := q.newCreate().StoringStatIn(&c.Stat).Submit(ctx, zkpath.Join(q.Path, q.Prefix), q.Data)
	children, listErr := q.listOnce(ctx, c)
	if c.Path, err = creation.Wait(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			q.ReleaseInBackground(ctx, c.Path)
		}
	}()
	if listErr != nil || !slices.Contains(children, zkpath.Node(c.Path)) { // the create had to create the parents first
		if children, err = q.list(ctx, wait, c); err != nil {
			return nil, asNodeLost(err)
		}
	}
	if q.OnQueued != nil {
		q.OnQueued(countBefore(children, zkpath.Node(c.Path)))
	}
	return c, q.await(ctx, wait, c, children)
}

// newCreate returns the create of a contender.
func (q *Queue) newCreate() builders.Create {
	create := q.Client.Create().CreatingParentContainersIfNeeded()
	if q.PrepareCreate != nil {
		return q.PrepareCreate(create)
	}
	return create.WithProtection().WithMode(builders.EphemeralSequential)
}

// judge returns the verdict for our node among the children.
func (q *Queue) judge(children []string, own string) Verdict {
	if q.Judge != nil {
		return q.Judge(children, own)
	}
	return First(children, own, q.Prefix)
}

// listOnce lists the queue, and counts the children of CountPath into c.
func (q *Queue) listOnce(ctx context.Context, c *Contender) ([]string, error) {
	list := q.Client.GetChildren()
	c.ChildCount = -1
	if q.CountPath == "" {
		return list.ForPath(ctx, q.Path)
	}
	flight := builders.Pipelined(ctx) // a separate retry of the count could return an older state than the list
	listed := list.Submit(flight, q.Path)
	counted := q.Client.CheckExists().Submit(flight, q.CountPath)
	children, err := listed.Wait(flight)
	stat, countErr := counted.Wait(flight)
	if err != nil {
		return nil, err
	}
	if stat != nil {
		c.ChildCount = int(stat.NumChildren)
	}
	return children, countErr
}

// await waits for the turn of c. Each contender watches only the node that it waits for.
func (q *Queue) await(ctx context.Context, wait time.Duration, c *Contender, children []string) error {
	for {
		v, session := q.judge(children, zkpath.Node(c.Path)), q.Client.Session()
		switch {
		case !v.Found || !c.isOf(session): // the node of an earlier session may still exist; the server is about to delete it
			return ErrNodeLost
		case v.Granted:
			c.Session = session
			return nil
		case wait == 0:
			return ErrNotAcquired
		}
		watcher, ended := NewEndWatcher() // a new one: a late removal of the last watch must not remove it
		watched, changed, err := q.watch(ctx, watcher, v, c)
		switch {
		case err == nil && !changed && c.isOf(q.Client.Session()): // a watch of the next session misses the end of ours
			select {
			case <-ended:
			case <-ctx.Done():
				Unwatch(ctx, q.Client, watcher, watched)
				return ctx.Err()
			}
		case err == nil:
			Unwatch(ctx, q.Client, watcher, watched)
		case errors.Is(err, zk.ErrNoNode): // the read has set no watch
		default:
			Unwatch(ctx, q.Client, watcher, watched) // the server may have set the watch
			if !IsPassing(err) {
				return err
			}
			if Pause(ctx, OutagePause) != nil {
				return ctx.Err()
			}
		}
		if children, err = q.list(ctx, wait, c); err != nil {
			return asNodeLost(err)
		}
	}
}

// watch sets the watch of the verdict v. changed is true if the verdict has changed since.
func (q *Queue) watch(
	ctx context.Context, w *callbacks.Watcher, v Verdict, c *Contender,
) (path string, changed bool, err error) {
	if v.Watch == "" {
		children, err := q.Client.GetChildren().UsingWatcher(w).ForPath(ctx, q.Path)
		return q.Path, err == nil && q.judge(children, zkpath.Node(c.Path)) != v, err
	}
	path = zkpath.Join(q.Path, v.Watch)
	// An exists would leave a watch on a node that is gone. The data may be compressed by another client.
	_, err = q.Client.GetData().Undecompressed().UsingWatcher(w).ForPath(ctx, path)
	return path, false, err
}

// list lists the queue. An error that passes does not end it: the contender keeps its place as long as its session.
// With a wait of 0 it does not wait for a connection.
func (q *Queue) list(ctx context.Context, wait time.Duration, c *Contender) ([]string, error) {
	for {
		if wait != 0 {
			if err := hook.AwaitConnection(ctx, q.Client); err != nil {
				return nil, err
			}
		}
		children, err := q.listOnce(ctx, c)
		if err == nil || wait == 0 || !IsPassing(err) {
			return children, err
		}
		if Pause(ctx, OutagePause) != nil {
			return nil, ctx.Err()
		}
	}
}

// isOf reports whether the node belongs to the session s, which must be alive. A persistent node belongs to any
// session.
func (c *Contender) isOf(s *framework.Session) bool {
	return s != nil && (s.ID() == c.Stat.EphemeralOwner || c.Stat.EphemeralOwner == 0) && s.Context().Err() == nil
}

// Release deletes a node and waits for the answer. ctx bounds the wait, not the delete.
func (q *Queue) Release(ctx context.Context, path string) error {
	return q.Client.Delete().Guaranteed().Quietly().ForPath(hook.OutOfFence(ctx), path)
}

// ReleaseInBackground deletes a node in the background, and retries until the delete succeeds.
func (q *Queue) ReleaseInBackground(ctx context.Context, path string) {
	_ = ForLibrary(q.Client).Delete().Guaranteed().Quietly().InBackground(Ignore).ForPath(hook.OutOfFence(ctx), path)
}

// Participants returns the paths of the contenders in order. It returns nil if the queue does not exist, and an error
// that matches framework.ErrNoChroot if the chroot does not.
func (q *Queue) Participants(ctx context.Context) ([]string, error) {
	children, err := q.Client.GetChildren().ForPath(ctx, q.Path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, CheckChroot(ctx, q.Client)
	}
	if err != nil {
		return nil, err
	}
	order := q.Order
	if order == nil {
		order = func(children []string) []string { return Sorted(children, q.Prefix) }
	}
	paths := order(children)
	for i, child := range paths {
		paths[i] = zkpath.Join(q.Path, child)
	}
	return paths, nil
}
