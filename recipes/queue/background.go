package queue

import (
	"context"
	"sync"
)

// background counts the goroutines that outlive the call that starts them. The zero value is ready.
type background struct {
	mu      sync.Mutex
	n       int
	changed chan struct{} // closed when the last has ended; nil without a waiter
}

// run runs fn on its own goroutine.
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

// wait waits until no goroutine runs, or ctx ends.
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
