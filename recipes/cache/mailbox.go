package cache

import (
	"context"
	"sync"
)

// mailbox is a queue without a bound: putting never blocks. The zero value is not ready: see newMailbox.
type mailbox[T any] struct {
	mu     sync.Mutex
	items  []T
	closed bool
	wake   chan struct{} // has one element when something was put or the mailbox was closed
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{wake: make(chan struct{}, 1)} }

// put reports whether item will be taken: not after close.
func (m *mailbox[T]) put(item T) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.items = append(m.items, item)
	m.signal()
	return true
}

// take returns all items.
func (m *mailbox[T]) take() (items []T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items, m.items = m.items, nil
	return items
}

// close ends the mailbox; what is in it is dropped.
func (m *mailbox[T]) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.items = true, nil
	m.signal()
}

// signal is called with mu held.
func (m *mailbox[T]) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// next waits for an item and takes it. It reports false when the mailbox or ctx has ended.
func (m *mailbox[T]) next(ctx context.Context) (item T, ok bool) {
	for {
		m.mu.Lock()
		if m.closed || ctx.Err() != nil {
			m.mu.Unlock()
			return item, false
		}
		if len(m.items) > 0 {
			var zero T
			item, m.items[0] = m.items[0], zero
			m.items = m.items[1:]
			m.mu.Unlock()
			return item, true
		}
		m.mu.Unlock()
		select {
		case <-m.wake:
		case <-ctx.Done():
		}
	}
}
