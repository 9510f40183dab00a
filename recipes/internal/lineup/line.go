package lineup

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/zkpath"
)

// Client is what a line needs of a [framework.Client].
type Client interface {
	Create() builders.Create
	CheckExists() builders.CheckExists
	Delete() builders.Delete
	GetData() builders.GetData
	GetChildren() builders.GetChildren
	Watches() builders.Watches
	Session() *framework.Session
	QuorumHeartbeats() (stop func())
	BlockUntilConnected(ctx context.Context) error
	Namespace() string
	UsingNamespace(ns string) *framework.Client
}

var _ Client = (*framework.Client)(nil)

// Line is where contenders stand in line: a node whose children they are.
type Line struct {
	Client Client
	Path   string
	Name   string // in front of the numbers of those who line up here: "lock-"
	Data   []byte // of their nodes, nil for the default data of the client
	// Judge decides whose turn it is; nil is that of the first in line.
	Judge func(children []string, own string) Verdict
	// Order sorts the line for who asks for it; nil is by number.
	Order func(children []string) []string
	// Make completes the create of a contender; nil makes a protected, ephemeral, sequential one.
	Make func(builders.Create) builders.Create
	// Count is the path of a node whose children are counted behind each list of the line, in one flight; "" for none.
	Count string
	// Contended says that the last to line up found others ahead, of those who share it. The next will list the line again
	// before it is its turn, so nothing is counted behind its first list. It may be nil.
	Contended *atomic.Bool
	// Lined is told how many stand before a contender when it has lined up. It may be nil.
	Lined func(ahead int)
}

// Verdict says how it stands with a contender.
type Verdict struct {
	Found   bool   // its node is there
	Granted bool   // it is its turn
	Watch   string // who has to go before it is; "" for anybody
}

// Contender is a place in the line: a node of ours that lives as long as our session.
type Contender struct {
	Path    string
	Stat    zk.Stat
	Counted int                // behind the last list: see Line.Count; -1 if nobody did
	Session *framework.Session // set when it is granted what it waits for
}

// Forever is the wait of those whose context alone bounds it.
const Forever time.Duration = -1

// ErrNotAcquired says that others were ahead for all the time there was to wait.
var ErrNotAcquired = errors.New("locks: not acquired")

// ErrLost says that what was granted is lost.
var ErrLost = errors.New("locks: lock lost")

// ErrGone says that our node is gone, or belongs to a session that is over: to be granted anything we have to line up
// anew.
var ErrGone = errors.New("locks: contender is gone")

// Acquire lines up and waits until it is our turn. It leaves nothing behind when it fails. With a wait of 0 it does not
// wait for others; ErrNotAcquired says that wait was not enough.
func (l *Line) Acquire(ctx context.Context, wait time.Duration) (*Contender, error) {
	return Retry(ctx, l.Client, wait, func(ctx context.Context) (*Contender, error) { return l.Once(ctx, wait) })
}

// Once is Acquire that fails with [ErrGone] if our node goes while it waits. The create and the first list travel
// together: when nobody is ahead it takes one round trip.
func (l *Line) Once(ctx context.Context, wait time.Duration) (_ *Contender, err error) {
	ctx = telemetry.Of(l.Client).Handling(ctx)
	c := &Contender{}
	creation := l.make().StoringStatIn(&c.Stat).Submit(ctx, zkpath.Join(l.Path, l.Name), l.Data)
	children, listErr := l.children(ctx, c, l.Contended == nil || !l.Contended.Load())
	if c.Path, err = creation.Wait(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.Leave(ctx, c.Path)
		}
	}()
	if listErr != nil || !slices.Contains(children, zkpath.Node(c.Path)) { // the lock itself had to be created first
		if children, err = l.list(ctx, wait, c); err != nil {
			return nil, gone(err)
		}
	}
	n := ahead(children, zkpath.Node(c.Path))
	if l.Contended != nil {
		l.Contended.Store(n > 0)
	}
	if l.Lined != nil {
		l.Lined(n)
	}
	return c, l.await(ctx, wait, c, children)
}

// make is the create of a contender.
func (l *Line) make() builders.Create {
	create := l.Client.Create().CreatingParentContainersIfNeeded()
	if l.Make != nil {
		return l.Make(create)
	}
	return create.WithProtection().WithMode(builders.EphemeralSequential)
}

// judge says how it stands with our node among the children.
func (l *Line) judge(children []string, own string) Verdict {
	if l.Judge != nil {
		return l.Judge(children, own)
	}
	return First(children, own, l.Name)
}

// children lists the line, and counts for c if it is to.
func (l *Line) children(ctx context.Context, c *Contender, count bool) ([]string, error) {
	list := l.Client.GetChildren()
	c.Counted = -1
	if l.Count == "" || !count {
		return list.ForPath(ctx, l.Path)
	}
	flight := builders.InOneFlight(ctx) // retried separately, the count could be older than the list
	listed := list.Submit(flight, l.Path)
	counted := l.Client.CheckExists().Submit(flight, l.Count)
	children, err := listed.Wait(flight)
	stat, countErr := counted.Wait(flight)
	if err != nil {
		return nil, err
	}
	if stat != nil {
		c.Counted = int(stat.NumChildren)
	}
	return children, countErr
}

