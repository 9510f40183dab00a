package cache

import (
	"context"
	"sync"
)

// mailbox is an unbounded queue: put never blocks. Use newMailbox; the zero value is not usable.
type mailbox[T any] struct {
	mu     sync.Mutex
	items  []T
	closed bool
	wake   chan struct{} // receives one element when an item is added or the mailbox is closed
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{wake: make(chan struct{}, 1)} }

// put adds item. It returns false if the mailbox is closed.
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

// take removes and returns all items.
func (m *mailbox[T]) take() (items []T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items, m.items = m.items, nil
	return items
}

// close closes the mailbox and drops its items.
func (m *mailbox[T]) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.items = true, nil
	m.signal()
}

// signal wakes the reader. The caller holds mu.
func (m *mailbox[T]) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// next waits for an item and removes it. ok is false when the mailbox is closed or ctx ends.
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
