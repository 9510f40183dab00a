package fetch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
	"github.com/gocurator/curator/zkpath"
)

// Fetcher claims the items of a queue, one after the other, while Next runs.
//
// A long queue is listed once for all its items, and again when all of them are claimed. The items and locks are
// watched instead when the queue is empty, and always where new items may precede others: then changes arrive without a
// request. The next items are read ahead and claimed ahead, in one flight.
type Fetcher struct {
	// FailsWithoutChroot makes Next return the error of a missing chroot, which it reports otherwise. Set it before Start.
	FailsWithoutChroot bool

	paths   *node.Paths
	watch   *claim.Watch
	kind    node.Kind
	handler Handler
	root    context.Context // of the requests, which may continue after life
	life    context.Context // bounds the wait for answers
	id      string          // of the claims, with a number

	turn chan struct{} // held during Next; it guards the fields below

	mode        mode
	unsupported bool               // in a session: the server has no watches of all items
	session     *framework.Session // that session
	backlog     backlog
	misses      int // items in a row that others have taken first
	yielding    yielding

	isOpen     bool
	flight     context.Context
	listing    *listing // the last one
	quarantine claim.Quarantine
	prefetch   prefetch
	prefetched []*claim.DeleteClaim // being read, in order
	claims     []claim.Claim        // in the order in which they were submitted
	ready      []*claim.Message
	claimed    int64        // number of claims so far, for the ids
	others     int          // nodes in the last list that are not items
	checkAt    time.Time    // when to count the nodes if there is no event before
	busy       int          // claims since the last wait for one
	failures   int          // in a row
	reported   reply.Causes // since the queue could be listed
}

// Handler has what depends on the type of a queue's items.
type Handler struct {
	// Decode returns what a node holds, or the error of an item that cannot be read.
	Decode func(data []byte) (contents any, err error)
	// Corrupt handles an item that cannot be read.
	Corrupt func(m *claim.Message, cause error, isNew bool) error
	// Release deletes the lock of an item.
	Release func(m *claim.Message)
	// ClaimLost counts an item that another consumer has taken first.
	ClaimLost func()
	// Report reports an error of the background.
	Report func(ctx context.Context, err error)
	// ReportItem reports an error about an item.
	ReportItem func(ctx context.Context, n node.Name, data []byte, err error)
}

// Limits for the change between lists and watches, and for yielding to others.
const (
	maxWatched = 512 // with more items, a list costs less than events
	maxBusy    = 256 // items in a row without waiting
	checkPause = time.Minute
)

// New returns a fetcher that claims so many items ahead, at most.
func New(k node.Kind, w *claim.Watch, prefetchLimit int, h Handler) *Fetcher {
	f := &Fetcher{
		paths: w.Paths, watch: w, kind: k, handler: h, id: zkpath.NewProtectionID(), turn: make(chan struct{}, 1),
		backlog:  backlog{kind: k},
		prefetch: prefetch{limit: prefetchLimit},
	}
	f.backlog.clear()
	return f
}

// Start starts the fetcher; it does nothing before Next.
func (f *Fetcher) Start(root, life context.Context) { f.root, f.life = root, life }

// Next waits for an item that is ours and returns it. It fails with the cause of the end of ctx, and when the client is
// closed.
func (f *Fetcher) Next(ctx context.Context) (*claim.Message, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f.open()
	f.prefetch.consumed(time.Now())
	for {
		f.noteAll(f.takeEvents())
		f.endQuarantines()
		if m := f.pick(); m != nil {
			f.prefetch.taken(time.Now())
			return m, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		err := f.step(ctx)
		switch {
		case reply.IsClientClosed(err):
			return nil, err
		case f.FailsWithoutChroot && errors.Is(err, framework.ErrNoChroot):
			f.resolve()
			return nil, err
		case err != nil && ctx.Err() == nil:
			f.recoverFrom(ctx, err)
		}
	}
}

func (f *Fetcher) open() {
	if f.isOpen {
		return
	}
	f.isOpen = true
	f.flight = builders.Pipelined(f.root)
}

// takeEvents returns the recorded events. It returns none if they were not recorded from the last list on.
func (f *Fetcher) takeEvents() []claim.Event {
	all, missed := f.watch.Take()
	if missed {
		f.mode.doubt()
	}
	if f.mode != watched {
		return nil
	}
	return all
}

func (f *Fetcher) noteAll(all []claim.Event) {
	for _, ev := range all {
		f.note(ev)
		if ev.What == claim.Deleted {
			f.quarantine.Forget(ev.Name)
		} else {
			f.takeQuarantined(ev.Name)
		}
	}
}

// note applies an event.
func (f *Fetcher) note(ev claim.Event) {
	if f.backlog.note(ev) {
		f.yielding.lost()
	}
}

// pick returns the next item, nil if it must still be claimed.
func (f *Fetcher) pick() *claim.Message {
	if f.paths.HasLocks() {
		f.ready = slices.DeleteFunc(f.ready, f.isLost)
	}
	if len(f.ready) == 0 {
		return nil
	}
	if f.kind.IsSorted() {
		slices.SortStableFunc(f.ready, func(a, b *claim.Message) int { return f.kind.Order(a.Name, b.Name) })
		if f.isOvertaken(f.ready[0].Name) {
			return nil
		}
	}
	m := f.ready[0]
	f.ready = slices.Delete(f.ready, 0, 1)
	return m
}

// isLost reports whether a locked item may no longer be ours.
func (f *Fetcher) isLost(m *claim.Message) bool {
	if m.Lock.Session.Context().Err() == nil && !m.Lock.Deleted.Load() {
		return false
	}
	f.handler.Release(m)
	return true
}

// isOvertaken reports whether an item that is not claimed yet precedes n.
func (f *Fetcher) isOvertaken(n node.Name) bool {
	if f.isClaimedBefore(n) || len(f.prefetched) > 0 && f.kind.Order(f.prefetched[0].Name, n) < 0 {
		return true
	}
	x := f.due()
	return x != nil && f.kind.Order(x.name, n) < 0
}

// step submits claims and takes the answer to the first one. Without any claim it waits for an item.
func (f *Fetcher) step(ctx context.Context) error {
	if err := f.refresh(ctx); err != nil {
		return err
	}
	f.failures = 0
	clear(f.reported)
	if !f.mode.isKnown() {
		return nil
	}
	f.claim(ctx)
	switch {
	case len(f.claims) > 0:
		return f.takeReply(ctx)
	case len(f.prefetched) == 0 && f.isAwaited(): // none is due
		f.await(ctx)
	}
	return nil
}

// isAwaited reports whether an event or the time will bring the next item, without a request.
func (f *Fetcher) isAwaited() bool {
	return f.mode == watched || f.unsupported && (f.mode == empty || f.backlog.free > 0)
}
