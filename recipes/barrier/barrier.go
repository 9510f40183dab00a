package barrier

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// DistributedBarrier is a gate: while it is set, all who come to it wait until it is removed. It is a node, which does
// not end with the session of who has set it. All methods are safe for concurrent use. In Java: DistributedBarrier.
type DistributedBarrier struct {
	client Client
	path   string
	bad    error // why the path cannot be
	told   telemetry.Barrier
}

// NewDistributedBarrier returns the barrier of a path. It does no I/O; a path that cannot be is the error of every
// method.
func NewDistributedBarrier(client Client, path string, opts ...Option) *DistributedBarrier {
	return &DistributedBarrier{
		client: client,
		path:   path,
		bad:    zkpath.Validate(path, false),
		told:   telemetry.Of(client).NewBarrier("barrier", settingsOf(opts).name, path),
	}
}

// SetBarrier sets the barrier, if it is not set already. In Java: setBarrier.
func (b *DistributedBarrier) SetBarrier(ctx context.Context) error {
	if b.bad != nil {
		return errtext.Wrap(b.bad, "barrier", "set")
	}
	_, err := b.client.Create().CreatingParentContainersIfNeeded().ForPath(ctx, b.path, nil)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return errtext.Wrap(err, "barrier", "set %s", b.path)
	}
	return nil
}

// RemoveBarrier removes the barrier, if it is set, and lets all through who wait. In Java: removeBarrier.
func (b *DistributedBarrier) RemoveBarrier(ctx context.Context) error {
	if b.bad != nil {
		return errtext.Wrap(b.bad, "barrier", "remove")
	}
	if err := b.client.Delete().Quietly().ForPath(ctx, b.path); err != nil {
		return errtext.Wrap(err, "barrier", "remove %s", b.path)
	}
	return nil
}

// WaitOnBarrier returns when the barrier is not set: at once, or as soon as it is removed; the error is that of ctx if
// that ends first. Who waits goes on waiting while the connection is lost, and when the session is. Other errors: those
// of the first look, when the retry policy of the client has given up. In Java: waitOnBarrier.
func (b *DistributedBarrier) WaitOnBarrier(ctx context.Context) error {
	if b.bad != nil {
		return errtext.Wrap(b.bad, "barrier", "wait")
	}
	ctx, asked := b.told.Wait(b.client.Telemetry().Handling(ctx), "wait", 0)
	err := b.wait(ctx)
	asked.End(telemetry.Outcome(err, telemetry.Passed), err)
	if err != nil {
		return errtext.Wrap(err, "barrier", "wait on %s", b.path)
	}
	return nil
}

func (b *DistributedBarrier) wait(ctx context.Context) error {
	a := newAlarm(b.client, 0)
	defer a.off(ctx, b.path)
	for waited := false; ; {
		// Not exists: that would leave a watch on a node that is gone.
		_, err := b.client.GetData().UsingWatcher(a.watcher).ForPath(ctx, b.path)
		switch {
		case err == nil:
			waited = true
			select {
			case <-a.heard: // whatever it was: look again
			case <-ctx.Done():
				return ctx.Err()
			}
		case errors.Is(err, zk.ErrNoNode):
			return nil
		case waited && lineup.IsOutage(err):
			if err := b.client.BlockUntilConnected(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
}
