package queue

import (
	"context"
	"maps"
	"slices"

	"github.com/gocurator/curator/internal/errtext"
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

// failure returns the error of x, nil if err is nil.
func (p *producer) failure(x *PendingPut, err error) error {
	if err == nil {
		return nil
	}
	if x.uncertain {
		err = errtext.Join(ErrUncertain, err)
	}
	return &ItemError{Path: p.path, Data: x.data, Err: err}
}

func (p *producer) fail(puts []*PendingPut, err error) {
	for _, x := range puts {
		p.complete(x, "", p.failure(x, err))
	}
}

// complete publishes the outcome of x. A failure is visible to a flush before Wait returns.
func (p *producer) complete(x *PendingPut, path string, err error) {
	notify := x.ended(path, err)
	p.mu.Lock()
	if err != nil && !x.back {
		p.failures.add(err)
	}
	if notify != nil {
		p.notified = true
		p.listeners.Do(notify)
	}
	delete(p.pending, x)
	p.mu.Unlock()
	x.end(path, err)
	<-p.slots
}

// flush waits until all puts accepted before it are completed, and their listeners were called. It reports the failures
// that no flush had reported when it began.
func (p *producer) flush(ctx context.Context) error {
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
func (p *producer) awaitSubmitted(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	defer func() { p.waiting-- }()
	for p.unsent > 0 {
		submitted := p.submitted
		p.mu.Unlock()
		isSubmitted := awaitDone(ctx, submitted)
		p.mu.Lock()
		if !isSubmitted && p.unsent > 0 {
			return ctx.Err()
		}
	}
	return nil
}

// awaitListeners waits until the listeners were called for all completed puts, unless the caller is one of them.
func (p *producer) awaitListeners(ctx context.Context) error {
	p.mu.Lock()
	notified := p.notified
	p.mu.Unlock()
	if !notified || p.listeners.IsCaller() {
		return nil
	}
	called := make(chan struct{})
	p.listeners.Do(func() { close(called) })
	if !awaitDone(ctx, called) {
		return ctx.Err()
	}
	return nil
}

// takeFailures returns the error about the failures since a flush. Flushes that begin afterwards do not report them
// again; flushes under way do.
func (p *producer) takeFailures(since *failures) error {
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
