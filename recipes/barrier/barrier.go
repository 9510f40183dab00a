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
	err    error // the path is invalid
	obs    telemetry.Barrier
}

// NewDistributedBarrier returns the barrier of a path. It does no I/O; a path that cannot be is the error of every
// method.
func NewDistributedBarrier(client Client, path string, opts ...Option) *DistributedBarrier {
	return &DistributedBarrier{
		client: client,
		path:   path,
		err:    zkpath.Validate(path, false),
		obs:    telemetry.Of(client).NewBarrier("barrier", settingsOf(opts).name, path),
	}
}

// SetBarrier sets the barrier, if it is not set already. In Java: setBarrier.
func (b *DistributedBarrier) SetBarrier(ctx context.Context) error {
	if b.err != nil {
		return errtext.Wrap(b.err, "barrier", "set")
	}
	_, err := b.client.Create().CreatingParentContainersIfNeeded().ForPath(ctx, b.path, nil)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return errtext.Wrap(err, "barrier", "set %s", b.path)
	}
	return nil
}

// RemoveBarrier removes the barrier, if it is set, and lets all through who wait. In Java: removeBarrier.
func (b *DistributedBarrier) RemoveBarrier(ctx context.Context) error {
	if b.err != nil {
		return errtext.Wrap(b.err, "barrier", "remove")
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
	if b.err != nil {
		return errtext.Wrap(b.err, "barrier", "wait")
	}
	ctx, span := b.obs.Wait(telemetry.Of(b.client).Handling(ctx), "wait", 0)
	err := b.wait(ctx)
	span.End(telemetry.Outcome(err, telemetry.Passed), err)
	if err != nil {
		return errtext.Wrap(err, "barrier", "wait on %s", b.path)
	}
	return nil
}

func (b *DistributedBarrier) wait(ctx context.Context) error {
	signal := newSignal(b.client)
	for waited := false; ; {
		w := signal.watch(ctx, b.path)
		set, err := w.exists(ctx)
		if set {
			waited = true
			_, err = w.await(ctx) // whatever it is: look again
		} else if err == nil {
			return nil
		}
		if waited && lineup.IsOutage(err) {
			err = b.client.BlockUntilConnected(ctx)
		}
		if err != nil {
			w.remove(ctx)
			return err
		}
	}
}
