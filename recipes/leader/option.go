package leader

import (
	"context"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
)

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

// WithID sets the id of the participant, which all participants see. The default is no id. With [WithName], spans and
// metrics have it too.
func WithID(id string) Option { return idOption(id) }

type nameOption string

func (o nameOption) applyLatch(l *LeaderLatch)       { l.name = string(o) }
func (o nameOption) applySelector(s *LeaderSelector) { s.name = string(o) }

// WithName sets the name of the election in spans and metrics, which then also have the id of the participant, and so
// show which one leads. The default is no name. Each name and each id is a metric series of its own, so use few.
func WithName(name string) Option { return nameOption(name) }

// newElection returns the telemetry of a participant. Only an election with a name has series for the ids.
func newElection(client *framework.Client, recipe, name, id, path string) report.Election {
	if name == "" {
		id = ""
	}
	return report.NewElection(hook.Telemetry(client), recipe, name, id, path)
}

type latchOption func(*LeaderLatch)

func (o latchOption) applyLatch(l *LeaderLatch) { o(l) }

// WithCloseMode sets whether Close notifies the listeners. The default is [Silent].
func WithCloseMode(m CloseMode) LatchOption { return latchOption(func(l *LeaderLatch) { l.mode = m }) }

type selectorOption func(*LeaderSelector)

func (o selectorOption) applySelector(s *LeaderSelector) { o(s) }

// WithAutoRequeue queues the selector again whenever its function has returned, and when it has lost its place in line,
// after pauses that grow from 1 s to 5 s. In Java: autoRequeue.
func WithAutoRequeue() SelectorOption {
	return selectorOption(func(s *LeaderSelector) { s.autoRequeue = true })
}

// WithOnError sets the handler of a selector's errors: the errors and panics of its function, and the errors because of
// which it lost its place in line. The context of the handler belongs to the trace of the election. By default the
// client's unhandled-error listeners and its log get the errors, except for those that match context.Canceled,
// [ErrLeadershipLost] or [ErrInterrupted] by errors.Is. fn is called with one error after the other, on a
// goroutine of its own. It may call Close, which does not wait for it. A fn that blocks delays no turn: when 100 errors
// wait for it, the client's unhandled-error listeners and its log get the next ones.
func WithOnError(fn func(ctx context.Context, err error)) SelectorOption {
	return selectorOption(func(s *LeaderSelector) { s.onError = fn })
}
