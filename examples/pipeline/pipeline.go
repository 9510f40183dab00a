package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/examples/waiting"
	"github.com/gocurator/curator/zkpath"
)

// Job is the work of one item.
type Job struct {
	Number   int
	Customer string
	Results  string // the node below which the result goes
}

// pipeline is all of the producers and workers of this process.
type pipeline struct {
	options
	seen    *observation
	tracer  trace.Tracer
	out     *lines
	results string // where those of this run are

	once sync.Once
	all  chan struct{} // closed when all jobs are done
}

func newPipeline(o options, seen *observation, out io.Writer) *pipeline {
	return &pipeline{
		options: o, seen: seen, tracer: seen.tracers.Tracer("examples/pipeline"), out: &lines{w: out},
		results: zkpath.Join(resultsPath, zkpath.NewProtectionID()), all: make(chan struct{}),
	}
}

// run returns when all jobs are done.
func (p *pipeline) run(ctx context.Context) (err error) {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	for range p.workers {
		w, err := startWorker(p)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.close()) }()
	}
	var producers sync.WaitGroup
	errs := make([]error, p.producers)
	for i := range p.producers {
		producers.Go(func() { errs[i] = p.produce(ctx, i) })
	}
	producers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	select {
	case <-p.all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// prepare creates the node of the results.
func (p *pipeline) prepare(ctx context.Context) (err error) {
	client, err := newClient(p.options, p.seen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := waiting.ForServer(ctx, client, p.connect, p.out.say); err != nil {
		return err
	}
	_, err = client.Create().CreatingParentsIfNeeded().ForPath(ctx, p.results, nil)
	return err
}

// reported shows how many of the jobs are done. It is the leader who counts.
func (p *pipeline) reported(done int) {
	p.out.say("leader: %d of %d jobs are done", done, p.jobs)
	if done == p.jobs {
		p.once.Do(func() { close(p.all) })
	}
}

// lines writes line by line, whoever writes.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format+"\n", args...)
}
