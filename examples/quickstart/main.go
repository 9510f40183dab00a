// Command quickstart takes a lock and writes below it. It needs a ZooKeeper.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
)

func main() {
	if err := run(context.Background(), "localhost:2181"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, servers string) error {
	client, err := framework.New(servers)
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	defer client.Close()
	soon, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := client.BlockUntilConnected(soon); err != nil {
		return fmt.Errorf("no ZooKeeper at %s: %w", servers, err) // with the reason: connection refused
	}

	mu := locks.NewInterProcessMutex(client, "/app/lock")      // creates the node
	return locks.Do(ctx, mu, func(ctx context.Context) error { // ctx ends when the lock is lost
		hold := locks.HoldOf(ctx)
		fmt.Println("I have the lock, with token", hold.Token())
		_, err := hold.Client().Create().OrSetData().ForPath(ctx, "/app/last", []byte("me"))
		return err // the server refuses the write if the lock is lost
	})
}