// await waits until it is c's turn. Each contender watches only the one that it waits for.
func (l *Line) await(ctx context.Context, wait time.Duration, c *Contender, children []string) error {
	for {
		v, session := l.judge(children, zkpath.Node(c.Path)), l.Client.Session()
		switch {
		case !v.Found || !c.isOf(session): // the node of an earlier session may still be there, and about to vanish
			return ErrGone
		case v.Granted:
			c.Session = session
			return nil
		case wait == 0:
			return ErrNotAcquired
		}
		woken := make(chan zk.Event, 1)
		watcher := callbacks.NewChanWatcher(woken) // a new one: the late removal of the last must not take it
		watched, news, err := l.watch(ctx, watcher, v, c)
		switch {
		case err == nil && !news && c.isOf(l.Client.Session()): // a watch of the next session misses the end of ours
			select {
			case ev := <-woken: // whatever it was: look again
				if ev.Type == zk.EventSession { // else the watch has ended with its event
					l.unwatch(ctx, watcher, watched)
				}
			case <-ctx.Done():
				l.unwatch(ctx, watcher, watched)
				return ctx.Err()
			}
		case err == nil:
			l.unwatch(ctx, watcher, watched)
		case errors.Is(err, zk.ErrNoNode): // which leaves no watch
		default:
			l.unwatch(ctx, watcher, watched) // its answer may be on its way
			if !IsOutage(err) {
				return err
			}
		}
		if children, err = l.list(ctx, wait, c); err != nil {
			return gone(err)
		}
	}
}

// watch watches what c waits for. There are news if that has changed since it was judged.
func (l *Line) watch(
	ctx context.Context, w *callbacks.Watcher, v Verdict, c *Contender,
) (path string, news bool, err error) {
	if v.Watch == "" {
		children, err := l.Client.GetChildren().UsingWatcher(w).ForPath(ctx, l.Path)
		return l.Path, err == nil && l.judge(children, zkpath.Node(c.Path)) != v, err
	}
	path = zkpath.Join(l.Path, v.Watch)
	// Not exists: that would leave a watch on a node that is gone. Its data is not ours to read.
	_, err = l.Client.GetData().Undecompressed().UsingWatcher(w).ForPath(ctx, path)
	return path, false, err
}

// list lists the line. A lost connection does not end the wait of a contender: its place is kept as long as the
// session, and what comes of that is seen when there is a connection again. Who has a wait of 0 does not wait for that.
func (l *Line) list(ctx context.Context, wait time.Duration, c *Contender) ([]string, error) {
	for {
		if wait != 0 {
			if err := l.Client.BlockUntilConnected(ctx); err != nil {
				return nil, err
			}
		}
		children, err := l.children(ctx, c, true)
		if err == nil || wait == 0 || !IsOutage(err) {
			return children, err
		}
	}
}

// IsOutage reports whether err only says that there was no connection.
func IsOutage(err error) bool {
	return errors.Is(err, framework.ErrConnectionLoss) || errors.Is(err, framework.ErrOperationTimeout) ||
		errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved)
}

// gone turns the failure to list a line that does not exist any more into that of our node.
func gone(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return ErrGone
	}
	return err
}

// isOf reports whether the node belongs to a session that lasts, or to none.
func (c *Contender) isOf(s *framework.Session) bool {
	return s != nil && (s.ID() == c.Stat.EphemeralOwner || c.Stat.EphemeralOwner == 0) && s.Context().Err() == nil
}

// Release deletes a node and waits for it. ctx bounds the waiting, not the deleting.
func (l *Line) Release(ctx context.Context, path string) error {
	if err := l.Client.Delete().Guaranteed().Quietly().ForPath(hook.OutOfFence(ctx), path); err != nil {
		return errtext.Wrap(err, "locks", "release")
	}
	return nil
}

// Participants returns the paths of the contenders in their order; none if there is no line yet.
func (l *Line) Participants(ctx context.Context) ([]string, error) {
	children, err := l.Client.GetChildren().ForPath(ctx, l.Path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, errtext.Wrap(err, "locks", "participants")
	}
	order := l.Order
	if order == nil {
		order = func(children []string) []string { return Sorted(children, l.Name) }
	}
	paths := order(children)
	for i, child := range paths {
		paths[i] = zkpath.Join(l.Path, child)
	}
	return paths, nil
}

// Leave deletes a node, in the background until it is done.
func (l *Line) Leave(ctx context.Context, path string) {
	_ = l.Client.Delete().Guaranteed().Quietly().InBackground(Ignore).ForPath(hook.OutOfFence(ctx), path)
}

func (l *Line) unwatch(ctx context.Context, w *callbacks.Watcher, path string) {
	Unwatch(ctx, l.Client, w, path)
}

// Unwatch removes a watch that may not have fired, in the background.
func Unwatch(ctx context.Context, client Client, w *callbacks.Watcher, path string) {
	ctx = telemetry.Of(client).Aside(ctx)
	_ = client.Watches().Remove(w).Guaranteed().Quietly().InBackground(Ignore).ForPath(ctx, path)
}

// Ignore is for what goes on without us. When it is refused, the client is closed and the session ends with all it had.
func Ignore(context.Context, callbacks.Event) {}
