package claim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
	"github.com/gocurator/curator/zkpath"
)

// Bounds of the pause before a refused settlement is tried again.
const (
	firstRefusalPause = 10 * time.Millisecond
	maxRefusalPause   = 10 * time.Second
)

// Settler ends the claims of locked items, many at a time: the node and its lock are deleted in one transaction, which
// also creates the nodes of items that are put back. Every request is bound to the claim: it is sent on the connection
// on which the lock was created, or after a read that has found the lock of the claim. The settler reads the lock first
// if an event reports that the lock was deleted. An event may be missing while the locks are not watched, or arrive
// late. The settler cannot detect then that another client has deleted the lock, and deletes the lock of another claim,
// if there is one by now.
type Settler struct {
	paths *node.Paths
	watch *Watch
	life  context.Context // ends when close has waited long enough
	end   context.CancelFunc

	slots     chan struct{} // of the settlements that are submitted and not settled
	submitted chan *Settlement
	closing   chan struct{} // closed when pauses end
	over      chan struct{} // closed when run has returned
	pauses    pauses

	mu         sync.Mutex
	closed     bool
	open       sync.WaitGroup // settlements
	unreported sync.WaitGroup // settlements whose outcome is not known to their callers
}

// NewSettler returns a settler with so many settlements under way, at most.
func NewSettler(p *node.Paths, w *Watch, window int) *Settler {
	return &Settler{
		paths: p, watch: w, slots: make(chan struct{}, window), submitted: make(chan *Settlement, window),
		closing: make(chan struct{}), over: make(chan struct{}),
		pauses: pauses{stops: make(map[*Settlement]func())},
	}
}

// Start starts the settler.
func (s *Settler) Start(life context.Context) {
	s.life, s.end = context.WithCancel(life)
	go s.run()
}

// run takes the answers, in order. A settlement that is not settled with its first answer continues on its own.
func (s *Settler) run() {
	defer close(s.over)
	for x := range s.submitted {
		_, err := x.sent.Wait(s.life)
		if err == nil {
			s.finish(x, nil)
			continue
		}
		x.noteLoss(err)
		go s.retry(x, err)
	}
}

// Settle submits x. It waits while too many settlements are under way, unless x is to be paused first.
func (s *Settler) Settle(x *Settlement) {
	s.mu.Lock()
	if s.closed { // the consumer has returned too late
		s.mu.Unlock()
		x.Done(node.ErrClosed)
		x.Keep = true
		go s.release(x, framework.ErrNotSent)
		return
	}
	s.open.Add(1)
	s.unreported.Add(1)
	s.mu.Unlock()
	if x.After == 0 {
		s.submit(x)
		return
	}
	s.pause(x, x.After)
}

// notify publishes the outcome of x.
func (s *Settler) notify(x *Settlement, err error) {
	x.notified.Do(func() {
		defer s.unreported.Done()
		x.Done(err)
	})
}

// submit sends x on the connection of its claim.
func (s *Settler) submit(x *Settlement) {
	select {
	case s.slots <- struct{}{}:
		x.hasSlot = true
	case <-s.life.Done():
		go s.retry(x, framework.ErrNotSent)
		return
	}
	switch {
	case x.Message.Lock.Session.Context().Err() != nil:
		go s.retry(x, zk.ErrSessionExpired)
		return
	case x.Message.Lock.gap != s.watch.Gap(), x.Message.Lock.Deleted.Load():
		go s.retry(x, framework.ErrNotSent)
		return
	}
	s.send(x.Message.Lock.flight, x)
	s.submitted <- x
}

// Close waits until everything is settled, or ctx ends. Then the other settlements fail with ErrClosed, and continue
// until their session ends. Nothing is submitted after close.
func (s *Settler) Close(ctx context.Context) {
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
	s.unreported.Wait() // this is soon
}

// finish ends x with an error or nil.
func (s *Settler) finish(x *Settlement, err error) {
	if err == nil && x.gone {
		err = errGone
	}
	s.watch.forget(x.Message.Lock)
	s.notify(x, err)
	if x.hasSlot {
		<-s.slots
	}
	s.open.Done()
}

// send submits x with all its operations.
func (s *Settler) send(flight context.Context, x *Settlement) {
	op := s.paths.Client.TransactionOp()
	var ops []builders.TransactionOperation
	if !x.Keep {
		ops = append(ops, op.Delete().ForPath(s.paths.Item(x.Message.Name)))
		create := op.Create().WithMode(builders.PersistentSequential)
		if x.Back != nil {
			ops = append(ops, create.ForPath(zkpath.Join(s.paths.Queue, x.Message.Name.Prefix), x.Back))
		}
		if x.Dead != nil {
			ops = append(ops, create.ForPath(zkpath.Join(s.paths.DeadLetters, x.Message.Name.Prefix), x.Dead))
		}
	}
	ops = append(ops, op.Delete().ForPath(s.paths.Lock(x.Message.Name)))
	if x.Cause != nil {
		flight = telemetry.Traced(flight, x.Cause)
	}
	x.sent = s.paths.Client.Transaction().Submit(flight, ops...)
}

