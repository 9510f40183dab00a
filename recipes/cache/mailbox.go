package cache

import "sync"

// mailbox is an unbounded queue: put never blocks. Use newMailbox; the zero value is not usable.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	added chan struct{} // receives one element after items were added
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{added: make(chan struct{}, 1)} }

// put adds items.
func (m *mailbox[T]) put(items ...T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.items = append(m.items, items...)
	select {
	case m.added <- struct{}{}:
	default:
	}
}

// take removes and returns all items.
func (m *mailbox[T]) take() (items []T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items, m.items = m.items, nil
	return items
}
