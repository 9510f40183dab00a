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

// pending counts operations. It bounds them if most is set.
type pending struct {
	most int // 0 is without a bound

	open   atomic.Int64  // accepted and not over: an operation is over when its callback has returned
	closed atomic.Bool   // no more are accepted
	idle   chan struct{} // closed when none is open and no more are accepted
	once   sync.Once

	// Counted for the bound alone: each counter costs time between processors.
	alive     atomic.Int64 // accepted and not finished
	callbacks atomic.Int64 // running

	waiting atomic.Int64 // for open to become 0

	mu    sync.Mutex
	queue list.List       // of those that wait to be accepted, in order: each a chan struct{}
	quiet []chan struct{} // of those that wait for open to become 0
}

// Limit bounds two numbers to most each: accepted background operations whose callback has not begun, and unfinished
// foreground operations. It is called before Start.
func (e *Executor) Limit(most int) { e.pending.most = most }

// enter counts an operation. At the bound a foreground operation waits, and a background operation is refused. exempt
// ones, the executor's own, are counted and not bounded.
func (p *pending) enter(ctx context.Context, background, exempt bool) error {
	if p.most == 0 {
		p.open.Add(1)
		return nil
	}
	if exempt {
		p.alive.Add(1)
		p.open.Add(1)
		return nil
	}
	p.mu.Lock()
	switch {
	case background && p.open.Load()-p.callbacks.Load() >= int64(p.most):
		p.mu.Unlock()
		return ErrTooManyPending
	case background || p.alive.Load() < int64(p.most) && p.queued() == 0 || p.closed.Load():
		p.alive.Add(1)
		p.open.Add(1)
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	place := p.queue.PushBack(turn)
	p.mu.Unlock()
	select {
	case <-turn: // already counted by the one that has made room
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.queue.Remove(place) // unless its turn has come
	p.mu.Unlock()
	select {
	case <-turn:
		p.finished()
		p.left()
	default:
	}
	return ctx.Err()
}

// queued returns the number of operations that wait to be accepted. mu is held.
func (p *pending) queued() int { return p.queue.Len() }

// calling counts callbacks that run. Only the bound needs it.
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
	p.letIn()
	p.mu.Unlock()
}

// letIn counts in those of the queue for whom there is room. mu is held.
func (p *pending) letIn() {
	for p.queue.Len() > 0 && (p.alive.Load() < int64(p.most) || p.closed.Load()) {
		p.alive.Add(1)
		p.open.Add(1)
		close(p.queue.Remove(p.queue.Front()).(chan struct{}))
	}
}

// left counts an operation that is done.
func (p *pending) left() {
	if p.open.Add(-1) > 0 {
		return
	}
	if p.closed.Load() {
		p.once.Do(func() { close(p.idle) })
	}
	if p.waiting.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open.Load() > 0 {
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
	p.letIn()
	p.mu.Unlock()
	if p.open.Load() == 0 {
		p.once.Do(func() { close(p.idle) })
	}
}

// WaitQuiet returns nil when every accepted operation has finished and its callback has returned.
func (e *Executor) WaitQuiet(ctx context.Context) error {
	p := &e.pending
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	for p.open.Load() > 0 {
		done := make(chan struct{})
		p.mu.Lock()
		p.quiet = append(p.quiet, done)
		if p.open.Load() == 0 { // left may have come before
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
	Pending int // operations that were accepted and are not over
	Parked  int // of those: that wait for a connection
	Retries int // of those: that wait for the pause before a retry
}

// Load returns the pending work of e.
func (e *Executor) Load() Load {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := Load{Pending: int(e.pending.open.Load()), Parked: e.parked.n, Retries: e.timers.sleeping}
	return l
}