// retry continues with x after err, or after a pause, until it is settled, pauses, or its session has ended.
func (s *Settler) retry(x *Settlement, err error) {
	session := telemetry.Untraced(x.Message.Lock.Session.Context())
	stop := context.AfterFunc(s.life, func() { s.notify(x, node.ErrClosed) })
	defer stop()
	for {
		if session.Err() != nil {
			s.finish(x, s.sessionLost(x))
			return
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
		case x.Once && !x.Keep && reply.IsRefusal(err):
			x.reportRefusal(err)
			x.Keep = true
		case x.tooLarge(err) != nil: // the item stays
			x.reportRefusal(x.tooLarge(err))
			x.Keep = true
			s.pause(x, maxRefusalPause)
			return
		case reply.IsUnanswered(err), reply.IsThrottled(err):
			_ = waitqueue.AwaitConnection(session, s.paths.Client)
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

// giveUp releases an item that cannot be settled here, for other consumers. Close waits for the first try. Further
// tries continue until the end of the session, which would keep the item locked.
func (s *Settler) giveUp(x *Settlement) {
	s.notify(x, node.ErrClosed)
	x.Keep = true
	session := telemetry.Untraced(x.Message.Lock.Session.Context())
	isSettled, err := s.resend(session, x)
	s.finish(x, node.ErrClosed)
	if !isSettled {
		s.release(x, err)
	}
}

// release deletes the lock of x, after err, until that succeeds or its session has ended.
func (s *Settler) release(x *Settlement, err error) {
	session := telemetry.Untraced(x.Message.Lock.Session.Context())
	isSettled := false
	for tries := 1; !isSettled && session.Err() == nil && !reply.IsClientClosed(err); tries++ {
		if reply.IsUnanswered(err) {
			_ = waitqueue.AwaitConnection(session, s.paths.Client)
		} else {
			_ = waitqueue.Pause(session, reply.Doubled(firstRefusalPause, maxRefusalPause, tries))
		}
		isSettled, err = s.resend(session, x)
	}
}

// resend settles x on a connection on which it finds the lock of the claim. If it does not settle x, the error selects
// the next try.
func (s *Settler) resend(session context.Context, x *Settlement) (isSettled bool, err error) {
	flight := builders.Pipelined(session)
	held, owner, err := ReadLock(flight, s.paths, x.Message.Name)
	if err != nil {
		return false, err
	}
	// A lock that was created in an earlier session may end between the read and the deletion, which would then delete
	// the lock of another. It ends with its session.
	if held != x.Message.Lock.ID || owner != x.Message.Lock.Session.ID() {
		if !x.uncertain {
			return true, node.ErrLockLost // another client has deleted it
		}
		return true, nil
	}
	stat, err := s.paths.Client.CheckExists().ForPath(flight, s.paths.Item(x.Message.Name))
	switch {
	case err != nil:
		return false, err
	case stat == nil || stat.Czxid != x.Message.Stat.Czxid: // with the path, or deleted by another client
		x.noteDeletion()
	}
	if x.Dead != nil {
		if err := s.paths.Create(builders.OutOfFlight(flight)); err != nil {
			return false, err
		}
	}
	s.send(flight, x)
	if _, err = x.sent.Wait(session); err != nil {
		x.noteLoss(err)
		return false, err
	}
	return true, nil
}

// sessionLost ends x after the lock was lost with its session: another consumer may have the item. A consumed item is
// deleted nevertheless if no consumer has it locked, so that it is not delivered once more.
func (s *Settler) sessionLost(x *Settlement) error {
	switch {
	case x.Keep:
		return nil
	case x.Back != nil || x.Dead != nil:
		return node.ErrLockLost
	}
	_ = waitqueue.RetryPassing(s.life, s.paths.Client, func() error { return s.deleteConsumed(x) })
	return node.ErrLockLost
}

func (s *Settler) deleteConsumed(x *Settlement) error {
	flight := builders.Pipelined(s.life)
	held, _, err := ReadLock(flight, s.paths, x.Message.Name)
	if err != nil || held != "" {
		return err
	}
	stat, err := s.paths.Client.CheckExists().ForPath(flight, s.paths.Item(x.Message.Name))
	if err != nil || stat == nil || stat.Czxid != x.Message.Stat.Czxid {
		return err
	}
	return s.paths.Client.Delete().WithVersion(stat.Version).Quietly().ForPath(flight, s.paths.Item(x.Message.Name))
}
