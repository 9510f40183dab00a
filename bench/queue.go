package main

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/recipes/queue"
)

// queueWork measures the plain queue. An operation is an item.
var queueWork = section{
	workloads: map[string]workload{
		queueing:     runQueue,
		queuePut:     runQueuePut,
		queueConsume: runQueueConsume,
		queueBacklog: runQueueBacklog,
	},
	rows: []row{
		{
			name: "queue, 100 items on their way", server: realServer, show: latency,
			entries: against(work(queueing).window(100), curator, javas),
			budget:  []bound{atLeast(5, rate).of(javas)},
		},
		{
			name: "queue, 1000 items on their way", server: realServer, show: latency,
			entries: against(work(queueing).window(1000), curator, javas),
		},
		{
			name: "queue, batches of 10", server: realServer, show: latency,
			entries: against(work(queueing).window(100).batch(10), curator, javas),
			budget:  []bound{atLeast(2, rate).of(javas)},
		},
		{
			name: "queue with a lock path", server: realServer, show: latency,
			entries: against(work(queueing).window(100).safe(), curator, javas),
			budget:  []bound{atLeast(2, rate).of(javas)},
		},
		{
			name: "queue, put", server: realServer, show: latency,
			entries: against(work(queuePut).window(100), curator, javas),
		},
		{
			name: "queue, consume 1000 items", server: realServer, show: throughput,
			entries: against(work(queueConsume).window(1000), curator, javas),
		},
		{
			// Each consumed item is replaced, so the number of items is constant.
			name: "queue, consume out of many", server: realServer, show: throughput, stretch: 2,
			entries: []entry{
				{name: "50,000 queued", library: curator, load: work(queueBacklog).window(50_000)},
				{name: "10,000 queued", library: curator, load: work(queueBacklog).window(10_000)},
				{name: "1000 queued", library: curator, load: work(queueBacklog).window(1000)},
				{name: "100 queued", library: curator, load: work(queueBacklog).window(100)},
				{name: "Java, 10,000 queued", library: javas, load: work(queueBacklog).window(10_000)},
				{name: "Java, 1000 queued", library: javas, load: work(queueBacklog).window(1000)},
				{name: "Java, 100 queued", library: javas, load: work(queueBacklog).window(100)},
			},
			budget: []bound{atMost(2, cpu).of("100 queued")},
		},
	},
}

// runQueue puts while fewer items than the window are on their way. The latency is from put to the consumer.
func runQueue(ctx context.Context, t *target, l load) (r result, err error) {
	q, err := t.queue(ctx, l)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, q.close(ctx)) }()
	window := newWindow(l)
	var passed tracker
	if err := q.consume(ctx, func(put time.Time) {
		passed.add(time.Since(put))
		window.leave(1)
	}); err != nil {
		return r, err
	}
	watch := startWatch()
	err = window.keep(ctx, func() error { return q.put(ctx, l.Batch) })
	watch.stop(&r)
	passed.report(&r)
	return r, err
}

// runQueuePut puts while fewer items than the window are on their way. Nobody consumes. The latency is that of the put.
func runQueuePut(ctx context.Context, t *target, l load) (r result, err error) {
	q, err := t.queue(ctx, l)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, q.close(ctx)) }()
	window := newWindow(l)
	var passed tracker
	q.producer.AddPutListener(func(_ context.Context, ev queue.PutEvent[[]byte]) {
		for _, item := range ev.Items {
			passed.add(time.Since(putAt(item)))
		}
		window.leave(len(ev.Items))
	})
	watch := startWatch()
	err = window.keep(ctx, func() error { return q.put(ctx, l.Batch) })
	watch.stop(&r)
	passed.report(&r)
	return r, errors.Join(err, q.producer.FlushPuts(ctx))
}

// runQueueConsume consumes items that were put before: as many as the window is wide, or fewer if the time is up.
func runQueueConsume(ctx context.Context, t *target, l load) (r result, err error) {
	q, err := t.queue(ctx, l)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, q.close(ctx)) }()
	if err := q.fill(ctx, l.Window); err != nil {
		return r, err
	}
	c := newConsumption(l.Window)
	watch := startWatch()
	if err := q.consume(ctx, func(time.Time) { c.count() }); err != nil {
		return r, err
	}
	err = c.wait(ctx, l)
	watch.stop(&r)
	r.Ops = c.items.Load()
	return r, err
}

// runQueueBacklog consumes from a queue with as many items as the window is wide, and replaces each consumed item.
func runQueueBacklog(ctx context.Context, t *target, l load) (r result, err error) {
	q, err := t.queue(ctx, l)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, q.close(ctx)) }()
	if err := q.fill(ctx, l.Window); err != nil {
		return r, err
	}
	c := newConsumption(0)
	watch := startWatch()
	if err := q.consume(ctx, func(time.Time) {
		c.count()
		_ = q.put(ctx, 1) // Close reports it
	}); err != nil {
		return r, err
	}
	err = c.wait(ctx, l)
	watch.stop(&r)
	r.Ops = c.items.Load()
	return r, err
}
