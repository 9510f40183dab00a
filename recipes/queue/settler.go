package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// Bounds of the pause before a refused settlement is tried again.
const (
	firstRefusalPause = 10 * time.Millisecond
	maxRefusalPause   = 10 * time.Second
)

// settler ends the claims of locked items, many at a time: the node and its lock are deleted in one transaction, which
// also creates the nodes of items that are put back. Every request is bound to the claim: it is sent on the connection
// on which the lock was created, or after a read that has found the lock of the claim. The settler reads the lock first
// if an event reports that the lock was deleted. An event may be missing while the locks are not watched, or arrive
// late. The settler cannot detect then that another client has deleted the lock, and deletes the lock of another claim,
// if there is one by now.
type settler struct {
	place *place
	watch *queueWatch
	life  context.Context // ends when close has waited long enough
	end   context.CancelFunc

	slots     chan struct{} // of the settlements that are submitted and not settled
	submitted chan *settlement
	closing   chan struct{} // closed when pauses end
	over      chan struct{} // closed when run has returned
	pauses    pauses

	mu     sync.Mutex
	closed bool
	open   sync.WaitGroup // settlements
	untold sync.WaitGroup // settlements whose outcome is not known to their callers
}

// settlement is the end of a claim.
type settlement struct {
	m     *message
	keep  bool          // the item stays, and only its lock is deleted
	back  []byte        // data to put back; nil for nothing
	dead  []byte        // data for the dead letters; nil for nothing
	after time.Duration // how long the item stays locked before
	once  bool          // after a refusal the item stays, and its lock is deleted

	cause   context.Context //nolint:containedctx // of its span, nil without tracing
	done    func(error)     // called once
	refused func(error)     // called for each new cause of a refusal; may be nil

	notified  sync.Once
	sent      builders.Future[[]callbacks.OperationResult]
	hasSlot   bool
	uncertain bool // it may have been applied
	gone      bool // somebody else has deleted the item that was to be put back
	losses    int  // how often the answer was lost
	refusals  int
	causes    causes
}

func newSettler(p *place, w *queueWatch, window int) *settler {
	return &settler{
		place: p, watch: w, slots: make(chan struct{}, window), submitted: make(chan *settlement, window),
		closing: make(chan struct{}), over: make(chan struct{}),
		pauses: pauses{stops: make(map[*settlement]func())},
	}
}

func (s *settler) start(life context.Context) {
	s.life, s.end = context.WithCancel(life)
	go s.run()
}

// run takes the answers, in order. A settlement that is not settled with its first answer continues on its own.
func (s *settler) run() {
	defer close(s.over)
	for x := range s.submitted {
		_, err := x.sent.Wait(s.life)
		if err == nil {
			s.finish(x, s.applied(x))
			continue
		}
		x.noteLoss(err)
		go s.retry(x, err)
	}
}

// settle submits x. It waits while too many settlements are under way, unless x is to be paused first.
func (s *settler) settle(x *settlement) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		x.done(ErrClosed)
		return
	}
	s.open.Add(1)
	s.untold.Add(1)
	s.mu.Unlock()
	if x.after == 0 {
		s.submit(x)
		return
	}
	s.pause(x, x.after)
}

// notify publishes the outcome of x.
func (s *settler) notify(x *settlement, err error) {
	x.notified.Do(func() {
		defer s.untold.Done()
		x.done(err)
	})
}

// submit sends x on the connection of its claim.
func (s *settler) submit(x *settlement) {
	select {
	case s.slots <- struct{}{}:
		x.hasSlot = true
	case <-s.life.Done():
		go s.retry(x, framework.ErrNotSent)
		return
	}
	switch {
	case x.m.lock.session.Context().Err() != nil:
		go s.retry(x, zk.ErrSessionExpired)
		return
	case x.m.lock.gap != s.watch.gap(), x.m.lock.deleted.Load():
		go s.retry(x, framework.ErrNotSent)
		return
	case x.m.epoch != s.watch.current(): // the name may belong to another item now
		x.noteDeletion()
	}
	s.send(x.m.lock.flight, x)
	s.submitted <- x
}

