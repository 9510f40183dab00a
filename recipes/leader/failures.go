package leader

import (
	"context"
	"sync"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// maxFailures is how many errors of a selector wait for its error handler.
const maxFailures = 100

// failures hands errors to a handler, one after the other. When maxFailures of them wait, further ones are left out
// until the handler has had those. Then it gets the last one, with the number of the others.
type failures struct {
	handle func(ctx context.Context, err error)
	told   lineup.Serial

	mu      sync.Mutex
	waiting int
	leftOut int
	last    error
	ctx     context.Context // of the last
}

// add hands over an error and does not wait.
func (f *failures) add(ctx context.Context, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == maxFailures || f.leftOut > 0 {
		f.leftOut++
		f.last, f.ctx = err, ctx
		return
	}
	f.enqueue(ctx, err)
}

// enqueue has the handler called behind those that wait. mu is held.
func (f *failures) enqueue(ctx context.Context, err error) {
	f.waiting++
	f.told.Do(func() {
		defer f.handled()
		f.handle(ctx, err)
	})
}

// handled notes that the handler is done with an error.
func (f *failures) handled() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting--
	if f.waiting > 0 || f.leftOut == 0 {
		return
	}
	err := f.last
	if f.leftOut > 1 {
		err = errtext.Wrap(err, "leader", "%d errors before this one were left out", f.leftOut-1)
	}
	f.enqueue(f.ctx, err)
	f.leftOut, f.last, f.ctx = 0, nil, nil
}
