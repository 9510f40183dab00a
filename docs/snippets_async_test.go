package docs_test

import (
	"context"
	"fmt"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/zkpath"
)

func readBoth(ctx context.Context, client *framework.Client) (string, error) {
	first := client.GetData().Submit(ctx, "/a")
	second := client.GetData().Submit(ctx, "/b") // both are sent
	a, err := first.Wait(ctx)
	if err != nil {
		return "", err
	}
	b, err := second.Wait(ctx)
	return string(a) + string(b), err
}

func workersWithData(ctx context.Context, client *framework.Client, use func(path string, data []byte)) error {
	names, err := client.GetChildren().ForPath(ctx, "/workers")
	if err != nil || len(names) == 0 {
		return err
	}
	reads := make([]builders.Read, len(names))
	for i, name := range names {
		reads[i].Path = zkpath.Join("/workers", name)
	}
	results, err := client.MultiRead().ForReads(ctx, reads...)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err == nil { // else it has gone meanwhile
			use(r.Path, r.Data)
		}
	}
	return nil
}

func cachedLimits(ctx context.Context, client *framework.Client, use func(path string, l Limits)) error {
	c := cache.NewCuratorCache(client, "/limits")
	limits := cache.NewTyped(c, codec.JSON[Limits]{})
	if err := c.Start(); err != nil {
		return err
	}
	defer c.Close()
	for change := range limits.Changes(ctx) {
		if change.New != nil && change.Err == nil {
			use(change.New.Path, change.Value)
		}
	}
	return nil
}

// aMigration is what one migration does.
type aMigration func(op builders.TransactionOp) []builders.TransactionOperation

func migrate(ctx context.Context, client *framework.Client, migrations ...aMigration) error {
	mu := locks.NewInterProcessMutex(client, "/migrations/lock")
	return locks.Do(ctx, mu, func(ctx context.Context) error {
		client := locks.HoldOf(ctx).Client() // nothing is written when the lock is lost
		for i, migration := range migrations {
			done := fmt.Sprintf("/migrations/app/%04d", i)
			stat, err := client.CheckExists().CreatingParentsIfNeeded().ForPath(ctx, done)
			if err != nil {
				return err
			}
			if stat != nil {
				continue
			}
			op := client.TransactionOp()
			_, err = client.Transaction().ForOperations(ctx,
				append(migration(op), op.Create().ForPath(done, []byte{}))...)
			if err != nil {
				return err // if it is uncertain, the next call looks
			}
		}
		return nil
	})
}
