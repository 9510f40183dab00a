package docs_test

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/retry"
)

// Gathering waits until size processes have arrived. It is safe for concurrent use.
type Gathering struct {
	client *framework.Client
	path   string
	size   int
}

// Arrive adds a process by its name. It may be called again.
func (g Gathering) Arrive(ctx context.Context, name string) error {
	_, err := g.client.Create().CreatingParentsIfNeeded().ForPath(ctx, g.path+"/"+name, []byte{})
	if errors.Is(err, zk.ErrNodeExists) {
		return nil // by an earlier call, or by a try of this one whose answer was lost
	}
	return err
}

// Await returns when all have arrived. ctx bounds the wait, which goes on through outages and new sessions.
func (g Gathering) Await(ctx context.Context) error {
	view := g.client.WatcherRemoving()
	defer view.RemoveWatchers(ctx) // no wait leaves a watch behind
	events := make(chan zk.Event, 1)
	watcher := callbacks.NewChanWatcher(events)
	for {
		names, err := view.GetChildren().UsingWatcher(watcher).ForPath(ctx, g.path)
		if errors.Is(err, zk.ErrNoNode) { // only a node that exists has a watch of its children
			if err = g.client.EnsurePath(ctx, g.path); err == nil {
				continue
			}
		}
		switch {
		case err == nil && len(names) >= g.size:
			return nil
		case err == nil:
			select {
			case <-events: // read again, whatever it was
			case <-ctx.Done():
				return ctx.Err()
			}
		case !retry.IsRetryable(err):
			return err // such as zk.ErrNoAuth, framework.ErrClosed, or the end of ctx
		default:
			if err := g.client.BlockUntilConnected(ctx); err != nil {
				return err
			}
		}
	}
}
