package queue

import (
	"context"
	"time"
)

// await waits until there may be something to claim.
func (f *fetcher) await(ctx context.Context) {
	f.busy = 0
	until := earlier(f.quarantine.first, f.checkAt)
	if x := f.backlog.first(); x != nil {
		until = earlier(until, later(x.due, f.yielding.until))
	} else {
		f.yielding.until = time.Time{}
	}
	f.watch.await(ctx, until)
	if now := time.Now(); !now.Before(f.checkAt) {
		f.checkAt = now.Add(checkPause)
		f.checkCount(ctx)
	}
}

// checkCount looks for items without an event: a server does not report nodes that may not be read.
func (f *fetcher) checkCount(ctx context.Context) {
	stat, err := f.place.client.CheckExists().Submit(f.flight, f.place.path).Wait(ctx)
	if err == nil && stat != nil {
		f.takeNews()
		f.stale = f.stale || int(stat.NumChildren) != len(f.backlog.items)+f.others
	}
}

// earlier returns the earlier time of those that are not zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isYielding reports whether to leave the first item to a consumer that was recently faster.
func (f *fetcher) isYielding(now time.Time) bool {
	return f.watching && len(f.claims)+len(f.prefetched) == 0 && f.yielding.isYielding(now)
}
