package framework

import (
	"sync"
	"time"

	"github.com/gocurator/curator/internal/dispatch"
)

// attached is what a recipe keeps once for the client and its views: see hook.Attached.
type attached struct {
	mu     sync.Mutex
	kept   any
	stop   func() (done <-chan struct{})
	closed bool
}

// value returns what create returned at the first call. After close, that is stopped already.
func (a *attached) value(create func() (any, func() <-chan struct{})) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil {
		a.kept, a.stop = create()
		if a.closed {
			a.stop()
		}
	}
	return a.kept
}

// close stops it and reports whether it has ended within limit.
func (a *attached) close(limit time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.stop == nil {
		return true
	}
	return dispatch.Within(limit, a.stop())
}
