package framework

import (
	"sync"
	"time"

	"github.com/gocurator/curator/internal/dispatch"
)

// reportQueue runs reports to telemetry from where nothing may block, in order, on a goroutine that is there from the
// first report: a span processor of the program may take its time.
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

// push runs a call behind those before it. Before start and after close it runs at once: nothing can be held up.
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

// close reports whether all calls have returned within limit.
func (q *reportQueue) close(limit time.Duration) bool {
	q.mu.Lock()
	q.open = false
	queue := q.queue
	q.queue = nil
	q.mu.Unlock()
	return queue == nil || queue.Close(limit)
}
