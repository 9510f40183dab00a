package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/recipes/queue"
)

// benchQueue is the queue of one run. Its producer and its consumer have a client each. Each item holds the time of its
// put.
type benchQueue struct {
	target   *target
	load     load
	path     string
	producer *queue.DistributedQueue[[]byte]
	consumer *queue.DistributedQueue[[]byte]
}

// queue returns a new queue without a consumer.
func (t *target) queue(ctx context.Context, l load) (q *benchQueue, err error) {
	q = &benchQueue{target: t, load: l}
	if q.path, err = t.node(ctx, "queue", nil); err != nil {
		return nil, err
	}
	q.producer, err = q.start(ctx, 0, nil)
	return q, err
}

func (q *benchQueue) start(
	ctx context.Context, number int, consume queue.Consumer[[]byte],
) (*queue.DistributedQueue[[]byte], error) {
	c, err := q.target.client(ctx, number)
	if err != nil {
		return nil, err
	}
	own, ok := c.(curatorClient)
	if !ok {
		return nil, fmt.Errorf("%T has no queue", c)
	}
	b := queue.NewBuilder(own.Client, consume, codec.Raw{}, q.path)
	if q.load.Safe {
		b = b.LockPath(q.locks())
	}
	built, err := b.BuildQueue()
	if err != nil {
		return nil, err
	}
	return built, built.Start()
}

func (q *benchQueue) locks() string { return q.path + "-locks" }

// consume starts a consumer, which calls take with the time of the put of each item.
func (q *benchQueue) consume(ctx context.Context, take func(put time.Time)) (err error) {
	q.consumer, err = q.start(ctx, 1, func(_ context.Context, item []byte) error {
		take(putAt(item))
		return nil
	})
	return err
}

func (q *benchQueue) put(ctx context.Context, items int) error {
	if items == 1 {
		return q.producer.Put(ctx, q.item())
	}
	batch := make([][]byte, items)
	for i := range batch {
		batch[i] = q.item()
	}
	return q.producer.PutMulti(ctx, batch...)
}

func (q *benchQueue) item() []byte {
	item := make([]byte, max(q.load.Payload, 8))
	binary.BigEndian.PutUint64(item, uint64(time.Since(epoch)))
	return item
}

func putAt(item []byte) time.Time { return epoch.Add(time.Duration(binary.BigEndian.Uint64(item))) }

func (q *benchQueue) fill(ctx context.Context, items int) error {
	for i := 0; i < items; i += q.load.Batch {
		if err := q.put(ctx, q.load.Batch); err != nil {
			return err
		}
	}
	return q.producer.FlushPuts(ctx)
}

// close closes the queue and removes what is left of it.
func (q *benchQueue) close(ctx context.Context) error {
	var errs []error
	if q.consumer != nil {
		errs = append(errs, q.consumer.Close())
	}
	errs = append(errs, q.producer.Close())
	c, err := q.target.client(ctx, 0)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	if q.load.Safe {
		errs = append(errs, c.removeTree(ctx, q.locks()))
	}
	items, err := c.children(ctx, q.path)
	errs = append(errs, err)
	for i, item := range items {
		items[i] = q.path + "/" + item
	}
	for some := range slices.Chunk(append(items, q.path), deletesAtOnce) {
		errs = append(errs, c.deleteAll(ctx, some))
	}
	return errors.Join(errs...)
}
