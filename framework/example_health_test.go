package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
)

// A health check of a process: it is ill without a connection, and when a callback has been blocking the others.
func ExampleClient_Health() {
	client, end := exampleClient()
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := client.BlockUntilConnected(ctx); err != nil {
		log.Fatal(err)
	}

	healthy := func() bool {
		h := client.Health()
		return h.State.IsConnected() && h.CallbackAge < 10*time.Second
	}
	fmt.Println(healthy())
	// Output: true
}

// A producer that is faster than its servers: WithMaxPending refuses what would fill the memory, and Drain waits for
// what was accepted.
func ExampleClient_Drain() {
	client, end := exampleClient(framework.WithMaxPending(100))
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	var written atomic.Int64
	create := client.Create().CreatingParentsIfNeeded().InBackground(func(_ context.Context, ev callbacks.Event) {
		if ev.Err == nil {
			written.Add(1)
		}
	})
	for i := range 1000 {
		err := create.ForPath(ctx, fmt.Sprintf("/jobs/%04d", i), []byte("job"))
		for errors.Is(err, framework.ErrTooManyPending) { // let the servers catch up
			if err = client.Drain(ctx); err == nil {
				err = create.ForPath(ctx, fmt.Sprintf("/jobs/%04d", i), []byte("job"))
			}
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := client.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(written.Load())
	// Output: 1000
}
