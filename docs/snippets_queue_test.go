package docs_test

import (
	"context"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/queue"
)

var _ = []any{
	aQueue, pendingPut, pulled, consume, javaQueue, putMulti, javaPulled, priorities, delays, ids, simpleQueue, sharder,
}

// Job is the item of the queues of the pages.
type Job struct {
	ID   int
	Path string
}

// What the snippets call.
func process(ctx context.Context, _ Job) error              { return ctx.Err() }
func resultOf(ctx context.Context, job Job) ([]byte, error) { return []byte(job.Path), ctx.Err() }

func aQueue(ctx context.Context, client *framework.Client) error {
	q, err := queue.NewBuilder(client, consume, codec.JSON[Job]{}, "/jobs").LockPath("/jobs-locks").BuildQueue()
	if err != nil {
		return err
	}
	if err := q.Start(); err != nil {
		return err
	}
	defer q.Close()
	err = q.Put(ctx, Job{ID: 7}) // and FlushPuts(ctx) for "it is there"
	return err
}

func pendingPut(ctx context.Context, q *queue.DistributedQueue[Job]) error {
	put, err := q.PutAsync(ctx, Job{ID: 7})
	if err != nil {
		return err // it is not put
	}
	path, err := put.Wait(ctx)
	use(path)
	return err
}

func pulled(ctx context.Context, q *queue.DistributedQueue[Job]) error {
	for item, err := range q.Items(ctx) {
		if err != nil {
			return err
		}
		if err := process(item.Context(), item.Value); err != nil {
			_ = item.Requeue(ctx)
			continue
		}
		if err := item.Done(ctx); err != nil {
			return err
		}
	}
	return nil
}

func consume(ctx context.Context, job Job) error {
	result, err := resultOf(ctx, job)
	if err != nil {
		return err
	}
	client, err := queue.FenceOf(ctx).Client(ctx) // or Transaction(ctx, ops…), or Operation(ctx)
	if err != nil {
		return err
	}
	_, err = client.SetData().ForPath(ctx, job.Path, result)
	return err // queue.ErrLockLost: nothing was written, and another consumer has the item
}

func javaQueue(ctx context.Context, client *framework.Client, job Job) error {
	consumer := func(ctx context.Context, job Job) error {
		return process(ctx, job)
	}
	q, err := queue.NewBuilder(
		client, consumer, codec.JSON[Job]{}, "/jobs").
		LockPath("/jobs-locks").
		BuildQueue()
	if err != nil {
		return err
	}
	if err := q.Start(); err != nil {
		return err
	}
	defer q.Close()
	if err := q.Put(ctx, job); err != nil {
		return err
	}
	return q.FlushPuts(ctx) // the outcome of the puts
}

func putMulti(ctx context.Context, q *queue.DistributedQueue[Job], jobs []Job) error {
	err := q.PutMulti(ctx, jobs...)
	return err
}

func javaPulled(ctx context.Context, client *framework.Client) error {
	q, err := queue.NewBuilder(
		client, nil, codec.JSON[Job]{}, "/jobs").BuildQueue()
	if err != nil {
		return err
	}
	if err := q.Start(); err != nil {
		return err
	}
	defer q.Close()
	for item, err := range q.Items(ctx) {
		if err != nil {
			return err
		}
		if err := process(item.Context(), item.Value); err != nil {
			return err
		}
		if err := item.Done(ctx); err != nil {
			return err
		}
	}
	return nil
}

func priorities(ctx context.Context, builder queue.Builder[Job], job Job) error {
	urgent, err := builder.BuildPriorityQueue(10)
	if err != nil {
		return err
	}
	if err := urgent.Start(); err != nil {
		return err
	}
	defer urgent.Close()
	return urgent.Put(ctx, job, 1) // the lowest comes first
}

func delays(ctx context.Context, builder queue.Builder[Job], job Job) error {
	later, err := builder.BuildDelayQueue()
	if err != nil {
		return err
	}
	if err := later.Start(); err != nil {
		return err
	}
	defer later.Close()
	return later.Put(ctx, job, time.Now().Add(time.Minute))
}

func ids(ctx context.Context, builder queue.Builder[Job], job Job) error {
	byID, err := builder.BuildIDQueue()
	if err != nil {
		return err
	}
	if err := byID.Start(); err != nil {
		return err
	}
	defer byID.Close()
	if err := byID.Put(ctx, job, "order-17"); err != nil {
		return err
	}
	if err := byID.FlushPuts(ctx); err != nil {
		return err
	}
	removed, err := byID.Remove(ctx, "order-17")
	use(removed)
	return err
}

func simpleQueue(ctx context.Context, client *framework.Client, data []byte) error {
	q := queue.NewSimpleDistributedQueue(client, "/simple")
	if err := q.Offer(ctx, data); err != nil {
		return err
	}
	first, err := q.Take(ctx)
	if err != nil {
		return err
	}
	next, err := q.PollFor(ctx, 10*time.Second)
	if err != nil {
		return err
	}
	if next == nil {
		return nil // nothing came
	}
	use(first)
	return nil
}

func sharder(ctx context.Context, client *framework.Client, consumer queue.Consumer[Job], job Job) error {
	allocate := func(path string) (*queue.DistributedQueue[Job], error) {
		return queue.NewBuilder(
			client, consumer, codec.JSON[Job]{}, path).BuildQueue()
	}
	latch := leader.NewLeaderLatch(client, "/shards-leader")
	if err := latch.Start(); err != nil {
		return err
	}
	defer latch.Close()
	sharder := queue.NewQueueSharder(client, allocate, "/shards", latch,
		queue.WithNewQueueThreshold(1000),
		queue.WithMaxQueues(10))
	if err := sharder.Start(); err != nil {
		return err
	}
	defer sharder.Close()
	q, err := sharder.Queue(ctx)
	if err != nil {
		return err
	}
	return q.Put(ctx, job)
}
