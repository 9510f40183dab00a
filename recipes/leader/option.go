package leader

import "context"

// LatchOption configures a [LeaderLatch].
type LatchOption interface{ applyLatch(*LeaderLatch) }

// SelectorOption configures a [LeaderSelector].
type SelectorOption interface{ applySelector(*LeaderSelector) }

// Option configures a [LeaderLatch] or a [LeaderSelector].
type Option interface {
	LatchOption
	SelectorOption
}

type idOption string

func (o idOption) applyLatch(l *LeaderLatch)       { l.id = string(o) }
func (o idOption) applySelector(s *LeaderSelector) { s.id = string(o) }

// WithID sets the id of the participant, which all participants see. The default is no id.
func WithID(id string) Option { return idOption(id) }

type nameOption string

func (o nameOption) applyLatch(l *LeaderLatch)       { l.name = string(o) }
func (o nameOption) applySelector(s *LeaderSelector) { s.name = string(o) }

// WithName sets the name of the election in spans and metrics. The default is no name. Each name is a metric series of
// its own, so use few names.
func WithName(name string) Option { return nameOption(name) }

type participantOption string

func (o participantOption) applyLatch(l *LeaderLatch)       { l.participant = string(o) }
func (o participantOption) applySelector(s *LeaderSelector) { s.participant = string(o) }

// WithParticipantName sets the name of the participant in spans and metrics, which then show the participant that
// leads. The default is no name. Each name is a metric series of its own, so use few names: "blue" and "green", or the
// number of a replica.
func WithParticipantName(name string) Option { return participantOption(name) }

type latchOption func(*LeaderLatch)

func (o latchOption) applyLatch(l *LeaderLatch) { o(l) }

// WithCloseMode sets whether Close notifies the listeners. The default is [Silent].
func WithCloseMode(m CloseMode) LatchOption { return latchOption(func(l *LeaderLatch) { l.mode = m }) }

type selectorOption func(*LeaderSelector)

func (o selectorOption) applySelector(s *LeaderSelector) { o(s) }

// WithAutoRequeue queues the selector again whenever its function has returned. In Java: autoRequeue.
func WithAutoRequeue() SelectorOption {
	return selectorOption(func(s *LeaderSelector) { s.autoRequeue = true })
}

// WithOnError sets the handler of a selector's errors: those of its function, a panic included, and those that
// made it lose its place in line. The context of the handler belongs to the trace of the election. By default the
// client's unhandled-error listeners and its log get the errors, except for those that errors.Is finds to be
// context.Canceled, [ErrLeadershipLost] or [ErrInterrupted]. fn is called with one error after the other, on a
// goroutine of its own. It may call Close, which does not wait for it. A fn that blocks delays no turn. When 100 errors
// wait for fn, all but the last of the following ones are left out; the text of the last one has their number.
func WithOnError(fn func(ctx context.Context, err error)) SelectorOption {
	return selectorOption(func(s *LeaderSelector) { s.onError = fn })
}
