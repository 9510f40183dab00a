package callbacks

import "context"

// Listener takes events of type E. A client or a recipe has a method that adds it, AddListener or, with the kind of the
// events in its name, AddPutListener for example. The method returns a func that removes the listener.
//
// Listeners are called one at a time, in the order in which they were added; those of unhandled errors may be called
// concurrently. remove may be called within a listener, and more than once. After its return no call of the listener
// begins; one that has begun may still run. Listeners may be added and removed concurrently.
//
// ctx has the values of what led to the event, such as the span. It ends when the client or the recipe that calls the
// listener is closed, with ErrClosed of its package as the cause; their Close says whether it waits for listeners
// before. In Java: Listenable, addListener and removeListener.
type Listener[E any] func(ctx context.Context, ev E)
