package leader

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// LeaderSelector leads for as long as a function runs, once for each time it is queued, and for ever with
// [WithAutoRequeue]. The selectors of a path stand in line, so that each has its turn. All methods are safe for
// concurrent use. In Java: LeaderSelector.
type LeaderSelector struct { //nolint:revive // the name is Java's
	client   Client
	queue    lineup.Queue
	id       string
	take     func(ctx context.Context) error
	auto     bool
	failed   func(ctx context.Context, err error)
	bad      error // why the path cannot be
	name     string
	election telemetry.Election

	ctx      context.Context // ends with Close
	cancel   context.CancelCauseFunc
	running  sync.WaitGroup
	failures failures // what the error handler is told

	mu         sync.Mutex
	state      State
	queued     bool          // it stands in line, or leads
	over       bool          // its turn is, and has only to be cleared away
	again      bool          // it is to stand in line after that
	leadership *Leadership   // of its turn, nil before that
	broken     bool          // the connection is in an error state
	changed    chan struct{} // closed when that changes
	remove     func()        // of the listener to the connection
}

const selectorName = "lock-" // that of a mutex, as in Java

type selectorOption func(*LeaderSelector)

func (o selectorOption) applySelector(s *LeaderSelector) { o(s) }

// WithAutoRequeue queues the selector again whenever its function has returned. In Java: autoRequeue.
func WithAutoRequeue() SelectorOption {
	return selectorOption(func(s *LeaderSelector) { s.auto = true })
}

// WithOnError has fn told the errors of the function that leads, a panic as an error, and those that ended a time
// in line, with a context in the trace of the election. The default tells the client's unhandled-error listeners and
// its log, but not that leadership has ended: what errors.Is says to be context.Canceled, [ErrLeadershipLost] or
// [ErrInterrupted]. fn is called for one error after the other, on a goroutine of its own: it may call Close, which
// does not wait for it. A fn that blocks holds up no turn; when 100 errors wait for it, those that follow are left out
// but for the last, whose text has their number.
func WithOnError(fn func(ctx context.Context, err error)) SelectorOption {
	return selectorOption(func(s *LeaderSelector) { s.failed = fn })
}

// NewLeaderSelector returns a selector for the election of a path. It leads while take runs, on a goroutine of the
// selector. The context of take ends when leadership is lost, with the cause [ErrLeadershipLost], after
// InterruptLeadership, with [ErrInterrupted], and with [ErrClosed]; take has to return then. [LeadershipOf] gives the
// path and the token. It does no I/O; a path that cannot be is the error of Start. In Java: LeaderSelector and
// LeaderSelectorListenerAdapter.
func NewLeaderSelector(
	client Client, path string, take func(ctx context.Context) error, opts ...SelectorOption,
) *LeaderSelector {
	s := &LeaderSelector{
		client:  client,
		take:    take,
		bad:     zkpath.Validate(path, false),
		changed: make(chan struct{}),
	}
	for _, o := range opts {
		o.applySelector(s)
	}
	if s.failed == nil {
		s.failed = s.tellClient
	}
	s.failures.handle = func(ctx context.Context, err error) { lineup.Tell(ctx, client, s.what(), s.failed, err) }
	s.election = telemetry.Of(client).NewElection("leader_selector", s.name, path)
	s.queue = lineup.Queue{Client: client, Path: path, Prefix: selectorName}
	if s.id != "" { // else the default data, as in Java: participants without an id show up under their address
		s.queue.Data = []byte(s.id)
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background()) //nolint:forbidigo // it ends with Close
	return s
}

// Start queues the selector for the first time. It fails with [ErrStarted] the second time and with [ErrClosed] after
// Close.
func (s *LeaderSelector) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.bad != nil:
		return errtext.Wrap(s.bad, "leader", "start")
	case s.state == Closed:
		return ErrClosed
	case s.state == Started:
		return ErrStarted
	}
	s.state = Started
	s.remove = s.client.ConnectionStateListeners().AddListener(func(_ context.Context, state framework.ConnectionState) {
		s.setBroken(s.client.ConnectionStateErrorPolicy().IsErrorState(state))
	})
	s.enqueue()
	return nil
}

// Requeue queues the selector again, and reports whether it did: not if it is queued, leads or is closed. Who has seen
// leadership end can queue it at once; it stands in line when its function has returned. In Java: requeue.
func (s *LeaderSelector) Requeue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	over := s.over || s.leadership != nil && !s.leadership.holds()
	switch {
	case s.state != Started, s.queued && !over, s.again:
		return false
	case s.queued:
		s.again = true
	default:
		s.enqueue()
	}
	return true
}

// enqueue starts a time in line. mu is held.
func (s *LeaderSelector) enqueue() {
	s.queued = true
	s.running.Go(s.run)
}

// run stands in line and leads, once or again and again.
func (s *LeaderSelector) run() {
	defer s.client.QuorumHeartbeats()()
	inTurn := false
	defer func() {
		if inTurn && s.settle(s.ctx, true, errExited) { // the function has taken the goroutine with it
			s.running.Go(s.run)
		}
	}()
	for again := true; again; {
		inTurn = true
		ctx, lined, err := s.turn()
		inTurn = false
		again = s.settle(ctx, lined, err)
	}
}

// errExited is of a function that has ended with runtime.Goexit, as that of a test which fails.
var errExited = errors.New("leader: the function has ended its goroutine")

