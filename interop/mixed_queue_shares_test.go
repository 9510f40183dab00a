package interop_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// audience collects the reports of the ends of a queue.
type audience struct {
	m          *meeting
	ends       []queueEnd
	deliveries chan delivery
	reported   map[string]int // how often of each item
}

// gather opens a queue on all sides.
func gather(m *meeting, use queueUse) *audience {
	m.t.Helper()
	a := &audience{m: m, deliveries: make(chan delivery, 10_000), reported: make(map[string]int)}
	ctx, cancel := context.WithCancel(m.ctx)
	var all sync.WaitGroup
	m.t.Cleanup(all.Wait)
	m.t.Cleanup(cancel)
	for _, s := range m.sides {
		e := m.openQueue(s, use)
		a.ends = append(a.ends, e)
		all.Go(func() {
			for {
				delivery, err := e.next(ctx)
				if err != nil {
					return
				}
				a.deliveries <- delivery
			}
		})
	}
	return a
}

// wantEvent waits for a report of this kind, and counts the reports of each item.
func (a *audience) wantEvent(kind string) {
	a.m.t.Helper()
	for {
		got, err := receive(a.m.ctx, a.deliveries)
		if err != nil {
			a.m.t.Fatalf("nothing is reported, after %d items: %v", len(a.reported), err)
		}
		if got.kind == "item" {
			a.reported[got.item]++
		}
		if got.kind == kind {
			return
		}
	}
}

// everybodyHolds gives each of the ends an item to hold: all that they took before is reported then. A consumer of Go
// takes several items ahead, when there are several; so they come one by one.
func (a *audience) everybodyHolds(what string) {
	a.m.t.Helper()
	for i, e := range a.ends {
		a.m.put(e, put{Items: []string{fmt.Sprint("hold ", what, " ", i)}})
		a.wantEvent("held")
	}
}

func (a *audience) letGo() {
	a.m.t.Helper()
	for _, e := range a.ends {
		e.letGo()
	}
}

// putAll has each of the ends put its share of n items, of which some are two in a node.
func (a *audience) putAll(n int) {
	a.m.t.Helper()
	var all sync.WaitGroup
	share := n / len(a.ends)
	for i, e := range a.ends {
		var puts []put
		for k := range share {
			item := fmt.Sprint("item ", i*share+k)
			if k%10 == 1 {
				puts[len(puts)-1].Items = append(puts[len(puts)-1].Items, item)
				continue
			}
			puts = append(puts, put{Items: []string{item}})
		}
		all.Go(func() {
			if err := e.put(a.m.ctx, puts...); err != nil {
				a.m.t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestGoAndJavaConsumeEveryItemOnce lets two clients of Go and two of Java produce and consume items.
func TestGoAndJavaConsumeEveryItemOnce(t *testing.T) {
	const items = 600
	forBothModes(t, func(t *testing.T, locked bool) {
		m := meet(t, 2)
		at := newSpot(locked)
		a := gather(m, queueUse{kind: plainQueue, at: at, consumes: true})
		a.everybodyHolds("first")
		a.putAll(items)
		a.letGo()
		for len(a.reported) < items+len(a.ends) {
			a.wantEvent("item")
		}
		a.everybodyHolds("last")
		for item, n := range a.reported {
			if n != 1 {
				t.Errorf("%s is consumed %d times", item, n)
			}
		}
		a.letGo()
		m.awaitConsumed(at)
	})
}

// TestNoItemIsLostWithASession ends the sessions of a client of Go and one of Java while they consume.
func TestNoItemIsLostWithASession(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	const items = 400
	m := meet(t, 2)
	at := newSpot(true)
	a := gather(m, queueUse{kind: plainQueue, at: at, consumes: true, expires: true})
	a.everybodyHolds("first")
	a.putAll(items)
	for range 1 + 2 { // what is held comes again if its lock is lost
		a.letGo()
	}
	for i := range m.sides[:2] {
		for goal := (i + 1) * items / 4; len(a.reported) < goal; {
			a.wantEvent("item")
		}
		m.expire(m.sides[i])
	}
	for len(a.reported) < items+len(a.ends) {
		a.wantEvent("item")
	}
	m.awaitConsumed(at)
}
