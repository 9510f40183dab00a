package fetch

import (
	"slices"
	"time"

	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// backlog holds the known items of a queue: all items, the locked ones, and the order of the claims.
type backlog struct {
	kind  node.Kind
	items map[string]*waitingItem
	next  []*waitingItem // in order: items that may be claimed, and some that are gone or locked since
	free  int            // number of items that may be claimed
}

type waitingItem struct {
	name    node.Name
	due     time.Time // zero if it is due at once
	free    bool      // it may be claimed
	queued  bool      // it is in next
	unlocks int       // how often its lock was deleted
}

// fill replaces the items with those of a list.
func (b *backlog) fill(names, locks []string) {
	locked := make(map[string]struct{}, len(locks))
	for _, name := range locks {
		locked[name] = struct{}{}
	}
	b.items = make(map[string]*waitingItem, len(names))
	b.next, b.free = make([]*waitingItem, 0, len(names)), 0
	all := make([]waitingItem, 0, len(names))
	for _, name := range names {
		n, found := node.ParseName(name)
		if !found {
			continue
		}
		all = append(all, waitingItem{name: n, due: b.due(n)})
		x := &all[len(all)-1]
		b.items[name] = x
		if _, isLocked := locked[name]; !isLocked {
			x.free, x.queued = true, true
			b.next = append(b.next, x)
			b.free++
		}
	}
	slices.SortFunc(b.next, b.order)
}

func (b *backlog) order(x, y *waitingItem) int { return b.kind.Order(x.name, y.name) }

func (b *backlog) due(n node.Name) (due time.Time) {
	if b.kind.Delayed {
		due = n.Due()
	}
	return due
}

func (b *backlog) clear() { b.fill(nil, nil) }

// note records an event, and reports whether an item disappeared that could have been claimed.
func (b *backlog) note(ev claim.Event) (lost bool) {
	x := b.items[ev.Name]
	switch ev.What {
	case claim.Created:
		if name, found := node.ParseName(ev.Name); found && x == nil {
			x = &waitingItem{name: name, due: b.due(name)}
			b.items[ev.Name] = x
			b.add(x)
		}
	case claim.Deleted:
		lost = b.take(x)
		delete(b.items, ev.Name)
	case claim.Locked:
		lost = b.take(x)
	case claim.Unlocked:
		if x != nil {
			x.unlocks++
			b.add(x)
		}
	}
	return lost
}

// add marks x as an item that may be claimed.
func (b *backlog) add(x *waitingItem) {
	if x == nil || x.free {
		return
	}
	x.free = true
	b.free++
	if !x.queued {
		x.queued = true
		at, _ := slices.BinarySearchFunc(b.next, x, b.order)
		b.next = slices.Insert(b.next, at, x)
	}
}

// take marks x as an item that may not be claimed, and reports whether it could be claimed before.
func (b *backlog) take(x *waitingItem) bool {
	if x == nil || !x.free {
		return false
	}
	x.free = false
	b.free--
	return true
}

// first returns the next item to claim, nil if there is none. The item may not be due yet.
func (b *backlog) first() *waitingItem {
	for len(b.next) > 0 {
		x := b.next[0]
		if x.free {
			return x
		}
		b.drop(x)
	}
	return nil
}

// pop removes and returns the item that first returns.
func (b *backlog) pop() *waitingItem {
	x := b.first()
	b.drop(x)
	b.take(x)
	return x
}

// drop removes x, the first item in order.
func (b *backlog) drop(x *waitingItem) {
	x.queued = false
	b.next[0] = nil
	b.next = b.next[1:]
}
