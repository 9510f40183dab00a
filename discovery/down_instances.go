package discovery

import (
	"sync"
	"sync/atomic"
	"time"
)

// identity is one life of the node of an instance. An instance that registers anew begins another.
type identity struct {
	path  string
	czxid int64
}

// load is what a provider has given an instance to do, and what callers have noted of it. It lives as long as the node
// of the instance.
type load struct {
	inFlight atomic.Int64
	upAt     atomic.Pointer[time.Time] // when it is not down any more; nil if it was never down

	mu     sync.Mutex
	errors int
	until  time.Time // when the errors do not count any more
}

// note notes an error of an instance, and reports whether the instance is down from now on: for timeout, as soon as
// there are threshold errors within timeout.
func (l *load) note(now time.Time, timeout time.Duration, threshold int) (isDown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.Before(l.until) {
		l.errors, l.until = 0, now.Add(timeout)
	}
	l.errors++
	if l.errors != threshold {
		return false
	}
	l.until = now.Add(timeout)
	upAt := l.until
	l.upAt.Store(&upAt)
	return true
}

// isDown reports whether an instance is down.
func (l *load) isDown() bool {
	upAt := l.upAt.Load()
	return upAt != nil && time.Now().Before(*upAt)
}
