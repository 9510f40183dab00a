package queue

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// awaitRoom waits until there are fewer nodes than there may be. What we have put before is waited for: it counts.
func (q *queue[T]) awaitRoom(ctx context.Context) error {
	for {
		if err := q.producer.await(ctx); err != nil {
			return err
		}
		stat, err := q.client.CheckExists().ForPath(ctx, q.path) // which does not list them
		if err == nil && (stat == nil || int(stat.NumChildren) < q.maxItems) {
			return nil
		}
		if err == nil {
			err = q.awaitChange(ctx)
		}
		switch {
		case q.State() == Closed:
			return ErrClosed
		case lineup.IsOutage(err):
			err = q.client.BlockUntilConnected(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// awaitChange waits for a change of the queue, if it is still full.
func (q *queue[T]) awaitChange(ctx context.Context) error {
	changed := make(chan zk.Event, 1)
	watcher := callbacks.NewChanWatcher(changed)
	defer unwatch(ctx, q.client, watcher, q.path)
	names, err := q.client.GetChildren().UsingWatcher(watcher).ForPath(ctx, q.path)
	if err != nil || len(names) < q.maxItems {
		return err
	}
	select {
	case <-changed: // whatever it was: look again
		return nil
	case <-q.taking.Done():
		return context.Cause(q.taking)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unwatch takes a watch back that may not have fired.
func unwatch(ctx context.Context, client Client, w *callbacks.Watcher, path string) {
	ctx = client.Telemetry().Aside(ctx)
	_ = client.Watches().Remove(w).Guaranteed().Quietly().InBackground(lineup.Ignore).ForPath(ctx, path)
}
