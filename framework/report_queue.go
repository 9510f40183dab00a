package framework

import (
	"sync"
	"time"

	"github.com/gocurator/curator/internal/dispatch"
)

// reportQueue runs reports to telemetry in order on a goroutine of its own, because a span processor of the program may
// block and many callers must not. The goroutine starts with the first report.
type reportQueue struct {
	mu    sync.Mutex
	open  bool
	queue *dispatch.Queue // nil before the first call
}

func (q *reportQueue) start() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = true
}

// push queues a call. Before start and after close it runs the call itself: no caller is bound not to block then.
func (q *reportQueue) push(call func()) {
	q.mu.Lock()
	if q.open && q.queue == nil {
		q.queue = dispatch.Start()
	}
	taken := q.open && q.queue.Push(dispatch.Func(call))
	q.mu.Unlock()
	if !taken {
		call()
	}
}

// close ends the queue, and reports whether all calls have returned within limit.
func (q *reportQueue) close(limit time.Duration) bool {
	q.mu.Lock()
	q.open = false
	queue := q.queue
	q.queue = nil
	q.mu.Unlock()
	return queue == nil || queue.Close(limit)
}
