package leader

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// LeaderSelector leads for as long as a function runs, once for each time it is queued, and for ever with
// [WithAutoRequeue]. The selectors of a path stand in line, so that each has its turn. All methods are safe for
// concurrent use. In Java: LeaderSelector.
type LeaderSelector struct { //nolint:revive // the name is Java's
	client Client
	line   lineup.Line
	id     string
	take   func(ctx context.Context) error
	auto   bool
	failed func(ctx context.Context, err error)
	bad    error // why the path cannot be

	ctx     context.Context // ends with Close
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	mu         sync.Mutex
	state      State
	queued     bool        // it stands in line, or leads
	leadership *Leadership // nil if it does not lead
	broken     bool        // the connection is in an error state
	remove     func()      // of the listener to the connection
}

const selectorName = "lock-" // that of a mutex, as in Java

type selectorOption func(*LeaderSelector)

func (o selectorOption) applySelector(s *LeaderSelector) { o(s) }

// WithAutoRequeue queues the selector again whenever its function has returned. In Java: autoRequeue.
func WithAutoRequeue() SelectorOption {
	return selectorOption(func(s *LeaderSelector) { s.auto = true })
}

// WithErrorHandler has fn told the errors of the function that leads, a panic as an error, and those that ended a time
// in line. The default ignores them, as Java does.
func WithErrorHandler(fn func(ctx context.Context, err error)) SelectorOption {
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
		client: client,
		take:   take,
		failed: func(context.Context, error) {},
		bad:    zkpath.Validate(path, false),
	}
	for _, o := range opts {
		o.applySelector(s)
	}
	s.line = lineup.Line{Client: client, Path: path, Name: selectorName}
	if s.id != "" { // else the default data, as in Java: participants without an id show up under their address
		s.line.Data = []byte(s.id)
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
		return s.bad
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

// Requeue queues the selector again, and reports whether it did: not if it is queued, leads or is closed. In Java:
// requeue.
func (s *LeaderSelector) Requeue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != Started || s.queued {
		return false
	}
	s.enqueue()
	return true
}

// enqueue starts a time in line. mu is held.
func (s *LeaderSelector) enqueue() {
	s.queued = true
	s.running.Go(s.run)
}

// run stands in line and leads, once or again and again.
func (s *LeaderSelector) run() {
	for {
		lined, err := s.turn()
		if err != nil && s.ctx.Err() == nil {
			s.failed(context.WithoutCancel(s.ctx), err)
			if !lined {
				pause(s.ctx, s.client)
			}
		}
		s.mu.Lock()
		again := s.auto && s.state == Started
		s.queued = again
		s.mu.Unlock()
		if !again {
			return
		}
	}
}

// turn waits for the lead, and leads until the function returns. lined is false if it did not come to lead.
func (s *LeaderSelector) turn() (lined bool, err error) {
	c, err := s.line.Acquire(s.ctx, lineup.Forever)
	if err != nil {
		return false, fmt.Errorf("leader: %s: %w", s.line.Path, err)
	}
	leadership := newLeadership(s.ctx, c)
	defer s.line.Leave(context.WithoutCancel(s.ctx), c.Path)
	if !s.begin(leadership) {
		return true, nil // lost before it began
	}
	err = s.lead(leadership)
	s.mu.Lock()
	s.leadership = nil
	s.mu.Unlock()
	leadership.end(ErrLeadershipLost)
	return true, err
}

// begin notes the leadership, unless the connection is in an error state.
func (s *LeaderSelector) begin(l *Leadership) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken || s.state != Started || !l.holds() {
		l.end(ErrLeadershipLost)
		return false
	}
	s.leadership = l
	return true
}

// lead runs the function; a panic is an error, so that the place in line is given up whatever happens.
func (s *LeaderSelector) lead(l *Leadership) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("leader: panic while leading: %v\n%s", p, debug.Stack())
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
	defer s.mu.Unlock()
	s.broken = broken
	if broken && s.leadership != nil {
		s.leadership.end(ErrLeadershipLost)
	}
}

// InterruptLeadership ends the context of the function that leads, and reports whether it leads. In Java:
// interruptLeadership.
func (s *LeaderSelector) InterruptLeadership() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leadership == nil {
		return false
	}
	s.leadership.end(ErrInterrupted)
	return true
}

// HasLeadership reports whether the selector leads.
func (s *LeaderSelector) HasLeadership() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leadership != nil && s.leadership.holds()
}

// Close ends taking part, and waits until the function has returned, so it must not be called by it. A second Close does
// nothing. In Java: close.
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
	return participants(ctx, s.client, s.line.Path, selectorName, 0)
}

// Leader returns who leads, the zero Participant if nobody does. In Java: getLeader.
func (s *LeaderSelector) Leader(ctx context.Context) (Participant, error) {
	return leaderOf(ctx, s.client, s.line.Path, selectorName)
}
