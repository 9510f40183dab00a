package queue

import (
	"context"
	"sync"
)

// background are the goroutines that go on when the one who has begun them returns. The zero value is ready.
type background struct {
	mu      sync.Mutex
	n       int
	changed chan struct{} // closed when the last has ended; nil if nobody waits for that
}

// run runs fn on a goroutine of its own.
func (b *background) run(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	go func() {
		defer b.end()
		fn()
	}()
}

func (b *background) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n--; b.n == 0 && b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// wait waits until none goes on, or ctx ends.
func (b *background) wait(ctx context.Context) {
	b.mu.Lock()
	if b.n > 0 && b.changed == nil {
		b.changed = make(chan struct{})
	}
	ended := b.changed
	b.mu.Unlock()
	if ended != nil {
		_ = awaitDone(ctx, ended)
	}
}
