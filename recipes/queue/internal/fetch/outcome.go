package fetch

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// takeReply waits for the reply to the first claim and applies it.
func (f *Fetcher) takeReply(ctx context.Context) error {
	c := f.claims[0]
	waits := !reply.IsClosed(c.Done())
	if waits && !reply.Await(ctx, c.Done()) {
		return nil
	}
	m, err := c.End(f.life)
	if reply.IsUnanswered(err) || reply.IsClientClosed(err) {
		return err
	}
	f.claims[0] = nil
	f.claims = f.claims[1:]
	isOurs, err := f.outcome(c, m, err)
	f.adjustPrefetch(isOurs, waits)
	if f.misses++; isOurs {
		f.misses = 0
	}
	if !f.mode.isWatching() && f.isUsedUp() {
		f.backlog.clear()
		f.misses = 0
	}
	return err
}

// outcome applies the result of a claim, and reports whether an item is ours now.
func (f *Fetcher) outcome(c claim.Claim, m *claim.Message, err error) (isOurs bool, _ error) {
	x := f.backlog.items[c.Node().Whole]
	if err == nil && m.Lock != nil {
		err = f.decode(m)
	}
	switch {
	case err == nil:
		f.prefetch.read(len(m.Data))
		f.ready = append(f.ready, m)
		return true, nil
	case claim.IsCorrupt(err):
		f.keepCorrupt(m, err)
		return true, nil
	case m != nil && m.Lock != nil:
		f.handler.Release(m)
	}
	switch {
	case errors.Is(err, node.ErrTaken):
		f.handler.ClaimLost()
		f.yielding.lost()
		if l, ok := c.(*claim.LockClaim); ok && x != nil && x.unlocks != l.Unlocks { // the lock was deleted meanwhile
			f.backlog.add(x)
		}
	case errors.Is(err, node.ErrChanged):
		f.backlog.add(x)
	case errors.Is(err, node.ErrUncertain):
		f.handler.ReportItem(f.root, c.Node(), m.Data, err)
		return true, nil
	case errors.Is(err, zk.ErrNoNode): // the path of the locks
		f.mode.doubt()
		return true, f.paths.Create(f.life)
	case errors.Is(err, framework.ErrTooManyPending):
		f.backlog.add(x)
		return true, err
	default:
		f.quarantineItem(c.Node(), nil, err)
	}
	return false, nil
}

// adjustPrefetch raises or lowers the prefetch. It depends on whether the item was ours, and whether the answer had to
// be waited for.
func (f *Fetcher) adjustPrefetch(ours, waited bool) {
	switch {
	case !ours: // the items that were read ahead may be gone, too
		f.prefetch.missed()
		f.forgetPrefetched()
	case waited:
		f.prefetch.waited()
	}
}

// forgetPrefetched discards the items that were read ahead, so that they are read again.
func (f *Fetcher) forgetPrefetched() {
	for _, c := range f.prefetched {
		f.backlog.add(f.backlog.items[c.Name.Whole])
	}
	f.prefetched = nil
}

// isUsedUp reports whether a new list is cheaper than continuing with one that has so many names left, after so many
// misses in a row.
func (f *Fetcher) isUsedUp() bool { return f.misses > 16+f.backlog.free/32 }
