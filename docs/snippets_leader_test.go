package docs_test

import (
	"context"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
)

var _ = []any{awaitLatch, latchListener, aSelector, anObserver, observeLatch, doWhileLeading}

func awaitLatch(ctx context.Context, client *framework.Client) error {
	latch := leader.NewLeaderLatch(client, "/leader",
		leader.WithID("host-7"))
	if err := latch.Start(); err != nil {
		return err
	}
	defer latch.Close()
	leadership, err := latch.Await(ctx)
	if err != nil {
		return err
	}
	// until the context ends
	return lead(leadership.Context(), leadership.Token())
}

func latchListener(client *framework.Client) error {
	latch := leader.NewLeaderLatch(client, "/leader",
		leader.WithID("host-7"),
		leader.WithCloseMode(leader.NotifyLeader))
	remove := latch.AddListener(
		func(ctx context.Context, ev leader.LatchEvent) {
			if ev.IsLeader { // ev.Leadership has context and token
				resume()
			} else {
				pause()
			}
		})
	defer remove()
	if err := latch.Start(); err != nil {
		return err
	}
	defer latch.Close()
	return nil
}

func aSelector(client *framework.Client) error {
	selector := leader.NewLeaderSelector(client, "/leader",
		func(ctx context.Context) error {
			defer pause()
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				if err := write(ctx); err != nil {
					return err
				}
				select {
				case <-tick.C:
				case <-ctx.Done(): // interrupted
					return ctx.Err()
				}
			}
		}, leader.WithID("host-7"), leader.WithAutoRequeue())
	if err := selector.Start(); err != nil {
		return err
	}
	defer selector.Close()
	return nil
}

func anObserver(ctx context.Context, client *framework.Client) error {
	observer := leader.NewLeaderLatch(client, "/leader")
	who, err := observer.Leader(ctx)
	if err != nil {
		return err
	}
	all, err := observer.Participants(ctx)
	if err != nil {
		return err
	}
	if !who.IsLeader {
		return nil // there is no leader
	}
	use(all)
	return nil
}

func observeLatch(ctx context.Context, client *framework.Client) error {
	for who, err := range leader.ObserveLatch(ctx, client, "/leader") {
		if err != nil {
			return err
		}
		changed(who.ID) // "" while there is no leader
	}
	return nil
}

func doWhileLeading(ctx context.Context, client *framework.Client, plan []byte) error {
	err := leader.Do(ctx, client, "/leader", func(ctx context.Context) error {
		_, err := leader.LeadershipOf(ctx).Client().SetData().ForPath(ctx, "/plan", plan)
		return err
	})
	return err
}
