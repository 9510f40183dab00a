package discovery

import (
	"sync"
	"time"
)

// identity is one life of the node of an instance. An instance that registers anew begins another.
type identity struct {
	path  string
	czxid int64
}

// downInstances knows which instances are down: callers have noted errors of them.
type downInstances struct {
	timeout   time.Duration
	threshold int

	mu     sync.Mutex
	errors map[identity]*noted
}

// noted is what callers have noted of an instance.
type noted struct {
	count int
	until time.Time // the end of the errors, and of being down
}

// note notes an error of an instance, and reports whether the instance is down from now on.
func (d *downInstances) note(id identity, now time.Time) (isDown bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, n := range d.errors {
		if !now.Before(n.until) {
			delete(d.errors, other)
		}
	}
	n := d.errors[id]
	if n == nil {
		if d.errors == nil {
			d.errors = make(map[identity]*noted)
		}
		n = &noted{until: now.Add(d.timeout)}
		d.errors[id] = n
	}
	n.count++
	if n.count == d.threshold {
		n.until = now.Add(d.timeout)
	}
	return n.count == d.threshold
}

// isDown reports whether an instance is down, and until when.
func (d *downInstances) isDown(id identity, now time.Time) (until time.Time, down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.errors[id]
	if n == nil || n.count < d.threshold || !now.Before(n.until) {
		return time.Time{}, false
	}
	return n.until, true
}
