package framework

import (
	"sync"
	"time"

	"github.com/gocurator/curator/internal/dispatch"
)

// telling runs what telemetry is told where nothing may block, in order, on a goroutine that is there from the first
// such call: what takes spans is the program's, and may take its time.
type telling struct {
	mu    sync.Mutex
	open  bool
	queue *dispatch.Queue // nil before the first call
}

func (t *telling) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = true
}

// push runs a call behind those before it. Before start and after close there is nobody whom it could hold up.
func (t *telling) push(call func()) {
	t.mu.Lock()
	if t.open && t.queue == nil {
		t.queue = dispatch.Start()
	}
	taken := t.open && t.queue.Push(dispatch.Func(call))
	t.mu.Unlock()
	if !taken {
		call()
	}
}

// close reports whether all calls have returned within limit.
func (t *telling) close(limit time.Duration) bool {
	t.mu.Lock()
	t.open = false
	queue := t.queue
	t.queue = nil
	t.mu.Unlock()
	return queue == nil || queue.Close(limit)
}
