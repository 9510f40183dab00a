package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// LeaderSelector leads while a function runs: once for each time it is queued, or again and again with
// [WithAutoRequeue]. The selectors of a path wait in line, so each gets its turn. All methods are safe for concurrent
// use. In Java: LeaderSelector.
type LeaderSelector struct { //nolint:revive // the name is Java's
	client         *framework.Client
	queue          waitqueue.Queue
	id             string
	takeLeadership func(ctx context.Context) error
	autoRequeue    bool
	onError        func(ctx context.Context, err error)
	err            error // returned by Start if not nil: the path is invalid
	name           string
	election       report.Election

	ctx     context.Context // ends with Close
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	// Of run alone, which is one goroutine at a time.
	failures   int              // turns in a row that did not come
	inFunction bool             // it stays set if the function ends its goroutine
	reports    waitqueue.Serial // calls of onError
	waiting    atomic.Int32     // number of errors that wait for onError or that it handles

	mu             sync.Mutex
	state          State
	queued         bool          // it waits in line or leads
	finishing      bool          // its turn is over, and run has not called settle yet
	requeued       bool          // it queues again after this turn
	leadership     *Leadership   // the leadership of this turn; nil before it begins
	inErrorState   bool          // the connection is in an error state
	changed        chan struct{} // closed when inErrorState changes
	removeListener func()        // removes the listener to the connection state
}

const selectorName = "lock-" // the prefix of a mutex, as in Java

// NewLeaderSelector returns a selector for the election of a path. It leads while takeLeadership runs, on a goroutine
// of the selector. The context of takeLeadership ends when leadership is lost, with the cause [ErrLeadershipLost],
// after InterruptLeadership, with [ErrInterrupted], and after Close, with [ErrClosed]; the function has to return then.
// [LeadershipOf] returns the leadership of that context. NewLeaderSelector does no I/O. Start returns an error if the
// path is invalid or takeLeadership is nil: such a selector only observes. In Java: LeaderSelector and
// LeaderSelectorListenerAdapter.
func NewLeaderSelector(
	client *framework.Client, path string, takeLeadership func(ctx context.Context) error, opts ...SelectorOption,
) *LeaderSelector {
	s := &LeaderSelector{
		client:         client,
		takeLeadership: takeLeadership,
		err:            zkpath.Validate(path, false),
		changed:        make(chan struct{}),
	}
	for _, o := range opts {
		o.applySelector(s)
	}
	if s.onError == nil {
		s.onError = s.reportError
	}
	s.election = newElection(client, "leader_selector", s.name, s.id, path)
	s.queue = waitqueue.Queue{Client: client, Path: path, Prefix: selectorName}
	if s.id != "" { // without an id the default data, as in Java: participants then see an address
		s.queue.Data = []byte(s.id)
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background()) //nolint:forbidigo // it ends with Close
	return s
}

// check returns why the selector cannot take part, or nil.
func (s *LeaderSelector) check() error {
	if s.err == nil && s.takeLeadership == nil {
		return fmt.Errorf("%w: no function that leads", framework.ErrBadArguments)
	}
	return s.err
}

// Start queues the selector for the first time. It fails with [ErrStarted] the second time, with [ErrClosed] after
// Close, and with [framework.ErrClosed] when the client is closed.
func (s *LeaderSelector) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.check()
	switch {
	case err != nil:
		return errtext.Wrap(err, "leader", "start")
	case s.state == Closed:
		return ErrClosed
	case s.state == Started:
		return ErrStarted
	}
	if err := waitqueue.CheckOpen(s.client); err != nil {
		return errtext.Wrap(err, "leader", "start")
	}
	s.begin()
	s.enqueue()
	return nil
}

// begin makes the selector started, and follows the state of the connection until removeListener is called.
func (s *LeaderSelector) begin() {
	s.state = Started
	s.removeListener = waitqueue.ForLibrary(s.client).AddConnectionStateListener(
		func(_ context.Context, state framework.ConnectionState) {
			s.setErrorState(s.client.ConnectionStateErrorPolicy().IsErrorState(state))
		})
}

// Requeue queues the selector again. It returns false if the selector is queued already, leads, is not started or is
// closed. It may be called as soon as leadership has ended; the selector then queues when its function has returned. In
// Java: requeue.
func (s *LeaderSelector) Requeue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	over := s.finishing || s.leadership != nil && !s.leadership.isHeld()
	switch {
	case s.state != Started, s.queued && !over, s.requeued:
		return false
	case s.queued:
		s.requeued = true
	default:
		s.enqueue()
	}
	return true
}