// close waits until everything is settled, or ctx ends. Then the other settlements fail with ErrClosed, and continue
// until their session ends. Nothing is submitted after close.
func (s *settler) close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.closing)
	s.endPauses()
	settled := make(chan struct{})
	go func() {
		s.open.Wait()
		close(s.submitted)
		close(settled)
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	}
	s.end()
	s.untold.Wait() // this is soon
}

// errGone is the error of an item that is not put back.
var errGone = errtext.Wrap(zk.ErrNoNode, "queue", "somebody has deleted the item")

// noteDeletion records that somebody else has deleted the item: nothing but its lock is left.
func (x *settlement) noteDeletion() {
	x.gone = x.gone || !x.keep && (x.back != nil || x.dead != nil)
	x.keep = true
}

// finish ends x with an error or nil.
func (s *settler) finish(x *settlement, err error) {
	if err == nil && x.gone {
		err = errGone
	}
	s.watch.forget(x.m.lock)
	s.notify(x, err)
	if x.hasSlot {
		<-s.slots
	}
	s.open.Done()
}

// send submits x with all its operations.
func (s *settler) send(flight context.Context, x *settlement) {
	op := s.place.client.TransactionOp()
	var ops []builders.TransactionOperation
	if !x.keep {
		ops = append(ops, op.Delete().ForPath(s.place.node(x.m.name)))
		create := op.Create().WithMode(builders.PersistentSequential)
		if x.back != nil {
			ops = append(ops, create.ForPath(zkpath.Join(s.place.path, x.m.name.prefix), x.back))
		}
		if x.dead != nil {
			ops = append(ops, create.ForPath(zkpath.Join(s.place.deadLetters, x.m.name.prefix), x.dead))
		}
	}
	ops = append(ops, op.Delete().ForPath(s.place.lock(x.m.name)))
	if x.cause != nil {
		flight = telemetry.Traced(flight, x.cause)
	}
	x.sent = s.place.client.Transaction().Submit(flight, ops...)
}

// applied returns the error of x, which was applied. If the path was deleted after the read, x may have deleted another
// item.
func (s *settler) applied(x *settlement) error {
	if !x.keep && x.m.lock.gap != s.watch.gap() {
		s.watch.verify(s.life)
	}
	if !x.keep && x.m.epoch != s.watch.current() {
		return errPathDeleted
	}
	return nil
}

// retry continues with x after err, or after a pause, until it is settled, pauses, or its session has ended.
func (s *settler) retry(x *settlement, err error) {
	session := telemetry.Untraced(x.m.lock.session.Context())
	stop := context.AfterFunc(s.life, func() { s.notify(x, ErrClosed) })
	defer stop()
	for {
		if session.Err() != nil {
			s.finish(x, s.sessionLost(x))
			return
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
		case x.once && !x.keep && isRefusal(err):
			x.reportRefusal(err)
			x.keep = true
		case x.tooLarge(err) != nil: // the item stays
			x.reportRefusal(x.tooLarge(err))
			x.keep = true
			s.pause(x, maxRefusalPause)
			return
		case isUnanswered(err):
			_ = waitqueue.AwaitConnection(session, s.place.client)
		case s.pauseAfter(x, err):
			return
		default:
			s.giveUp(x)
			return
		}
		var isSettled bool
		if isSettled, err = s.resend(session, x); isSettled {
			s.finish(x, err)
			return
		}
	}
}

// noteLoss records that the answer to x may be lost.
func (x *settlement) noteLoss(err error) {
	if mayBeApplied(err) {
		x.uncertain = true
		x.losses++
	}
}

