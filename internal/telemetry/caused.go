package telemetry

import (
	"context"
	"sync"
	"time"
)

// caused is the context of what a background operation causes: with its span, and without what it was called with. A
// callback calls the next operation with it, whose callback the next: were each context on top of the last, a chain
// that never ends would never end in memory.
//
// With spans of the program in between, the contexts of a chain are the program's, and each on top of the last. They
// remember the last lookups: a lookup costs the same at every step, however long the chain.
type caused struct {
	context.Context                 // with the span
	under           context.Context // without any span of the chain; nil if the operation has none
	detached        detached        // the memory of what is at the bottom

	mu    sync.Mutex
	known *[4]lookup // nil until the first
	next  int        // in known
}

type lookup struct{ key, value any }

// Value returns the value of a key.
func (c *caused) Value(key any) any {
	c.mu.Lock()
	if c.known == nil {
		c.known = new([4]lookup)
	}
	for i := range c.known {
		if c.known[i].key == key {
			value := c.known[i].value
			c.mu.Unlock()
			return value
		}
	}
	c.mu.Unlock()
	value := c.Context.Value(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[c.next] = lookup{key, value}
	c.next = (c.next + 1) % len(c.known)
	return value
}

// detach returns ctx without its end, as context.WithoutCancel does. It allocates nothing.
func (c *caused) detach(ctx context.Context) context.Context {
	c.detached.Context = ctx
	return &c.detached
}

type detached struct{ context.Context }

func (*detached) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (*detached) Done() <-chan struct{}                   { return nil }
func (*detached) Err() error                              { return nil }

// Value returns the value of a key.
func (d *detached) Value(key any) any {
	if _, ok := key.(*int); ok { // package context looks for its own with such a key: context.Cause finds the end
		return context.WithoutCancel(d.Context).Value(key)
	}
	return d.Context.Value(key)
}
