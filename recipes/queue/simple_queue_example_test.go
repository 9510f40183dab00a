package queue_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gocurator/curator/recipes/queue"
)

func ExampleSimpleDistributedQueue() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	q := queue.NewSimpleDistributedQueue(client, "/jobs")
	for _, job := range []string{"wash", "dry", "fold"} {
		if err := q.Offer(ctx, []byte(job)); err != nil {
			log.Fatal(err)
		}
	}
	for {
		job, err := q.PollFor(ctx, 10*time.Millisecond)
		if err != nil {
			log.Fatal(err)
		}
		if job == nil {
			fmt.Println("nothing left")
			return
		}
		fmt.Println(string(job))
	}
	// Output:
	// wash
	// dry
	// fold
	// nothing left
}
