package queue_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/queue"
)

func ExampleQueueSharder() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	consumed := make(chan string)
	consume := func(ctx context.Context, job string) error {
		select {
		case consumed <- job:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	allocate := func(path string) (*queue.DistributedQueue[string], error) {
		return queue.NewBuilder(client, consume, codec.Text{}, path).BuildQueue()
	}
	latch := leader.NewLeaderLatch(client, "/jobs-leader")
	if err := latch.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = latch.Close() }()
	jobs := queue.NewQueueSharder(client, allocate, "/jobs", latch, queue.WithNewQueueThreshold(1000))
	if err := jobs.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = jobs.Close() }()

	q, err := jobs.Queue(ctx) // for one job, or a few
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Put(ctx, "fold"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-consumed, "from one of", jobs.ShardQty())
	// Output: fold from one of 1
}
