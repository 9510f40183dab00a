package shared

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/waitqueue"
)

// node is the node of a value.
type node struct {
	client *framework.Client
	path   string
	name   string // in metrics
	obs    report.Value
}

func (n *node) init(client *framework.Client, recipe, path string, opts []Option) {
	n.client, n.path, n.name = client, path, settingsOf(opts).name
	n.obs = report.NewValue(hook.Telemetry(client), recipe, n.name, path)
}

// revision is the data of a node with its Stat.
type revision struct {
	data []byte
	stat zk.Stat
}

// wrap returns err with what was done, or nil if err is nil.
func (n *node) wrap(err error, did string) error {
	if err == nil {
		return nil
	}
	return errtext.Wrap(err, "shared", "%s %s", did, n.path)
}

// untilClosed returns a context that ends with ctx and when the client is closed: framework.ErrClosed is its cause
// then.
func (n *node) untilClosed(ctx context.Context) (open context.Context, end func()) {
	open, cancel := context.WithCancelCause(ctx)
	remove := context.AfterFunc(hook.Closing(n.client), func() { cancel(framework.ErrClosed) })
	return open, func() {
		remove()
		cancel(nil)
	}
}

// read returns the data of the node.
func (n *node) read(ctx context.Context) (r revision, err error) {
	r.data, err = n.client.GetData().Undecompressed().StoringStatIn(&r.stat).ForPath(ctx, n.path)
	return r, err
}

// create creates the node and its parents.
func (n *node) create(ctx context.Context, data []byte) (r revision, err error) {
	_, err = n.client.Create().CreatingParentContainersIfNeeded().Uncompressed().StoringStatIn(&r.stat).
		ForPath(ctx, n.path, data)
	r.data = data
	return r, err
}

// set sets the data of the node, whatever its version.
func (n *node) set(ctx context.Context, data []byte) (revision, error) {
	var stat *zk.Stat
	lost, err := n.attempt(ctx, func(ctx context.Context, _ bool) (err error) {
		stat, err = n.client.SetData().Uncompressed().ForPath(ctx, n.path, data)
		return err
	})
	if err != nil {
		return revision{}, n.outcome(ctx, err, lost)
	}
	return revision{data, *stat}, nil
}

// createOrSet sets the data of the node, and creates it if there is none.
func (n *node) createOrSet(ctx context.Context, data []byte) (revision, error) {
	r := revision{data: data}
	lost, err := n.attempt(ctx, func(ctx context.Context, _ bool) error {
		_, err := n.client.Create().OrSetData().CreatingParentContainersIfNeeded().Uncompressed().StoringStatIn(&r.stat).
			ForPath(ctx, n.path, data)
		return err
	})
	return r, n.outcome(ctx, err, lost)
}

// compareAndSet sets the data of the node if it still is in the state previous. If another client was faster, swapped
// is false and now is the new state. If that cannot be read, the error is that of the read, and nothing was set.
//
// The client sends the write again after a lost answer. If that succeeds, the lost one was not applied, because they
// have the same version. If the version is another one by then, the data decides: the write that came behind previous
// is that of another client if its data is not ours. Otherwise it is unknown who has written it. A node that was made
// while the client was away has versions of its own: behind an outage it must be the same node, too.
func (n *node) compareAndSet(
	ctx context.Context, previous zk.Stat, data []byte,
) (now revision, swapped bool, err error) {
	if previous.Version == -1 {
		return now, false, ErrIllegalVersion
	}
	var stat *zk.Stat
	wasAway := !n.client.IsConnected()
	lost, err := n.attempt(ctx, func(ctx context.Context, lost bool) (err error) {
		if (lost || wasAway) && previous.Czxid != 0 {
			if err := n.checkSame(ctx, previous.Czxid); err != nil {
				if !lost && framework.MayHaveTakenEffect(err) {
					err = errtext.Join(err, framework.ErrNotSent) // the write was not
				}
				return err
			}
		}
		stat, err = n.client.SetData().WithVersion(previous.Version).Uncompressed().ForPath(ctx, n.path, data)
		return err
	})
	switch {
	case err == nil:
		return revision{data, *stat}, true, nil
	case !errors.Is(err, zk.ErrBadVersion):
		return now, false, n.outcome(ctx, err, lost)
	}
	now, readErr := n.read(ctx)
	isNext := now.stat.Czxid == previous.Czxid && now.stat.Version == previous.Version+1
	if lost && (readErr != nil || !isNext || bytes.Equal(now.data, data)) {
		return now, false, n.outcome(ctx, errtext.Join(err, readErr), true)
	}
	n.obs.Conflict(ctx)
	if readErr != nil {
		return revision{}, false, readErr
	}
	return now, false, nil
}

// checkSame returns zk.ErrBadVersion if the node is not the one that czxid has created.
func (n *node) checkSame(ctx context.Context, czxid int64) error {
	var stat *zk.Stat
	err := n.client.Sync().ForPath(ctx, n.path)
	if err == nil {
		stat, err = n.client.CheckExists().ForPath(ctx, n.path)
	}
	switch {
	case err != nil:
		return err
	case stat == nil:
		return zk.ErrNoNode
	case stat.Czxid != czxid:
		return zk.ErrBadVersion
	}
	return nil
}

// compareAndCreate creates the node. If another client was faster, created is false. After a lost answer nobody knows
// who has created the node that is there: ours may have been deleted since.
func (n *node) compareAndCreate(ctx context.Context, data []byte) (now revision, created bool, err error) {
	lost, err := n.attempt(ctx, func(ctx context.Context, _ bool) (err error) {
		now, err = n.create(ctx, data)
		return err
	})
	switch {
	case err == nil:
		return now, true, nil
	case lost || !errors.Is(err, zk.ErrNodeExists):
		return revision{}, false, n.outcome(ctx, err, lost)
	}
	n.obs.Conflict(ctx)
	return revision{}, false, nil
}

// attempt calls write by the retry policy of the client. lost reports whether one of its answers was lost.
func (n *node) attempt(ctx context.Context, write func(ctx context.Context, lost bool) error) (lost bool, err error) {
	err = n.client.CallWithRetry(ctx, func(ctx context.Context) error {
		err := write(ctx, lost)
		lost = lost || isLost(err)
		return err
	})
	return lost, err
}

// outcome returns the error of a write that failed with err. lost means that it may have taken effect.
func (n *node) outcome(ctx context.Context, err error, lost bool) error {
	if err == nil || !lost {
		return err
	}
	n.obs.Uncertain(ctx)
	return errtext.Join(ErrUncertain, errtext.Sent(err, framework.ErrNotSent))
}

// isLost reports whether a write with the error err may have taken effect.
func isLost(err error) bool {
	return (waitqueue.IsOutage(err) || errors.Is(err, framework.ErrUncertain)) && !errors.Is(err, framework.ErrNotSent)
}
