package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
)

// change is a change of the connection state.
type change struct {
	at    time.Time
	state string
}

// history has the last changes, the oldest first. It is immutable.
type history []change

// maxHistory is the number of changes of the connection state that spans of operations can show.
const maxHistory = 16

func (h *history) with(c change) *history {
	var next history
	if h != nil {
		next = append(next, (*h)[max(0, len(*h)+1-maxHistory):]...)
	}
	next = append(next, c)
	return &next
}

// since returns the changes between two times.
func (h *history) since(start, end time.Time) []change {
	if h == nil || !(*h)[len(*h)-1].at.After(start) {
		return nil
	}
	var found []change
	for _, c := range *h {
		if c.at.After(start) && !c.at.After(end) {
			found = append(found, c)
		}
	}
	return found
}

// outage is a time without a connection: from the start of the client to the first connection, and from each loss of a
// connection to the next connection or to the loss of the session.
type outage struct {
	mu      sync.Mutex
	since   time.Time // zero without an outage
	connect bool      // the client has not connected yet
}

// The connection states of package framework, in lower case.
const (
	StateConnected   = "connected"
	StateSuspended   = "suspended"
	StateReconnected = "reconnected"
	StateLost        = "lost"
	StateReadOnly    = "read_only"
)

// states are the values of curator.connection.state.
var states = []string{StateConnected, StateSuspended, StateReconnected, StateLost, StateReadOnly}

// Started records that the client begins to connect.
func (t *Telemetry) Started() {
	if t == nil {
		return
	}
	t.addZeros()
	t.outage.mu.Lock()
	defer t.outage.mu.Unlock()
	t.outage.since, t.outage.connect = time.Now(), true
}

// addZeros adds 0 to the series that are known at the start, so that a rate over them includes the first change.
func (t *Telemetry) addZeros() {
	in := t.instruments()
	if in == nil {
		return
	}
	ctx := context.Background() //nolint:forbidigo // Start has no context
	for _, state := range states {
		in.stateChanges.Add(ctx, 0, t.closedValue(connectionState, state))
	}
	for _, event := range eventNames {
		in.watchEvents.Add(ctx, 0, t.closedValue(eventType, event))
	}
	in.expirations.Add(ctx, 0, t.sessions)
}

// StateNoted adds a change of the connection state to the history. It is called in order, when the change happens. The
// spans of operations that end afterwards show it.
func (t *Telemetry) StateNoted(state string) {
	if t.On() {
		t.history.Store(t.history.Load().with(change{time.Now(), state}))
	}
}

// StateChanged records a change of the connection state, with its time. Calls are in order.
func (t *Telemetry) StateChanged(state string, now time.Time) {
	if t == nil {
		return
	}
	ctx := context.Background() //nolint:forbidigo // a change of the state has no caller
	if m := t.instruments(); m != nil {
		m.stateChanges.Add(ctx, 1, t.closedValue(connectionState, state))
		if state == StateLost {
			m.expirations.Add(ctx, 1, t.sessions)
		}
	}
	if record := t.outageChanged(ctx, state, now); record != nil {
		record()
	}
}

// outageChanged applies a change to the outage. It returns the function that records the result, or nil.
func (t *Telemetry) outageChanged(ctx context.Context, state string, now time.Time) (record func()) {
	o := &t.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	since := o.since
	switch {
	case state == StateSuspended && since.IsZero():
		o.since = now
		return nil
	case state == StateSuspended, since.IsZero(), o.connect && state == StateLost:
		return nil
	case o.connect:
		record = func() { t.passed(ctx, "curator.connect", since, now, t.scope.Base(t.server...), nil) }
	default:
		record = func() { t.outageEnded(ctx, state, since, now) }
	}
	o.since, o.connect = time.Time{}, false
	return record
}

// outageEnded records an outage, with the state that ended it.
func (t *Telemetry) outageEnded(ctx context.Context, state string, since, now time.Time) {
	outcome := OutcomeKey.String("reconnected")
	if state == StateLost {
		outcome = OutcomeKey.String("lost")
	}
	t.passed(ctx, "curator.connection.outage", since, now, t.scope.Base(outcome), func(ctx context.Context) {
		if m := t.instruments(); m != nil {
			m.outageDuration.Record(ctx, now.Sub(since).Seconds(), instrument.NewSet(t.scope.Base(outcome)...))
		}
	})
}

// passed writes the span of a period that is over, and calls measure, if it is set, with the context of the span. It
// does so on another goroutine, because listeners wait for the caller.
func (t *Telemetry) passed(
	ctx context.Context, name string, since, now time.Time, attributes []attribute.KeyValue, measure func(context.Context),
) {
	if measure == nil {
		measure = func(context.Context) {}
	}
	if !t.scope.Traces() {
		measure(ctx)
		return
	}
	t.Later(func() {
		ctx, span := t.scope.StartSpan(ctx, name, trace.WithTimestamp(since), trace.WithAttributes(attributes...))
		measure(ctx)
		t.scope.EndSpan(span, nil, trace.WithTimestamp(now))
	})
}

// Unhandled counts an error that no caller and no callback gets. source is "background", "listener", "callback" or
// "telemetry".
func (t *Telemetry) Unhandled(ctx context.Context, source string, err error) {
	if t == nil {
		return
	}
	if source != "telemetry" { // a panic of the driver must not be reported to the driver
		t.driver.event(ErrorUnhandled, 0)
	}
	if m := t.instruments(); m != nil {
		m.unhandledErrors.AddUnreported(ctx, 1,
			instrument.NewSet(t.scope.Base(errorSource.String(source), instrument.ErrorType.String(ErrorType(err)))...))
	}
}

// closedValue returns the Set of an attribute with a value of a closed set.
func (t *Telemetry) closedValue(key attribute.Key, value string) instrument.Set {
	if m, ok := t.closed.Load(value); ok {
		return m.(instrument.Set)
	}
	m := instrument.NewSet(t.scope.Base(key.String(value))...)
	t.closed.Store(value, m)
	return m
}
