package callbacks

import "context"

// Listener takes events of type E.
type Listener[E any] func(ctx context.Context, ev E)

// Listenable is a set of listeners for events of type E, which a client or a recipe notifies. It is safe for concurrent
// use. In Java: Listenable.
type Listenable[E any] interface {
	// AddListener registers fn and returns a func that removes it. Listeners are called one at a time, in the order in
	// which they were added. remove may be called from inside fn, and more than once; when it returns, no further call
	// of fn begins, except one that is already under way. In Java: addListener and removeListener.
	AddListener(fn Listener[E]) (remove func())
}
