package produce

import (
	"context"
	"maps"
	"slices"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// failures holds the failed puts between two flushes.
type failures struct {
	n     int
	first error
	next  *failures // after a flush that has reported these
}

func (f *failures) add(err error) {
	if f.n++; f.first == nil {
		f.first = err
	}
}

// Flush waits until all puts accepted before it are completed, and their listeners were called. It reports the failures
// that no flush had reported when it began.
func (p *Producer) Flush(ctx context.Context) error {
	return waitqueue.Explain(ctx, p.Client, p.flush(ctx))
}

func (p *Producer) flush(ctx context.Context) error {
	p.mu.Lock()
	puts, since := slices.Collect(maps.Keys(p.pending)), p.failures
	p.mu.Unlock()
	if err := awaitPuts(ctx, puts); err != nil {
		return err
	}
	if err := p.awaitListeners(ctx); err != nil {
		return err
	}
	return p.takeFailures(since)
}

// awaitSubmitted waits until all accepted puts are submitted.
func (p *Producer) awaitSubmitted(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	defer func() { p.waiting-- }()
	for p.unsent > 0 {
		submitted := p.submitted
		p.mu.Unlock()
		isSubmitted := reply.Await(ctx, submitted)
		p.mu.Lock()
		if !isSubmitted && p.unsent > 0 {
			return ctx.Err()
		}
	}
	return nil
}

// listenerKey is the key of the producer in the context of its listeners.
type listenerKey struct{}

// MarkListener returns the context of a listener, with which a flush does not wait for listeners.
func (p *Producer) MarkListener(ctx context.Context) context.Context {
	return context.WithValue(ctx, listenerKey{}, p)
}

// awaitListeners waits until the listeners were called for all completed puts, unless ctx is that of a listener.
func (p *Producer) awaitListeners(ctx context.Context) error {
	p.mu.Lock()
	notified := p.notified
	p.mu.Unlock()
	if !notified || ctx.Value(listenerKey{}) == p {
		return nil
	}
	called := make(chan struct{})
	p.Listeners.Do(func() { close(called) })
	if !reply.Await(ctx, called) {
		return ctx.Err()
	}
	return nil
}

// takeFailures returns the error about the failures since a flush. Flushes that begin afterwards do not report them
// again; flushes under way do.
func (p *Producer) takeFailures(since *failures) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, first := 0, error(nil)
	for f := since; f != nil; f = f.next {
		if n += f.n; first == nil {
			first = f.first
		}
	}
	if first == nil {
		return nil
	}
	p.failures.next = new(failures)
	p.failures = p.failures.next
	return errtext.Wrap(first, "queue", "%d puts have failed, the first", n)
}
