package main

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/queue"
)

// worker does jobs, one at a time.
type worker struct {
	number int
	shown  *progress
	client *framework.Client
	queue  *queue.DistributedQueue[Job]
}

func newWorker(connect string, number int, shown *progress) (*worker, error) {
	client, err := newClient(connect)
	if err != nil {
		return nil, err
	}
	w := &worker{number: number, shown: shown, client: client}
	w.queue, err = queue.NewBuilder(client, w.do, codec.JSON[Job]{}, jobsPath).
		LockPath(locksPath).         // a job is done at least once
		Prefetch(1).                 // jobs take long: who is idle shall have the next
		FinalFlushTime(time.Second). // for the job at hand when we close
		OnError(w.report).BuildQueue()
	if err == nil {
		err = w.queue.Start()
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return w, nil
}

// do does a job. When its context ends, because its lock is lost or the worker is closed, somebody else will do it.
func (w *worker) do(ctx context.Context, job Job) error {
	select {
	case <-time.After(job.Takes): // the work
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	w.shown.done(w.number, job.Number)
	return nil
}

func (w *worker) report(_ context.Context, err error) {
	if !errors.Is(err, queue.ErrClosed) && !errors.Is(err, queue.ErrLockLost) && !errors.Is(err, framework.ErrClosed) {
		w.shown.say("worker %d: %v", w.number, err)
	}
}

// die simulates the end of a process: the session goes, with the locks of the jobs at hand.
func (w *worker) die() error { return w.client.Close() }

func (w *worker) close() error { return errors.Join(w.queue.Close(), w.client.Close()) }
