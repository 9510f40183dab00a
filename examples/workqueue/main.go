// Command workqueue has several workers, each with a client of its own as if it were a process on another machine, do
// the jobs of one queue, and shows how far they are. One of the workers dies on the way: its job is done by another.
//
//	go run ./examples/workqueue
//	go run ./examples/workqueue -connect host:2181 -jobs 1000 -workers 8
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/examples/waiting"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/queue"
)

// Where the queue is.
const (
	jobsPath  = "/examples/workqueue/jobs"
	locksPath = "/examples/workqueue/locks"
)

// Job is the work of one item.
type Job struct {
	Number int
	Takes  time.Duration
}

type options struct {
	connect       string
	jobs, workers int
	takes         time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.connect, "connect", "", "connect string; without one a server in memory")
	flag.IntVar(&o.jobs, "jobs", 200, "how many jobs")
	flag.IntVar(&o.workers, "workers", 4, "how many workers")
	flag.DurationVar(&o.takes, "takes", 20*time.Millisecond, "how long a job takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "workqueue:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.jobs < 1 || o.workers < 2 {
		return errors.New("there have to be a job and two workers")
	}
	if o.connect == "" {
		server, err := curatortest.NewServer()
		if err != nil {
			return err
		}
		defer server.Close() //nolint:errcheck // it was in memory
		o.connect = server.ConnectString()
	}
	shown := newProgress(out, o.jobs, o.workers)
	client, err := newClient(o.connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := waiting.ForServer(ctx, client, o.connect, shown.say); err != nil {
		return err
	}
	var workers []*worker
	defer func() {
		for _, w := range workers {
			err = errors.Join(err, w.close())
		}
	}()
	for i := range o.workers {
		w, err := newWorker(o.connect, i, shown)
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	if err := putJobs(ctx, client, o); err != nil {
		return err
	}
	select { // some of it is done
	case <-shown.half:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := workers[0].die(); err != nil {
		return err
	}
	shown.say("worker 0 has died")
	select {
	case <-shown.all:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	shown.sum()
	return nil
}

// putJobs puts all jobs, and waits until they are in the queue.
func putJobs(ctx context.Context, client *framework.Client, o options) error {
	q, err := queue.NewBuilder[Job](client, nil, codec.JSON[Job]{}, jobsPath).LockPath(locksPath).BuildQueue()
	if err != nil {
		return err
	}
	if err := q.Start(); err != nil {
		return err
	}
	for i := range o.jobs {
		if err := q.Put(ctx, Job{Number: i, Takes: o.takes}); err != nil {
			return errors.Join(err, q.Close())
		}
	}
	return errors.Join(q.FlushPuts(ctx), q.Close())
}

func newClient(connect string) (*framework.Client, error) {
	client, err := framework.New(connect, framework.WithSessionTimeout(4*time.Second))
	if err != nil {
		return nil, err
	}
	return client, client.Start()
}
