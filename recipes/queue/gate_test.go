package queue_test

import (
	"sync"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// gate stops a consumer at one item until it is opened.
type gate struct {
	item    string
	once    sync.Once
	reached chan struct{}
	opened  chan struct{}
	open    func()
}

// newGate returns a gate. The test has to open it, also when it fails: Close waits for the consumer.
func newGate(item string) *gate {
	g := &gate{item: item, reached: make(chan struct{}), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	return g
}

// pass returns at once for other items, and for this one when the gate is open.
func (g *gate) pass(item string) {
	if item != g.item {
		return
	}
	g.once.Do(func() { close(g.reached) })
	<-g.opened
}

func (g *gate) awaitReached(tb testing.TB) {
	tb.Helper()
	select {
	case <-g.reached:
	case <-testenv.Context(tb).Done():
		tb.Fatalf("%q is not consumed", g.item)
	}
}