// tooLarge returns the reason, after err, why x is too large to be sent with what it puts back. It returns nil if x is
// not.
func (x *settlement) tooLarge(err error) error {
	bytes := len(x.back) + len(x.dead)
	switch {
	case x.keep:
	case errors.Is(err, framework.ErrRequestTooLarge):
		return err
	case x.losses >= maxLosses && bytes > suspectSize:
		return errLostEachTime(bytes)
	}
	return nil
}

// reportRefusal reports a refusal if its cause is new.
func (x *settlement) reportRefusal(refusal error) {
	if x.refused != nil && x.causes.isNew(refusal) {
		x.refused(errtext.Wrap(refusal, "queue", "settle"))
	}
}

// giveUp releases an item that cannot be settled here, for other consumers. Close waits for the first try. Further
// tries continue until the end of the session, which would keep the item locked.
func (s *settler) giveUp(x *settlement) {
	s.notify(x, ErrClosed)
	x.keep = true
	session := telemetry.Untraced(x.m.lock.session.Context())
	isSettled, err := s.resend(session, x)
	s.finish(x, ErrClosed)
	for tries := 1; !isSettled && session.Err() == nil && !errors.Is(err, framework.ErrClosed); tries++ {
		if isUnanswered(err) {
			_ = waitqueue.AwaitConnection(session, s.place.client)
		} else {
			_ = waitqueue.Pause(session, doubled(firstRefusalPause, maxRefusalPause, tries))
		}
		isSettled, err = s.resend(session, x)
	}
}

// resend settles x on a connection on which it finds the lock of the claim. If it does not settle x, the error selects
// the next try.
func (s *settler) resend(session context.Context, x *settlement) (isSettled bool, err error) {
	flight := builders.Pipelined(session)
	held, owner, err := s.place.readLock(flight, x.m.name)
	if err != nil {
		return false, err
	}
	// A lock that was created in an earlier session may end between the read and the deletion, which would then delete
	// the lock of another. It ends with its session.
	if held != x.m.lock.id || owner != x.m.lock.session.ID() {
		if !x.uncertain {
			return true, ErrLockLost // another client has deleted it
		}
		return true, nil
	}
	stat, err := s.place.client.CheckExists().ForPath(flight, s.place.node(x.m.name))
	switch {
	case err != nil:
		return false, err
	case stat == nil || stat.Czxid != x.m.stat.Czxid: // with the path, or deleted by another client
		x.noteDeletion()
	}
	if x.dead != nil {
		if err := s.place.ensure(builders.OutOfFlight(flight)); err != nil {
			return false, err
		}
	}
	s.send(flight, x)
	path := s.place.client.CheckExists().Submit(flight, s.place.path)
	_, err = x.sent.Wait(session)
	if err != nil {
		x.noteLoss(err)
		return false, err
	}
	if stat, err := path.Wait(session); !x.keep && err == nil && stat != nil && stat.Czxid > x.m.stat.Czxid {
		return true, errPathDeleted // after the check
	}
	return true, nil
}

// sessionLost ends x after the lock was lost with its session: another consumer may have the item. A consumed item is
// deleted nevertheless if no consumer has it locked, so that it is not delivered once more.
func (s *settler) sessionLost(x *settlement) error {
	switch {
	case x.keep:
		return nil
	case x.back != nil || x.dead != nil:
		return ErrLockLost
	}
	_ = waitqueue.RetryOutage(s.life, s.place.client, func() error { return s.deleteConsumed(x) })
	return ErrLockLost
}

func (s *settler) deleteConsumed(x *settlement) error {
	flight := builders.Pipelined(s.life)
	held, _, err := s.place.readLock(flight, x.m.name)
	if err != nil || held != "" {
		return err
	}
	stat, err := s.place.client.CheckExists().ForPath(flight, s.place.node(x.m.name))
	if err != nil || stat == nil || stat.Czxid != x.m.stat.Czxid {
		return err
	}
	return s.place.client.Delete().WithVersion(stat.Version).Quietly().ForPath(flight, s.place.node(x.m.name))
}
