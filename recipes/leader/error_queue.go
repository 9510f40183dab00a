package leader

import (
	"context"
	"sync"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// maxQueuedErrors is the number of errors of a selector that wait for its error handler.
const maxQueuedErrors = 100

// errorQueue calls a handler with one error after the other. When maxQueuedErrors wait, it drops further errors until
// the handler is done with all of those. Then the handler gets the last dropped error, with the number of the others.
type errorQueue struct {
	handle func(ctx context.Context, err error)
	calls  waitqueue.Serial

	mu          sync.Mutex
	waiting     int
	dropped     int
	lastDropped error
	lastCtx     context.Context // of lastDropped
}

// add queues an error. It does not wait.
func (q *errorQueue) add(ctx context.Context, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == maxQueuedErrors || q.dropped > 0 {
		q.dropped++
		q.lastDropped, q.lastCtx = err, ctx
		return
	}
	q.enqueue(ctx, err)
}

// enqueue calls the handler after the waiting errors. mu is held.
func (q *errorQueue) enqueue(ctx context.Context, err error) {
	q.waiting++
	q.calls.Do(func() {
		defer q.handled()
		q.handle(ctx, err)
	})
}

// handled counts an error that the handler is done with.
func (q *errorQueue) handled() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
	if q.waiting > 0 || q.dropped == 0 {
		return
	}
	err := q.lastDropped
	if q.dropped > 1 {
		err = errtext.Wrap(err, "leader", "%d errors before this one were left out", q.dropped-1)
	}
	q.enqueue(q.lastCtx, err)
	q.dropped, q.lastDropped, q.lastCtx = 0, nil, nil
}
