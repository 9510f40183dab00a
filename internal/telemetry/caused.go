package telemetry

import (
	"context"
	"sync"
	"time"
)

// caused is the context of the callback of a background operation. The callback may call the next operation with it,
// and so on without an end. To keep such a chain from growing in memory, caused wraps the context below the chain and
// not the context of the operation before.
//
// If the program starts spans in between, its own contexts wrap each other. So caused remembers the last lookups: a
// lookup costs the same at every step of the chain.
type caused struct {
	context.Context                 // has the span of the operation
	under           context.Context // has no span of the chain; nil for an operation without a span
	detached        detached        // memory for detach

	mu    sync.Mutex
	known *[4]lookup // the last lookups; nil before the first
	next  int        // index in known of the next lookup
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
	if _, ok := key.(*int); ok { // package context has such keys: context.Cause would find the end of the call
		return context.WithoutCancel(d.Context).Value(key)
	}
	return d.Context.Value(key)
}
