package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/zkpath"
)

// The results of a job: first the one, at the end the other.
const (
	begunData = "begun"
	doneData  = "done"
)

// worker does jobs, one at a time, and takes part in the election of the one who reports.
type worker struct {
	*pipeline
	client   *framework.Client
	queue    *queue.DistributedQueue[Job]
	reporter *leader.LeaderSelector
}

func startWorker(p *pipeline) (*worker, error) {
	client, err := newClient(p.options, p.seen)
	if err != nil {
		return nil, err
	}
	w := &worker{pipeline: p, client: client}
	w.queue, err = queue.NewBuilder(client, w.do, codec.JSON[Job]{}, jobsPath).
		Name("jobs").LockPath(jobLocksPath).Prefetch(1).BuildQueue()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	w.reporter = leader.NewLeaderSelector(client, reporterPath, w.report, leader.WithName("reporter"),
		leader.WithAutoRequeue())
	if err := errors.Join(w.queue.Start(), w.reporter.Start()); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *worker) close() error {
	return errors.Join(w.queue.Close(), w.reporter.Close(), w.client.Close())
}

// do does a job: while the customer's lock is held, a chain of background operations of which each is begun by the
// callback of the one before. ctx has the trace of the job.
func (w *worker) do(ctx context.Context, job Job) error {
	mutex := locks.NewInterProcessMutex(w.client, zkpath.Join(customerPath, job.Customer), locks.WithName("customer"))
	return locks.Do(ctx, mutex, func(ctx context.Context) error {
		result := zkpath.Join(job.Results, fmt.Sprintf("job-%d", job.Number))
		finished := make(chan error, 1)
		if err := w.createResult(ctx, result, finished); err != nil {
			return err
		}
		select {
		case err := <-finished:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// createResult is the first of the chain. A job that is done again finds the node.
func (w *worker) createResult(ctx context.Context, path string, finished chan<- error) error {
	create := w.client.Create().CreatingParentsIfNeeded().OrSetData().WithMode(builders.Persistent)
	return create.InBackground(func(ctx context.Context, ev callbacks.Event) {
		if ev.Err != nil {
			finished <- ev.Err
			return
		}
		w.fillResult(ctx, path, finished)
	}).ForPath(ctx, path, []byte(begunData))
}

func (w *worker) fillResult(ctx context.Context, path string, finished chan<- error) {
	err := w.client.SetData().InBackground(func(ctx context.Context, ev callbacks.Event) {
		if ev.Err != nil {
			finished <- ev.Err
			return
		}
		w.checkResult(ctx, path, finished)
	}).ForPath(ctx, path, []byte(doneData))
	if err != nil { // not accepted: there will be no callback
		finished <- err
	}
}

func (w *worker) checkResult(ctx context.Context, path string, finished chan<- error) {
	err := w.client.GetData().InBackground(func(_ context.Context, ev callbacks.Event) {
		if ev.Err == nil && string(ev.Data) != doneData {
			ev.Err = fmt.Errorf("%s is %q", path, ev.Data)
		}
		finished <- ev.Err
	}).ForPath(ctx, path)
	if err != nil {
		finished <- err
	}
}

// report is the work of the leader: it prints the number of finished jobs whenever it grows, until its term ends. ctx
// has the trace of the term.
func (w *worker) report(ctx context.Context) error {
	changed := make(chan zk.Event, 1)
	watcher := callbacks.NewChanWatcher(changed)
	done := make(map[string]bool)
	for shown := -1; ; {
		results, err := w.client.GetChildren().UsingWatcher(watcher).ForPath(ctx, w.results)
		if err != nil {
			return err
		}
		for _, result := range results {
			if done[result] {
				continue
			}
			data, err := w.client.GetData().UsingWatcher(watcher).ForPath(ctx, zkpath.Join(w.results, result))
			if err != nil {
				return err
			}
			if string(data) == doneData {
				done[result] = true
			}
		}
		if len(done) > shown {
			shown = len(done)
			w.reported(shown)
		}
		select {
		case <-changed:
		case <-ctx.Done(): // the end of the pipeline, or of leadership
			return context.Cause(ctx)
		}
	}
}
