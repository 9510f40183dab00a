package reply

import (
	"context"
	"sync"
)

// Goroutines counts the goroutines that outlive the call that starts them. The zero value is ready.
type Goroutines struct {
	mu      sync.Mutex
	n       int
	changed chan struct{} // closed when the last has ended; nil without a waiter
}

// Run runs fn on its own goroutine.
func (b *Goroutines) Run(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	go func() {
		defer b.end()
		fn()
	}()
}

func (b *Goroutines) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n--; b.n == 0 && b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Wait waits until no goroutine runs, and reports false if ctx ended before.
func (b *Goroutines) Wait(ctx context.Context) bool {
	b.mu.Lock()
	if b.n > 0 && b.changed == nil {
		b.changed = make(chan struct{})
	}
	ended := b.changed
	b.mu.Unlock()
	return ended == nil || Await(ctx, ended)
}
