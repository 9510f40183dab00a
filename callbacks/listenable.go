package callbacks

import "context"

// Listener takes events of type E.
type Listener[E any] func(ctx context.Context, ev E)

// Listenable is a set of listeners for events of type E. A client or a recipe calls them. It is safe for concurrent
// use. In Java: Listenable.
type Listenable[E any] interface {
	// AddListener adds fn and returns a func that removes it. Listeners are called one at a time, in the order in which
	// they were added. remove may be called within fn, and more than once. After its return no call of fn begins; one that
	// has begun may still run. In Java: addListener and removeListener.
	AddListener(fn Listener[E]) (remove func())
}
