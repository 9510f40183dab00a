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

// How long a settlement waits that was refused, before it is tried again.
const (
	firstRefusalPause = 10 * time.Millisecond
	maxRefusalPause   = 10 * time.Second
)

// settler ends the claims of locked items, many at a time: the node and its lock go in one transaction, and what is
// put back comes in the same. All that it sends is bound to the claim: it travels on the connection on which the lock
// was created, or behind a look that has found the lock of the claim. It looks first if an event says that the lock
// was deleted. Without an event, that is while the locks are not watched, or before it arrives, it cannot know that
// somebody has deleted the lock: then it deletes the lock of another claim, if there is one by now.
type settler struct {
	place *place
	watch *queueWatch
	life  context.Context // ends when close has waited long enough
	end   context.CancelFunc

	slots     chan struct{} // of those that are submitted and not settled
	submitted chan *settlement
	closing   chan struct{} // closed: nothing is paused any longer
	over      chan struct{} // closed when run has returned
	pauses    pauses

	mu     sync.Mutex
	closed bool
	open   sync.WaitGroup // settlements
}

// settlement is how a claim ends.
type settlement struct {
	m     *message
	keep  bool          // the item stays, and only its lock goes
	back  []byte        // what is put back; nil for nothing
	dead  []byte        // what is put into the dead letters; nil for nothing
	after time.Duration // the item stays locked for so long before
	once  bool          // after a refusal the item stays, and its lock goes

	cause   context.Context //nolint:containedctx // of its span, nil if nobody traces
	done    func(error)     // called once
	refused func(error)     // called for each new cause of a refusal; may be nil

	notified  sync.Once
	sent      builders.Future[[]callbacks.OperationResult]
	hasSlot   bool
	uncertain bool // it may have been applied
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

// run waits for the answers, in order. What is not settled with the first answer goes on by itself.
func (s *settler) run() {
	defer close(s.over)
	for x := range s.submitted {
		_, err := x.sent.Wait(s.life)
		if err == nil {
			s.finish(x, s.applied(x))
			continue
		}
		x.uncertain = mayBeApplied(err)
		go s.retry(x, err)
	}
}

// settle submits x. It waits while there are too many under way, unless x has to wait before.
func (s *settler) settle(x *settlement) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		x.notify(ErrClosed)
		return
	}
	s.open.Add(1)
	s.mu.Unlock()
	if x.after == 0 {
		s.submit(x)
		return
	}
	s.pause(x, x.after)
}

func (x *settlement) notify(err error) { x.notified.Do(func() { x.done(err) }) }

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
	case x.m.epoch != s.watch.current(): // another item may have the name by now
		x.keep = true
	}
	s.send(x.m.lock.flight, x)
	s.submitted <- x
}

// close waits until all is settled, or ctx ends: then those that are not fail with ErrClosed. They go on as long as
// their session. Nothing is submitted after it.
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
}

// finish is the end of x.
func (s *settler) finish(x *settlement, err error) {
	s.watch.forget(x.m.lock)
	x.notify(err)
	if x.hasSlot {
		<-s.slots
	}
	s.open.Done()
}

// send submits x with what belongs to it.
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

// applied returns the error of x, which was applied: if the path was deleted since it was read, it was perhaps another
// item that was deleted.
func (s *settler) applied(x *settlement) error {
	if !x.keep && x.m.lock.gap != s.watch.gap() {
		s.watch.verify(s.life)
	}
	if !x.keep && x.m.epoch != s.watch.current() {
		return errPathDeleted
	}
	return nil
}

// retry goes on with x after err, or after a pause, until it is settled, pauses, or its session has ended.
func (s *settler) retry(x *settlement, err error) {
	session := telemetry.Untraced(x.m.lock.session.Context())
	stop := context.AfterFunc(s.life, func() { x.notify(ErrClosed) })
	defer stop()
	for {
		if session.Err() != nil {
			s.finish(x, s.sessionLost(x))
			return
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
		case isUnanswered(err):
			_ = awaitConnection(session, s.place.client)
		case x.once && !x.keep && isRefusal(err):
			x.reportRefusal(err)
			x.keep = true
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

// reportRefusal reports a refusal if its cause is new.
func (x *settlement) reportRefusal(refusal error) {
	if x.refused != nil && x.causes.isNew(refusal) {
		x.refused(errtext.Wrap(refusal, "queue", "settle"))
	}
}

// giveUp gives the item to others, which nobody can settle here. Close waits for the first try. Further ones go on as
// long as the session, which would keep the item locked.
func (s *settler) giveUp(x *settlement) {
	x.notify(ErrClosed)
	x.keep = true
	session := telemetry.Untraced(x.m.lock.session.Context())
	isSettled, err := s.resend(session, x)
	s.finish(x, ErrClosed)
	for tries := 1; !isSettled && session.Err() == nil && !errors.Is(err, framework.ErrClosed); tries++ {
		if isUnanswered(err) {
			_ = awaitConnection(session, s.place.client)
		} else {
			_ = waitqueue.Pause(session, doubled(firstRefusalPause, maxRefusalPause, tries))
		}
		isSettled, err = s.resend(session, x)
	}
}

// resend settles x on a connection on which it finds the lock of the claim. Without that the error says what to try
// next.
func (s *settler) resend(session context.Context, x *settlement) (isSettled bool, err error) {
	flight := builders.Pipelined(session)
	held, err := s.place.readLock(flight, x.m.name)
	if err != nil {
		return false, err
	}
	if held != x.m.lock.id {
		if !x.uncertain {
			return true, ErrLockLost // somebody has deleted it
		}
		return true, nil
	}
	stat, err := s.place.client.CheckExists().ForPath(flight, s.place.node(x.m.name))
	switch {
	case err != nil:
		return false, err
	case stat == nil || stat.Czxid != x.m.stat.Czxid: // it is gone: with the path, or somebody has deleted it
		x.keep = true
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
		x.uncertain = x.uncertain || mayBeApplied(err)
		return false, err
	}
	if stat, err := path.Wait(session); !x.keep && err == nil && stat != nil && stat.Czxid > x.m.stat.Czxid {
		return true, errPathDeleted // since the look
	}
	return true, nil
}

// sessionLost ends x after the lock was lost with its session: another consumer may have the item. What is consumed is
// deleted all the same if nobody has it locked, so that not one more gets it.
func (s *settler) sessionLost(x *settlement) error {
	switch {
	case x.keep:
		return nil
	case x.back != nil || x.dead != nil:
		return ErrLockLost
	}
	_ = retryOutage(s.life, s.place.client, func() error { return s.deleteConsumed(x) })
	return ErrLockLost
}

func (s *settler) deleteConsumed(x *settlement) error {
	flight := builders.Pipelined(s.life)
	held, err := s.place.readLock(flight, x.m.name)
	if err != nil || held != "" {
		return err
	}
	stat, err := s.place.client.CheckExists().ForPath(flight, s.place.node(x.m.name))
	if err != nil || stat == nil || stat.Czxid != x.m.stat.Czxid {
		return err
	}
	return s.place.client.Delete().WithVersion(stat.Version).Quietly().ForPath(flight, s.place.node(x.m.name))
}
