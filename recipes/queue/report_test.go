package queue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// reports keeps the errors that OnError is called with.
type reports struct {
	mu   sync.Mutex
	errs []error
	more chan struct{}
}

func newReports() *reports { return &reports{more: make(chan struct{})} }

func (r *reports) add(_ context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
	close(r.more)
	r.more = make(chan struct{})
}

func (r *reports) all() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.errs)
}

// await waits for n errors and returns all that there are.
func (r *reports) await(tb testing.TB, n int) []error {
	tb.Helper()
	for {
		r.mu.Lock()
		errs, more := slices.Clone(r.errs), r.more
		r.mu.Unlock()
		if len(errs) >= n {
			return errs
		}
		select {
		case <-more:
		case <-testenv.Context(tb).Done():
			tb.Fatalf("%d of %d errors are reported: %v", len(errs), n, errs)
		}
	}
}

// paths returns the paths of the items that errors are about.
func (r *reports) paths() map[string]error {
	paths := make(map[string]error)
	for _, err := range r.all() {
		var item *queue.ItemError
		if errors.As(err, &item) {
			paths[item.Path] = err
		}
	}
	return paths
}
