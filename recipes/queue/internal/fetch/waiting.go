package fetch

import (
	"context"
	"time"
)

// await waits until there may be something to claim.
func (f *Fetcher) await(ctx context.Context) {
	f.busy = 0
	until := earlier(f.quarantine.First, f.checkAt)
	if x := f.backlog.first(); x != nil {
		until = earlier(until, later(x.due, f.yielding.until))
	} else {
		f.yielding.until = time.Time{}
	}
	f.watch.Await(ctx, until)
	if now := time.Now(); !now.Before(f.checkAt) {
		f.checkAt = now.Add(checkPause)
		f.checkCount(ctx)
	}
}

// checkCount looks for items without an event: a server does not report nodes that may not be read.
func (f *Fetcher) checkCount(ctx context.Context) {
	stat, err := f.paths.Client.CheckExists().Submit(f.flight, f.paths.Queue).Wait(ctx)
	if err == nil && stat != nil {
		f.noteAll(f.takeEvents())
		f.endQuarantines()
		if int(stat.NumChildren) != len(f.backlog.items)+f.others {
			f.mode.doubt()
		}
	}
}

// earlier returns the earlier time of those that are not zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later returns the later time.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isYielding reports whether to leave the first item to a consumer that was recently faster.
func (f *Fetcher) isYielding(now time.Time) bool {
	return f.mode.isWatching() && len(f.claims)+len(f.prefetched) == 0 && f.yielding.isYielding(now)
}
