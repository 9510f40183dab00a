package locks

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
)

var errNotSeen = errors.New("locks: not looked yet")

// lookout looks at the leases of a semaphore whenever the line for the turn is listed, in the same round trip. It is behind
// that list: if the turn is ours by then, nobody adds a lease after the look.
type lookout struct {
	semaphore *InterProcessSemaphoreV2
	wanted    int // leases
	lists     int
	last      *builders.Future[[]string]
	inherited bool // the turn, without a list of the line
}

// out looks. Where others were before us the last time, the first look is spared: it would not be the last.
func (l *lookout) out(ctx context.Context) {
	if l.lists++; l.lists == 1 && l.semaphore.crowded.Load() {
		return
	}
	if l.last != nil {
		_, _ = l.last.Wait(ctx) // it was answered with the list before
	}
	looked := l.semaphore.client.GetChildren().Submit(ctx, l.semaphore.leases.Path)
	l.last = &looked
}

// inherit looks when the turn was given on to us, in the flight of the watch that has told so: a server that we come to later
// may not have seen that yet. The turn is ours if there are leases enough: the transaction that takes them fails without our
// node. Who has to wait for others needs the line to show that node.
func (l *lookout) inherit(flight context.Context) bool {
	l.lists++
	looked := l.semaphore.client.GetChildren().Submit(flight, l.semaphore.leases.Path)
	l.last = &looked
	children, err := looked.Wait(flight)
	l.inherited = err == nil && l.semaphore.isFree(children, l.wanted)
	return l.inherited
}

// lined drops the first look if others are ahead: there will be another, and thousands may wait for it.
func (l *lookout) lined(ahead int) {
	if ahead > 0 {
		l.last = nil
	}
}

// seen returns what leases there are. If there is no node for them yet, it is created.
func (l *lookout) seen(ctx context.Context) ([]string, error) {
	s := l.semaphore
	s.crowded.Store(l.lists > 1)
	var children []string
	err := errNotSeen
	if l.last != nil {
		children, err = l.last.Wait(ctx)
	}
	for err != nil {
		children, err = s.leases.List(ctx)
		if !errors.Is(err, zk.ErrNoNode) {
			return children, err
		}
		if err := s.makeLeases(ctx); err != nil {
			return nil, err
		}
	}
	return children, nil
}
