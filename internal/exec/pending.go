package exec

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrTooManyPending is returned when a background operation would exceed the client's bound of pending operations.
var ErrTooManyPending = errors.New("curator: too many pending operations")

// pending counts operations. It bounds their number if most is set.
type pending struct {
	most int // the bound; 0 means none

	_      cacheLine
	begun  atomic.Int64 // number of accepted operations
	_      cacheLine
	over   atomic.Int64 // number of accepted operations that have ended and whose callback has returned
	_      cacheLine
	closed atomic.Bool   // no operation is accepted any more
	idle   chan struct{} // closed when no operation is open and none is accepted any more
	once   sync.Once

	// These are counted only with a bound: each counter costs time between processors.
	alive     atomic.Int64 // number of operations that are accepted and not finished
	callbacks atomic.Int64 // number of running callbacks

	waiting atomic.Int64 // number of calls of WaitQuiet

	mu    sync.Mutex
	queue list.List       // a chan int64 for each operation that waits to be accepted, in order
	quiet []chan struct{} // a channel for each call of WaitQuiet that waits
}

// cacheLine separates fields that different cores write.
type cacheLine [64]byte

// open returns the number of accepted operations that are not over.
func (p *pending) open() int64 {
	over := p.over.Load() // first: an operation that begins and ends meanwhile counts as begun at most
	return p.begun.Load() - over
}

// Limit sets the bound of two numbers: of background operations whose callback has not begun, and of unfinished
// foreground operations. It is called before Start.
func (e *Executor) Limit(most int) { e.pending.most = most }

// enter counts an operation. At the bound a foreground operation waits, and a background operation is refused. exempt
// ones, the executor's own, are counted and not bounded. It returns the number of the operation.
func (p *pending) enter(ctx context.Context, background, exempt bool) (number int64, err error) {
	if p.most == 0 {
		return p.begun.Add(1), nil
	}
	if exempt {
		p.alive.Add(1)
		return p.begun.Add(1), nil
	}
	p.mu.Lock()
	switch {
	case background && p.open()-p.callbacks.Load() >= int64(p.most):
		p.mu.Unlock()
		return 0, ErrTooManyPending
	case background || p.alive.Load() < int64(p.most) && p.queued() == 0 || p.closed.Load():
		p.alive.Add(1)
		number = p.begun.Add(1)
		p.mu.Unlock()
		return number, nil
	}
	turn := make(chan int64, 1)
	entry := p.queue.PushBack(turn)
	p.mu.Unlock()
	select {
	case number = <-turn: // admit has counted it
		return number, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.queue.Remove(entry) // does nothing if admit has removed it
	p.mu.Unlock()
	select {
	case <-turn:
		p.finished()
		p.exit()
	default:
	}
	return 0, ctx.Err()
}

// queued returns the number of operations that wait to be accepted. mu is held.
func (p *pending) queued() int { return p.queue.Len() }

// calling counts running callbacks, if there is a bound.
func (p *pending) calling(n int64) {
	if p.most > 0 {
		p.callbacks.Add(n)
	}
}

// finished counts an operation that has its result.
func (p *pending) finished() {
	if p.most == 0 {
		return
	}
	p.alive.Add(-1)
	p.mu.Lock()
	p.admit()
	p.mu.Unlock()
}

// admit accepts operations of the queue while there is room. mu is held.
func (p *pending) admit() {
	for p.queue.Len() > 0 && (p.alive.Load() < int64(p.most) || p.closed.Load()) {
		p.alive.Add(1)
		p.queue.Remove(p.queue.Front()).(chan int64) <- p.begun.Add(1)
	}
}

// exit counts an operation that is over.
func (p *pending) exit() {
	p.over.Add(1)
	if p.closed.Load() && p.open() == 0 {
		p.once.Do(func() { close(p.idle) })
	}
	if p.waiting.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open() > 0 {
		return
	}
	for _, done := range p.quiet {
		close(done)
	}
	p.quiet = nil
}

// close wakes all operations that wait to be accepted: the executor refuses them.
func (p *pending) close() {
	p.closed.Store(true)
	p.mu.Lock()
	p.admit()
	p.mu.Unlock()
	if p.open() == 0 {
		p.once.Do(func() { close(p.idle) })
	}
}

// WaitQuiet returns nil when every accepted operation has finished and its callback has returned.
func (e *Executor) WaitQuiet(ctx context.Context) error {
	p := &e.pending
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	for p.open() > 0 {
		done := make(chan struct{})
		p.mu.Lock()
		p.quiet = append(p.quiet, done)
		if p.open() == 0 { // exit may have come before
			close(done)
			p.quiet = p.quiet[:len(p.quiet)-1]
		}
		p.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			p.mu.Lock()
			p.quiet = slices.DeleteFunc(p.quiet, func(c chan struct{}) bool { return c == done })
			p.mu.Unlock()
			return ctx.Err()
		}
	}
	return nil
}

// Load counts the pending work of an executor.
type Load struct {
	Pending int // number of accepted operations that are not over
	Parked  int // number of pending operations that wait for a connection
	Retries int // number of pending operations in the pause before a retry
}

// Load returns the pending work of e.
func (e *Executor) Load() Load {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := Load{
		Pending: int(e.pending.open()), Parked: e.line.n - e.line.retries, Retries: e.timers.sleeping + e.line.retries,
	}
	return l
}
