package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// lineup is where contenders for a lock stand in line: a node whose children are they.
type lineup struct {
	client Client
	path   string
	name   string // in front of the numbers: "lock-"
}

// contender is a place in the line: a node of ours that lives as long as our session.
type contender struct {
	path    string
	stat    zk.Stat
	session *framework.Session // set when the lock is granted
}

// forever is the wait of those whose context alone bounds it.
const forever time.Duration = -1

// errGone says that our node is gone, or belongs to a session that is over: to be granted anything we have to line up
// anew.
var errGone = errors.New("locks: contender is gone")

// acquire lines up and waits until the lock is granted. It leaves nothing behind when it fails.
func (l *lineup) acquire(ctx context.Context, wait time.Duration, data []byte) (*contender, error) {
	bounded := ctx
	if wait > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	for {
		c, err := l.attempt(bounded, wait, data)
		switch {
		case err == nil:
			return c, nil
		case errors.Is(err, errGone):
			continue
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil: // the end of wait
			return nil, ErrNotAcquired
		}
		return nil, err
	}
}

// attempt creates a contender and sees it through. The create and the first list travel together: an uncontended lock
// takes one round trip.
func (l *lineup) attempt(ctx context.Context, wait time.Duration, data []byte) (_ *contender, err error) {
	c := &contender{}
	creation := l.client.Create().
		CreatingParentContainersIfNeeded().
		WithProtection().
		WithMode(builders.EphemeralSequential).
		StoringStatIn(&c.stat).
		Submit(ctx, zkpath.Join(l.path, l.name), data)
	children, listErr := l.client.GetChildren().ForPath(ctx, l.path)
	if c.path, err = creation.Wait(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.leave(ctx, c.path)
		}
	}()
	if listErr != nil || !slices.Contains(children, zkpath.Node(c.path)) { // the lock itself had to be created first
		if children, err = l.list(ctx); err != nil {
			return nil, gone(err)
		}
	}
	return c, l.await(ctx, wait, c, children)
}

// await waits until c is the first in line. Each contender watches only the one before it.
func (l *lineup) await(ctx context.Context, wait time.Duration, c *contender, children []string) error {
	for {
		pred, found := predecessor(children, l.name, zkpath.Node(c.path))
		switch {
		case !found || !l.isCurrent(c):
			return errGone
		case pred == "":
			return l.grant(c)
		case wait == 0:
			return ErrNotAcquired
		}
		watched := zkpath.Join(l.path, pred)
		woken := make(chan zk.Event, 1)
		watcher := callbacks.NewChanWatcher(woken) // a new one: the late removal of the last must not take it
		// Not exists: that would leave a watch on a node that is gone.
		switch _, err := l.client.GetData().UsingWatcher(watcher).ForPath(ctx, watched); {
		case err == nil:
			select {
			case <-woken: // whatever it was: look again
			case <-ctx.Done():
				l.unwatch(ctx, watcher, watched)
				return ctx.Err()
			}
			l.unwatch(ctx, watcher, watched)
		case errors.Is(err, zk.ErrNoNode):
		default:
			l.unwatch(ctx, watcher, watched) // its answer may be on its way
			if !isOutage(err) {
				return err
			}
		}
		var err error
		if children, err = l.list(ctx); err != nil {
			return gone(err)
		}
	}
}

// list lists the line. A lost connection does not end the wait of a contender: its place is kept as long as the
// session, and what comes of that is seen when there is a connection again.
func (l *lineup) list(ctx context.Context) ([]string, error) {
	for {
		if err := l.client.BlockUntilConnected(ctx); err != nil {
			return nil, err
		}
		children, err := l.client.GetChildren().ForPath(ctx, l.path)
		if err == nil || !isOutage(err) {
			return children, err
		}
	}
}

// isOutage reports whether err only says that there was no connection.
func isOutage(err error) bool {
	return errors.Is(err, framework.ErrConnectionLoss) || errors.Is(err, framework.ErrOperationTimeout) ||
		errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved)
}

// gone turns the failure to list a line that does not exist any more into that of our node.
func gone(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return errGone
	}
	return err
}

// grant gives the lock to c if its node belongs to the current session. The node of an earlier one may still be there,
// first in line and about to vanish.
func (l *lineup) grant(c *contender) error {
	if !l.isCurrent(c) {
		return errGone
	}
	c.session = l.client.Session()
	return nil
}

// isCurrent reports whether c's node belongs to the session that we have.
func (l *lineup) isCurrent(c *contender) bool {
	s := l.client.Session()
	return s != nil && s.ID() == c.stat.EphemeralOwner && s.Context().Err() == nil
}

// release deletes a node and waits for it. ctx bounds the waiting, not the deleting.
func (l *lineup) release(ctx context.Context, path string) error {
	if err := l.client.Delete().Guaranteed().Quietly().ForPath(ctx, path); err != nil {
		return fmt.Errorf("locks: release: %w", err)
	}
	return nil
}

// participants returns the paths of the contenders in their order; none if there is no line yet.
func (l *lineup) participants(ctx context.Context) ([]string, error) {
	children, err := l.client.GetChildren().ForPath(ctx, l.path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("locks: participants: %w", err)
	}
	paths := sorted(children, l.name)
	for i, child := range paths {
		paths[i] = zkpath.Join(l.path, child)
	}
	return paths, nil
}

// leave deletes a node, in the background until it is done.
func (l *lineup) leave(ctx context.Context, path string) {
	_ = l.client.Delete().Guaranteed().Quietly().InBackground(ignore).ForPath(ctx, path)
}

// unwatch takes a watch back that may not have fired.
func (l *lineup) unwatch(ctx context.Context, w *callbacks.Watcher, path string) {
	_ = l.client.Watches().Remove(w).Guaranteed().Quietly().InBackground(ignore).ForPath(ctx, path)
}

// ignore is for what goes on without us. When it is refused, the client is closed and the session ends with all it had.
func ignore(context.Context, callbacks.Event) {}
