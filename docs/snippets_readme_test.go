package docs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

func run(ctx context.Context) error {
	client, err := framework.New("localhost:2181",
		framework.WithRetryPolicy(retry.ExponentialBackoff(time.Second, 3)))
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	defer client.Close()

	path, err := client.Create().CreatingParentsIfNeeded().WithProtection().
		WithMode(builders.EphemeralSequential).ForPath(ctx, "/app/workers/w-", []byte("idle"))
	if err != nil {
		return err
	}
	err = client.SetData().InBackground(func(ctx context.Context, ev callbacks.Event) {
		fmt.Println(ev.Path, ev.Err) // in the order of the calls
	}).ForPath(ctx, path, []byte("waiting"))
	if err != nil {
		return err
	}

	mu := locks.NewInterProcessMutex(client, "/app/lock")
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Release(hold.Context())
	return work(hold.Context(), hold.Token()) // the context ends when the lock is lost; the token fences
}

func refusedLate(ctx context.Context, client *framework.Client, data []byte) error {
	mu := locks.NewInterProcessMutex(client, "/orders/lock")
	err := locks.Do(ctx, mu, func(ctx context.Context) error { // ctx ends when the lock is lost
		_, err := locks.HoldOf(ctx).Client().SetData().ForPath(ctx, "/orders/next", data)
		return err // the server refuses it if the lock is lost
	})
	return err
}

var _ = []any{run, refusedLate}
