package queue

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// claim claims the first prefetched items, and reads the next ones.
func (f *fetcher) claim(ctx context.Context) {
	if f.due() != nil && f.isYielding(time.Now()) {
		return
	}
	if f.place.hasLocks() {
		f.lock()
		return
	}
	if f.alone > 0 || len(f.claims) < (f.limit()+1)/2 { // else more of them are sent together a little later
		f.delete(ctx)
	}
	f.readAhead()
}

// limit returns how many items may be claimed before they are delivered.
func (f *fetcher) limit() int {
	most := f.prefetch.maxClaimed() + 1
	if f.kind.claimed > 0 {
		most = min(most, f.kind.claimed)
	}
	return most
}

// mayClaim reports whether n is to be claimed now.
func (f *fetcher) mayClaim(n nodeName) bool {
	if len(f.claims)+len(f.ready) < f.limit() {
		return true
	}
	isBefore := func(m *message) bool { return f.kind.order(m.name, n) < 0 }
	return f.kind.isSorted() && !slices.ContainsFunc(f.ready, isBefore) && !f.isClaimedBefore(n)
}

// isClaimedBefore reports whether an item that goes before n is being claimed.
func (f *fetcher) isClaimedBefore(n nodeName) bool {
	return slices.ContainsFunc(f.claims, func(c claim) bool { return f.kind.order(c.node(), n) < 0 })
}

// due returns the first item if it is due, nil if there is none.
func (f *fetcher) due() *waitingItem {
	x := f.backlog.first()
	if x == nil || x.due.After(time.Now()) {
		return nil
	}
	return x
}

func (f *fetcher) lock() {
	for x := f.due(); x != nil && f.mayClaim(x.name); x = f.due() {
		f.backlog.pop()
		f.claimed++
		c := &lockClaim{
			place: f.place, watch: f.watch, name: x.name, id: fmt.Sprint(f.id, "-", f.claimed),
			epoch: f.watch.current(), gap: f.watch.gap(), unlocks: x.unlocks,
		}
		c.begin(f.flight)
		f.claims = append(f.claims, c)
		f.busy++
	}
}

// delete claims the items that were read.
func (f *fetcher) delete(ctx context.Context) {
	var together []*deleteClaim
	defer func() { f.submitDeletions(together) }() // also if a serializer ends the goroutine
	for f.readAhead(); len(f.prefetched) > 0 && f.mayClaim(f.prefetched[0].name); f.readAhead() {
		c := f.prefetched[0]
		if len(together)+len(f.claims) == 0 && !awaitDone(ctx, c.read.Done()) {
			return
		}
		f.prefetched = slices.Delete(f.prefetched, 0, 1)
		f.claims = append(f.claims, c)
		f.busy++
		if c.isReadable(f.life) {
			together = append(together, c)
		}
	}
}

// submitDeletions deletes the items of claims. It uses one transaction unless another consumer takes some of them.
func (f *fetcher) submitDeletions(together []*deleteClaim) {
	if len(together) > 1 && f.alone == 0 {
		deleteTogether(f.flight, f.place, together, func() { f.alone = aloneAfterFailure })
		return
	}
	for _, c := range together {
		f.alone = max(f.alone-1, 0)
		c.submit(f.flight)
	}
}

// readAhead reads twice as many items ahead as may be claimed ahead.
func (f *fetcher) readAhead() {
	for x := f.due(); x != nil; x = f.due() {
		goesBefore := f.goesBefore(x.name)
		isFar := len(f.prefetched) > 2*f.prefetch.maxClaimed() ||
			len(f.prefetched)+len(f.claims)+len(f.ready) > f.prefetch.maxRead()
		if isFar && !goesBefore {
			return
		}
		f.backlog.pop()
		c := &deleteClaim{place: f.place, name: x.name, watch: f.watch, decode: f.handler.decode, epoch: f.watch.current()}
		c.begin(f.flight)
		f.prefetched = append(f.prefetched, c)
		if goesBefore {
			slices.SortStableFunc(f.prefetched, func(a, b *deleteClaim) int { return f.kind.order(a.name, b.name) })
		}
	}
}

// goesBefore reports whether n precedes all items that are read, and all that are claimed if none is read. Nothing else
// is delivered before such an item.
func (f *fetcher) goesBefore(n nodeName) bool {
	if !f.kind.isSorted() {
		return false
	}
	if len(f.prefetched) == 0 {
		return f.mayClaim(n)
	}
	return f.kind.order(n, f.prefetched[0].name) < 0
}
