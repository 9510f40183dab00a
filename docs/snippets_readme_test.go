package docs_test

import (
	"context"
	"fmt"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
)

func firstLock(ctx context.Context) error {
	client, err := framework.New("localhost:2181")
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	defer client.Close()

	mu := locks.NewInterProcessMutex(client, "/app/lock")
	return locks.Do(ctx, mu, func(ctx context.Context) error { // ctx ends when the lock is lost
		fmt.Println("no other process is here now")
		return nil
	})
}

func aTaste(ctx context.Context, client *framework.Client) error {
	// A node that lives as long as the session, with a number; it is found again when the reply to the create is lost.
	path, err := client.Create().CreatingParentsIfNeeded().WithProtection().
		WithMode(builders.EphemeralSequential).ForPath(ctx, "/app/workers/w-", []byte("idle"))
	if err != nil {
		return err
	}
	// In the background: the call returns at once, and the callbacks come in the order of the calls.
	return client.SetData().InBackground(func(ctx context.Context, ev callbacks.Event) {
		fmt.Println(ev.Path, ev.Err)
	}).ForPath(ctx, path, []byte("waiting"))
}

var _, _ = firstLock, aTaste
