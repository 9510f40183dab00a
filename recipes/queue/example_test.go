package queue_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/queue"
)

// connect returns a client of a server in memory, and what closes both.
func connect() (*framework.Client, func()) {
	server, err := curatortest.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	client, err := framework.New(server.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	return client, func() {
		_ = client.Close()
		_ = server.Close()
	}
}

type job struct {
	Order  int
	Urgent bool `json:",omitempty"`
}

// Jobs are consumed at least once: whoever dies at work leaves the job to another.
func ExampleNewBuilder() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	done := make(chan bool)
	consume := func(ctx context.Context, j job) error {
		fmt.Println("order", j.Order)
		done <- true
		return nil // an error puts the job back
	}
	q, err := queue.NewBuilder(client, consume, codec.JSON[job]{}, "/jobs").LockPath("/jobs-locks").BuildQueue()
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	for i := range 3 {
		if err := q.Put(ctx, job{Order: i}); err != nil {
			log.Fatal(err)
		}
	}
	for range 3 {
		<-done
	}
	// Output:
	// order 0
	// order 1
	// order 2
}

// Without a consumer items are pulled, here the most urgent first.
func ExampleDistributedPriorityQueue() {
	client, stop := connect()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	q, err := queue.NewBuilder[string](client, nil, codec.Text{}, "/calls").BuildPriorityQueue(0)
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	for name, priority := range map[string]int{"routine": 10, "emergency": -1, "urgent": 0} {
		if err := q.Put(ctx, name, priority); err != nil {
			log.Fatal(err)
		}
	}
	if err := q.FlushPuts(ctx); err != nil { // they are there
		log.Fatal(err)
	}
	n := 0
	for item, err := range q.Items(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(item.Value, item.Info.Priority)
		if err := item.Done(ctx); err != nil {
			log.Fatal(err)
		}
		if n++; n == 3 {
			break
		}
	}
	// Output:
	// emergency -1
	// urgent 0
	// routine 10
}

// An item with an id can be taken out of the queue while nobody works at it.
func ExampleDistributedIDQueue_Remove() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	q, err := queue.NewBuilder[string](client, nil, codec.Text{}, "/mails").BuildIDQueue()
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	if err := q.Put(ctx, "your order is on its way", "order/17"); err != nil {
		log.Fatal(err)
	}
	if err := q.FlushPuts(ctx); err != nil {
		log.Fatal(err)
	}
	n, err := q.Remove(ctx, "order/17")
	fmt.Println(n, err)
	// Output: 1 <nil>
}

// Each put has an outcome of its own, however many goroutines put.
func ExampleDistributedQueue_PutAsync() {
	client, stop := connect()
	defer stop()
	ctx := context.Background()
	q, err := queue.NewBuilder(client, nil, codec.JSON[job]{}, "/jobs").BuildQueue()
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	var puts []*queue.PendingPut
	for i := range 3 {
		put, err := q.PutAsync(ctx, job{Order: i})
		if err != nil {
			log.Fatal(err) // it is not put
		}
		puts = append(puts, put)
	}
	for _, put := range puts {
		path, err := put.Wait(ctx)
		fmt.Println(path, err)
	}
	// Output:
	// /jobs/queue-0000000000 <nil>
	// /jobs/queue-0000000001 <nil>
	// /jobs/queue-0000000002 <nil>
}

// A consumer that has lost its item to another writes no result.
func ExampleFenceOf() {
	client, stop := connect()
	defer stop()
	written := make(chan error, 1)
	consume := func(ctx context.Context, job string) error {
		fence := queue.FenceOf(ctx)
		_, err := fence.Transaction(ctx, client.TransactionOp().Create().ForPath("/result", []byte(job)))
		written <- err
		return err
	}
	q, err := queue.NewBuilder(client, consume, codec.Text{}, "/jobs").LockPath("/jobs-locks").BuildQueue()
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	if err := q.Put(context.Background(), "job 1"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-written)
	// Output: <nil>
}