// enqueue starts run. mu is held.
func (s *LeaderSelector) enqueue() {
	s.queued = true
	s.running.Go(s.run)
}

// run takes turns until the selector is not queued again.
func (s *LeaderSelector) run() {
	defer s.client.QuorumHeartbeats()()
	inTurn := false
	usercode.Loop(s.running.Go, func() bool {
		if inTurn { // code of the program has ended the goroutine of the last step
			inTurn = false
			if s.inFunction {
				s.inFunction = false
				return s.settle(s.ctx, true, errExited)
			}
			return s.settle(s.ctx, false, errProviderExited)
		}
		inTurn = true
		ctx, elected, err := s.takeTurn(s.lead)
		inTurn = false
		return s.settle(ctx, elected, err)
	})
}

// errExited is the error of a function that ends its goroutine, errProviderExited that of a provider that is asked for
// the node of a participant.
var (
	errExited         = usercode.Exited("the function of the leader")
	errProviderExited = usercode.Exited("a provider of the client")
)

// settle handles the end of a turn. It returns true if another one follows.
func (s *LeaderSelector) settle(ctx context.Context, elected bool, err error) (again bool) {
	s.mu.Lock()
	s.leadership, s.finishing = nil, true
	s.mu.Unlock()
	if s.failures++; elected {
		s.failures = 0
	}
	if err != nil && s.ctx.Err() == nil {
		s.report(context.WithoutCancel(ctx), err)
		if !elected {
			err = errtext.Join(err, pauseAfterFailure(s.ctx, s.client, waitqueue.ReadPause(s.failures)))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	again = (s.autoRequeue || s.requeued) && s.state == Started
	if !elected && errors.Is(err, framework.ErrClosed) {
		again = false // the client never connects again
	}
	s.queued, s.requeued, s.finishing = again, false, false
	return again
}

// maxWaitingErrors is the number of errors of a selector that wait for its error handler.
const maxWaitingErrors = 100

// report queues a call of the error handler. It does not wait.
func (s *LeaderSelector) report(ctx context.Context, err error) {
	if s.waiting.Add(1) > maxWaitingErrors {
		s.waiting.Add(-1)
		s.client.ReportUnhandled(ctx, s.description(), errtext.Wrap(err, "leader", "the error handler is too slow"))
		return
	}
	s.reports.Do(func() {
		defer s.waiting.Add(-1)
		waitqueue.CallErrorHandler(ctx, s.client, s.description(), s.onError, err)
	})
}

// description names the selector in reports to the client.
func (s *LeaderSelector) description() string { return "leader selector " + s.queue.Path }

// reportError is the default error handler.
func (s *LeaderSelector) reportError(ctx context.Context, err error) {
	for _, end := range []error{context.Canceled, ErrLeadershipLost, ErrInterrupted} {
		if errors.Is(err, end) {
			return
		}
	}
	s.client.ReportUnhandled(ctx, s.description(), err)
}

// takeTurn waits for the turn and calls lead, which leads until it returns. ctx is the context of the election. elected
// is false if the turn did not come.
func (s *LeaderSelector) takeTurn(lead func(l *Leadership) error) (ctx context.Context, elected bool, err error) {
	for {
		var span *report.Wait
		ctx, span = s.election.Elect(s.ctx)
		c, err := s.queue.Acquire(ctx, waitqueue.Forever)
		span.End(report.Outcome(err, report.Elected), err)
		if err != nil {
			return ctx, false, errtext.Wrap(err, "leader", "%s", s.queue.Path)
		}
		if began, err := s.runTerm(ctx, c, lead); began || s.ctx.Err() != nil {
			return ctx, true, err
		}
	}
}

// runTerm calls lead with the node of c and then deletes it. began is false if it was not called.
func (s *LeaderSelector) runTerm(
	ctx context.Context, c *waitqueue.Contender, lead func(l *Leadership) error,
) (began bool, err error) {
	leadership := newLeadership(ctx, s.client, c)
	watch := waitqueue.NewNodeWatch(context.WithoutCancel(ctx), s.client, c, func() {
		leadership.end(ErrLeadershipLost)
		leadership.endSpan()
	})
	watch.Start(waitqueue.ShortHold)
	defer func() {
		watch.Stop()
		leadership.end(errReturned)
		leadership.endSpan()
		s.leave(context.WithoutCancel(ctx), c, watch)
	}()
	if began = s.beginTerm(leadership); began {
		leadership.setSpan(s.election.Term(ctx))
		err = lead(leadership)
	}
	return began, err
}

// leave deletes the node in the background and retries until that succeeds. If the node stays, it removes the watch.
func (s *LeaderSelector) leave(ctx context.Context, c *waitqueue.Contender, watch *waitqueue.NodeWatch) {
	onDeleted := func(_ context.Context, ev callbacks.Event) {
		if ev.Err != nil {
			watch.Remove()
		}
	}
	_ = waitqueue.ForLibrary(s.client).Delete().Guaranteed().Quietly().InBackground(onDeleted).
		ForPath(hook.OutOfFence(ctx), c.Path)
}

// beginTerm waits until the connection is in no error state, then records the leadership. It returns false if the
// leadership has ended before, or the selector is closed.
func (s *LeaderSelector) beginTerm(l *Leadership) bool {
	for {
		s.mu.Lock()
		inErrorState, changed, held := s.inErrorState, s.changed, s.state == Started && l.isHeld()
		if held && !inErrorState {
			s.leadership = l
		}
		s.mu.Unlock()
		if !held || !inErrorState {
			return held
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
		}
	}
}

// lead calls the function, and returns a panic as an error.
func (s *LeaderSelector) lead(l *Leadership) (err error) {
	s.inFunction = true
	err = s.callFunction(l.workContext())
	s.inFunction = false
	return err
}

func (s *LeaderSelector) callFunction(ctx context.Context) (err error) {
	defer usercode.Catch("the function of the leader", &err)
	return s.takeLeadership(ctx)
}

type leadershipKey struct{}

// workContext returns the context for the function that leads.
func (l *Leadership) workContext() context.Context {
	return context.WithValue(l.ctx, leadershipKey{}, l)
}

// LeadershipOf returns the leadership of a context that a selector, or [Do], passed to its function. It returns nil for
// any other context.
func LeadershipOf(ctx context.Context) *Leadership {
	l, _ := ctx.Value(leadershipKey{}).(*Leadership)
	return l
}

// setErrorState records whether the connection is in an error state. An error state ends the leadership.
func (s *LeaderSelector) setErrorState(inErrorState bool) {
	s.mu.Lock()
	s.inErrorState = inErrorState
	close(s.changed)
	s.changed = make(chan struct{})
	leadership := s.leadership
	if inErrorState && leadership != nil {
		leadership.end(ErrLeadershipLost)
	}
	s.mu.Unlock()
	leadership.endSpan()
}

// InterruptLeadership ends the context of the function that leads, with the cause [ErrInterrupted]. It returns false if
// the selector does not lead. In Java: interruptLeadership.
func (s *LeaderSelector) InterruptLeadership() bool {
	s.mu.Lock()
	leadership := s.leadership
	leads := leadership != nil && leadership.isHeld()
	if leads {
		leadership.end(ErrInterrupted)
	}
	s.mu.Unlock()
	leadership.endSpan()
	return leads
}

// HasLeadership reports whether the selector leads.
func (s *LeaderSelector) HasLeadership() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leadership != nil && s.leadership.isHeld()
}

// Close stops taking part and waits until the function has returned. The function must not call it. A second Close does
// nothing. In Java: close.
func (s *LeaderSelector) Close() error {
	s.mu.Lock()
	before := s.state
	s.state = Closed
	s.mu.Unlock()
	if before == Started {
		s.removeListener()
	}
	s.cancel(ErrClosed)
	s.running.Wait()
	return nil
}

// ID returns the id of the selector. In Java: getId.
func (s *LeaderSelector) ID() string { return s.id }

// Participants returns all participants, the leader first. In Java: getParticipants.
func (s *LeaderSelector) Participants(ctx context.Context) ([]Participant, error) {
	return participants(ctx, s.client, s.queue.Path, selectorName)
}

// Leader returns the leader, or the zero Participant if there is none. In Java: getLeader.
func (s *LeaderSelector) Leader(ctx context.Context) (Participant, error) {
	return leaderOf(ctx, s.client, s.queue.Path, selectorName)
}
