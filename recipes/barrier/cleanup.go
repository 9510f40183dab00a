package barrier

import (
	"context"
	"fmt"

	"github.com/gocurator/curator/internal/waitqueue"
)

// remove deletes our node if it exists.
func (d *DistributedDoubleBarrier) remove(ctx context.Context) error {
	return waitqueue.RetryPassing(ctx, d.client, func() error { return d.client.Delete().Quietly().ForPath(ctx, d.own()) })
}

// cleanUp calls fn, which deletes our node, in the background, until it succeeds or the node has gone with its session.
// The next Enter waits for it, so that the others do not count us twice.
func (d *DistributedDoubleBarrier) cleanUp(ctx context.Context, fn func(context.Context) error) {
	done := make(chan struct{})
	d.cleanup = done
	d.cleanupErr.Store(nil)
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer close(done)
		for {
			err := fn(ctx)
			if err == nil {
				return
			}
			d.cleanupErr.Store(&err) // the client is closed, or the server refuses it
			s := d.client.Session()
			if s == nil || waitqueue.Pause(s.Context(), waitqueue.FailurePause) != nil {
				return
			}
		}
	}()
}

// awaitCleanup waits for the last cleanUp.
func (d *DistributedDoubleBarrier) awaitCleanup(ctx context.Context) error {
	if d.cleanup == nil {
		return nil
	}
	select {
	case <-d.cleanup:
		d.cleanup = nil
		return nil
	case <-ctx.Done():
		if err := d.cleanupErr.Load(); err != nil {
			return fmt.Errorf("%w: the node of the last round is not deleted: %w", ctx.Err(), *err)
		}
		return ctx.Err()
	}
}
