package fetch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// claim claims the first prefetched items, and reads the next ones.
func (f *Fetcher) claim(ctx context.Context) {
	if f.due() != nil && f.isYielding(time.Now()) {
		return
	}
	if f.paths.HasLocks() {
		f.lock()
		return
	}
	if len(f.claims) < (f.limit()+1)/2 { // else more of them are sent together a little later
		f.delete(ctx)
	}
	f.readAhead()
}

// limit returns how many items may be claimed before they are delivered.
func (f *Fetcher) limit() int {
	most := f.prefetch.maxClaimed() + 1
	if f.kind.Claimed > 0 {
		most = min(most, f.kind.Claimed)
	}
	return most
}

// mayClaim reports whether n is to be claimed now.
func (f *Fetcher) mayClaim(n node.Name) bool {
	if len(f.claims)+len(f.ready) < f.limit() {
		return true
	}
	isBefore := func(m *claim.Message) bool { return f.kind.Order(m.Name, n) < 0 }
	return f.kind.IsSorted() && !slices.ContainsFunc(f.ready, isBefore) && !f.isClaimedBefore(n)
}

// isClaimedBefore reports whether an item that goes before n is being claimed.
func (f *Fetcher) isClaimedBefore(n node.Name) bool {
	return slices.ContainsFunc(f.claims, func(c claim.Claim) bool { return f.kind.Order(c.Node(), n) < 0 })
}

// due returns the first item if it is due, nil if there is none.
func (f *Fetcher) due() *waitingItem {
	x := f.backlog.first()
	if x == nil || x.due.After(time.Now()) {
		return nil
	}
	return x
}

func (f *Fetcher) lock() {
	for x := f.due(); x != nil && f.mayClaim(x.name); x = f.due() {
		f.backlog.pop()
		f.claimed++
		c := &claim.LockClaim{
			Paths: f.paths, Watch: f.watch, Name: x.name, ID: fmt.Sprint(f.id, "-", f.claimed),
			Gap: f.watch.Gap(), Unlocks: x.unlocks,
		}
		c.Begin(f.flight)
		f.claims = append(f.claims, c)
		f.busy++
	}
}

// delete claims the items that were read.
func (f *Fetcher) delete(ctx context.Context) {
	var together []*claim.DeleteClaim
	defer func() { claim.DeleteTogether(f.flight, f.paths, together) }() // also if a codec ends the goroutine
	for f.readAhead(); len(f.prefetched) > 0 && f.mayClaim(f.prefetched[0].Name); f.readAhead() {
		c := f.prefetched[0]
		if len(together)+len(f.claims) == 0 && !reply.Await(ctx, c.Read.Done()) {
			return
		}
		f.prefetched = slices.Delete(f.prefetched, 0, 1)
		f.claims = append(f.claims, c)
		f.busy++
		if c.IsReadable(f.life) {
			together = append(together, c)
		}
	}
}

// readAhead reads twice as many items ahead as may be claimed ahead.
func (f *Fetcher) readAhead() {
	for x := f.due(); x != nil; x = f.due() {
		goesBefore := f.goesBefore(x.name)
		isFar := len(f.prefetched) > 2*f.prefetch.maxClaimed() ||
			len(f.prefetched)+len(f.claims)+len(f.ready) > f.prefetch.maxRead()
		if isFar && !goesBefore {
			return
		}
		f.backlog.pop()
		c := &claim.DeleteClaim{Paths: f.paths, Name: x.name, Decode: f.handler.Decode}
		c.Begin(f.flight)
		f.prefetched = append(f.prefetched, c)
		if goesBefore {
			slices.SortStableFunc(f.prefetched, func(a, b *claim.DeleteClaim) int { return f.kind.Order(a.Name, b.Name) })
		}
	}
}

// goesBefore reports whether n precedes all items that are read, and all that are claimed if none is read. Nothing else
// is delivered before such an item.
func (f *Fetcher) goesBefore(n node.Name) bool {
	if !f.kind.IsSorted() {
		return false
	}
	if len(f.prefetched) == 0 {
		return f.mayClaim(n)
	}
	return f.kind.Order(n, f.prefetched[0].Name) < 0
}