// settle tells what has come of a turn, and reports whether there is to be another.
func (s *LeaderSelector) settle(ctx context.Context, lined bool, err error) (again bool) {
	s.mu.Lock()
	s.leadership, s.over = nil, true
	s.mu.Unlock()
	if err != nil && s.ctx.Err() == nil {
		s.failures.add(context.WithoutCancel(ctx), err)
		if !lined {
			pause(s.ctx, s.client)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	again = (s.auto || s.again) && s.state == Started
	if !lined && errors.Is(err, framework.ErrClosed) {
		again = false // there will be no connection any more
	}
	s.queued, s.again, s.over = again, false, false
	return again
}

// what is what the client calls the selector.
func (s *LeaderSelector) what() string { return "leader selector " + s.queue.Path }

// tellClient is the error handler of who gives none.
func (s *LeaderSelector) tellClient(ctx context.Context, err error) {
	for _, end := range []error{context.Canceled, ErrLeadershipLost, ErrInterrupted} {
		if errors.Is(err, end) {
			return
		}
	}
	s.client.ReportUnhandled(ctx, s.what(), err)
}

// turn waits for the lead, and leads until the function returns. ctx is that of the election; lined is false if it did
// not come to lead.
func (s *LeaderSelector) turn() (ctx context.Context, lined bool, err error) {
	for {
		var asked *telemetry.Wait
		ctx, asked = s.election.Elect(s.ctx)
		c, err := s.queue.Acquire(ctx, lineup.Forever)
		asked.End(telemetry.Outcome(err, telemetry.Elected), err)
		if err != nil {
			return ctx, false, errtext.Wrap(err, "leader", "%s", s.queue.Path)
		}
		if began, err := s.reign(ctx, c); began || s.ctx.Err() != nil {
			return ctx, true, err
		}
	}
}

// reign leads with the place that c has in line, which is given up whatever happens. It reports whether the function
// was called.
func (s *LeaderSelector) reign(ctx context.Context, c *lineup.Contender) (began bool, err error) {
	leadership := newLeadership(ctx, s.client, c)
	watch := lineup.NewNodeWatch(context.WithoutCancel(ctx), s.client, c, func() {
		leadership.end(ErrLeadershipLost)
		leadership.tell()
	})
	watch.Start(lineup.ShortHold)
	defer func() {
		watch.Stop()
		leadership.end(errReturned)
		leadership.tell()
		s.leave(context.WithoutCancel(ctx), c, watch)
	}()
	if began = s.begin(leadership); began {
		leadership.observe(s.election.Term(ctx))
		err = s.lead(leadership)
	}
	return began, err
}

// leave deletes the node, in the background until it is done. If it stays, its watch is removed.
func (s *LeaderSelector) leave(ctx context.Context, c *lineup.Contender, watch *lineup.NodeWatch) {
	left := func(_ context.Context, ev callbacks.Event) {
		if ev.Err != nil {
			watch.Remove()
		}
	}
	_ = s.client.Delete().Guaranteed().Quietly().InBackground(left).ForPath(hook.OutOfFence(ctx), c.Path)
}

// begin notes the leadership, as soon as the connection is in no error state: the place in line is kept as long as the
// session. It reports false if that has ended before, or the selector is closed.
func (s *LeaderSelector) begin(l *Leadership) bool {
	for {
		s.mu.Lock()
		broken, changed, holds := s.broken, s.changed, s.state == Started && l.holds()
		if holds && !broken {
			s.leadership = l
		}
		s.mu.Unlock()
		if !holds || !broken {
			return holds
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
		}
	}
}

// lead runs the function; a panic is an error.
func (s *LeaderSelector) lead(l *Leadership) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("leader: panic while leading: %s\n%s", errtext.Panic(p), debug.Stack())
		}
	}()
	return s.take(context.WithValue(l.ctx, leadershipKey{}, l))
}

type leadershipKey struct{}

// LeadershipOf returns the leadership that the context of a selector's function belongs to, nil for another context.
func LeadershipOf(ctx context.Context) *Leadership {
	l, _ := ctx.Value(leadershipKey{}).(*Leadership)
	return l
}

func (s *LeaderSelector) setBroken(broken bool) {
	s.mu.Lock()
	s.broken = broken
	close(s.changed)
	s.changed = make(chan struct{})
	leadership := s.leadership
	if broken && leadership != nil {
		leadership.end(ErrLeadershipLost)
	}
	s.mu.Unlock()
	leadership.tell()
}

// InterruptLeadership ends the context of the function that leads, and reports whether it leads. In Java:
// interruptLeadership.
func (s *LeaderSelector) InterruptLeadership() bool {
	s.mu.Lock()
	leadership := s.leadership
	leads := leadership != nil && leadership.holds()
	if leads {
		leadership.end(ErrInterrupted)
	}
	s.mu.Unlock()
	leadership.tell()
	return leads
}

// HasLeadership reports whether the selector leads.
func (s *LeaderSelector) HasLeadership() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leadership != nil && s.leadership.holds()
}

// Close ends taking part, and waits until the function has returned, so it must not be called by it. A second Close
// does nothing. In Java: close.
func (s *LeaderSelector) Close() error {
	s.mu.Lock()
	before := s.state
	s.state = Closed
	s.mu.Unlock()
	if before == Started {
		s.remove()
	}
	s.cancel(ErrClosed)
	s.running.Wait()
	return nil
}

// ID returns the id of the selector. In Java: getId.
func (s *LeaderSelector) ID() string { return s.id }

// Participants returns who takes part, the leader first. In Java: getParticipants.
func (s *LeaderSelector) Participants(ctx context.Context) ([]Participant, error) {
	return participants(ctx, s.client, s.queue.Path, selectorName)
}

// Leader returns who leads, the zero Participant if nobody does. In Java: getLeader.
func (s *LeaderSelector) Leader(ctx context.Context) (Participant, error) {
	return leaderOf(ctx, s.client, s.queue.Path, selectorName)
}
