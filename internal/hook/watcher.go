package hook

import "github.com/go-zookeeper/zk"

// InPlaceWatcher returns a *callbacks.Watcher that calls fn on the goroutine that reads the connection: in the order of
// the events, and before an answer that came after them is given to anybody. fn must not block. Package callbacks sets
// it.
var InPlaceWatcher func(fn func(ev zk.Event)) any
