package barrier

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// DistributedBarrier is a gate: while it is set, all waiters wait until it is removed. It is a persistent node, so it
// outlives the session of the client that set it. All methods are safe for concurrent use. In Java: DistributedBarrier.
type DistributedBarrier struct {
	client *framework.Client
	path   string
	err    error // set if the path is invalid
	obs    report.Barrier
}

// NewDistributedBarrier returns the barrier of a path. It does no I/O. Every method returns an error if the path is
// invalid.
func NewDistributedBarrier(client *framework.Client, path string, opts ...Option) *DistributedBarrier {
	return &DistributedBarrier{
		client: client,
		path:   path,
		err:    zkpath.Validate(path, false),
		obs:    report.NewBarrier(hook.Telemetry(client), "barrier", settingsOf(opts).name, path),
	}
}

// SetBarrier sets the barrier. It returns nil if the barrier is already set. In Java: setBarrier.
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

// RemoveBarrier removes the barrier and wakes all waiters. It returns nil if the barrier is not set. In Java:
// removeBarrier.
func (b *DistributedBarrier) RemoveBarrier(ctx context.Context) error {
	if b.err != nil {
		return errtext.Wrap(b.err, "barrier", "remove")
	}
	if err := b.client.Delete().Quietly().ForPath(ctx, b.path); err != nil {
		return errtext.Wrap(err, "barrier", "remove %s", b.path)
	}
	return nil
}

// WaitOnBarrier returns when the barrier is not set: at once, or as soon as it is removed. ctx bounds the wait. The
// wait survives a lost connection and the end of the session. WaitOnBarrier also fails when its first read fails after
// all retries of the client, and with framework.ErrNoChroot when the chroot does not exist then. In Java:
// waitOnBarrier.
func (b *DistributedBarrier) WaitOnBarrier(ctx context.Context) error {
	if b.err != nil {
		return errtext.Wrap(b.err, "barrier", "wait")
	}
	ctx, span := b.obs.Wait(hook.Telemetry(b.client).ExpectingErrors(ctx), "wait", 0)
	err := b.wait(ctx)
	span.End(report.Outcome(err, report.Passed), err)
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
			_, err = w.await(ctx) // read again after any event
		} else if err == nil {
			if waited {
				return nil
			}
			return waitqueue.CheckChroot(ctx, b.client)
		}
		w.remove(ctx) // otherwise each read would add a watch, and each watch would wake us at an outage
		if waited && waitqueue.IsPassing(err) {
			err = waitqueue.AwaitConnection(ctx, b.client)
		}
		if err != nil {
			return err
		}
	}
}
