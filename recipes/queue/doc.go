// Package queue provides queues between processes, compatible with Java Curator's: the nodes have the same names and
// bytes, so that Go and Java put into one queue and consume from it.
//
//	q, err := queue.NewBuilder(client, consume, codec.JSON[Job]{}, "/jobs").LockPath("/jobs-locks").BuildQueue()
//	if err != nil {
//		return err
//	}
//	if err := q.Start(); err != nil {
//		return err
//	}
//	defer q.Close()
//	err = q.Put(ctx, Job{ID: 7})
//
// The kinds of queues are: in the order of putting, by priority, with delays and with ids. A [Builder] builds them all.
// Without a consumer the items can be pulled with Items.
//
// # What a queue promises
//
// With [Builder.LockPath] an item is delivered at least once: it is locked while it is consumed, and deleted
// afterwards. Without a lock path it is delivered at most once: it is deleted, then consumed. docs/queues.md describes
// what that means under each fault.
//
// The names in Java:
//
//	QueueBuilder.builder(…).buildQueue()   NewBuilder(…).BuildQueue()
//	queue.put(item)                        q.Put(ctx, item)
//	queue.putMulti(items)                  q.PutMulti(ctx, items...)
//	queue.flushPuts(n, unit)               q.FlushPuts(ctx), which returns failures too; q.PutAsync for each by itself
//	QueueConsumer.consumeMessage           a func(ctx, item) error
//	BlockingQueueConsumer.take             q.Items(ctx)
//	QueueSerializer                        a codec.Codec
package queue
