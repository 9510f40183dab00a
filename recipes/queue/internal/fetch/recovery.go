package fetch

import (
	"context"
	"errors"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// recoverFrom continues after an error: it resolves the claims, and starts with a new list.
func (f *Fetcher) recoverFrom(ctx context.Context, err error) {
	f.mode.doubt()
	if !waitqueue.IsOutage(err) {
		if err = errtext.Wrap(err, "queue", "%s", f.paths.Queue); f.reported.IsNew(err) {
			f.handler.Report(f.root, err)
		}
		_ = waitqueue.Pause(ctx, reply.Doubled(waitqueue.FailurePause, claim.MaxQuarantine, f.failures))
		f.failures++
	} else if waitqueue.AwaitConnection(ctx, f.paths.Client) != nil {
		return // next returns the cause
	}
	f.resolve()
	f.flight = builders.Pipelined(f.root)
	if f.session != f.paths.Client.Session() { // its servers may have watches of all items
		f.unsupported = false
	}
}

// resolve ends all claims and finds out their outcomes.
func (f *Fetcher) resolve() {
	for _, c := range f.claims {
		m, err := c.Resolve(f.life)
		switch {
		case m == nil:
		case err == nil, claim.IsCorrupt(err):
			_, _ = f.outcome(c, m, err)
		case errors.Is(err, node.ErrUncertain):
			f.handler.ReportItem(f.root, m.Name, m.Data, err)
		case m.Lock != nil:
			f.handler.Release(m)
		}
	}
	f.claims = nil
	f.mode.doubt()
}

// Drain ends the fetching, and returns an item that is ours and that next did not return, nil if there is none.
func (f *Fetcher) Drain() *claim.Message {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	if f.isOpen {
		f.resolve()
		f.prefetched, f.listing, f.isOpen = nil, nil, false
		f.backlog.clear()
		f.unwatch()
	}
	if len(f.ready) == 0 {
		return nil
	}
	m := f.ready[0]
	f.ready = f.ready[1:]
	return m
}
