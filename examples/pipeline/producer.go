package main

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/recipes/queue"
)

// produce puts the jobs of one producer, each in a span of its own: the root of its trace.
func (p *pipeline) produce(ctx context.Context, number int) (err error) {
	client, err := newClient(p.options, p.seen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	q, err := queue.NewBuilder[Job](client, nil, codec.JSON[Job]{}, jobsPath).
		Name("jobs").LockPath(jobLocksPath).BuildQueue()
	if err != nil {
		return err
	}
	if err := q.Start(); err != nil {
		return err
	}
	for i := number; i < p.jobs; i += p.producers {
		job := Job{Number: i, Customer: fmt.Sprintf("customer-%d", i%3), Results: p.results}
		if err := p.submit(ctx, q, job); err != nil {
			return errors.Join(err, q.Close())
		}
	}
	return errors.Join(q.FlushPuts(ctx), q.Close())
}

// submit stands for a request handler. Put returns when the job is accepted: the span of the put outlives it.
func (p *pipeline) submit(ctx context.Context, q *queue.DistributedQueue[Job], job Job) error {
	ctx, span := p.tracer.Start(ctx, "submit job", trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	return q.Put(ctx, job)
}
