package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// change is a change of the connection state.
type change struct {
	at    time.Time
	state string
}

// history is the last changes, the oldest first. It is not changed once it is there.
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

// outage is the time without a connection: from the start of the client to the first, and from each loss to the next,
// or to that of the session.
type outage struct {
	mu      sync.Mutex
	since   time.Time // zero if there is none
	connect bool      // it is that before the first connection
}

// The states that telemetry knows: those of package framework in small letters.
const (
	StateConnected   = "connected"
	StateSuspended   = "suspended"
	StateReconnected = "reconnected"
	StateLost        = "lost"
	StateReadOnly    = "read_only"
)

// Started notes that the client has begun to connect.
func (t *Telemetry) Started() {
	if t == nil {
		return
	}
	t.outage.mu.Lock()
	defer t.outage.mu.Unlock()
	t.outage.since, t.outage.connect = time.Now(), true
}

// StateNoted adds a change of the connection state to the history, in order, when it happens. The spans of operations
// that end afterwards show it.
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
	ctx := context.Background() //nolint:forbidigo // no caller has a part in it
	if m := t.meter(); m != nil {
		t.add(ctx, m.stateChanges, 1, t.closedValue(connectionState, state))
		if state == StateLost {
			t.add(ctx, m.expirations, 1, t.sessions)
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
		record = func() { t.passed(ctx, "curator.connect", since, now, t.base(t.server...), nil) }
	default:
		record = func() { t.outageEnded(ctx, state, since, now) }
	}
	o.since, o.connect = time.Time{}, false
	return record
}

// outageEnded records the time without a connection, with the state that ended it.
func (t *Telemetry) outageEnded(ctx context.Context, state string, since, now time.Time) {
	outcome := outcomeKey.String("reconnected")
	if state == StateLost {
		outcome = outcomeKey.String("lost")
	}
	t.passed(ctx, "curator.connection.outage", since, now, t.base(outcome), func(ctx context.Context) {
		if m := t.meter(); m != nil {
			t.record(ctx, m.outageDuration, now.Sub(since).Seconds(), newMeasurement(t.base(outcome)...))
		}
	})
}

// passed writes the span of a time that has passed, and calls measure, if there is one, with its context. Listeners
// wait behind it: it runs on another goroutine.
func (t *Telemetry) passed(
	ctx context.Context, name string, since, now time.Time, attributes []attribute.KeyValue, measure func(context.Context),
) {
	if measure == nil {
		measure = func(context.Context) {}
	}
	if t.tracer() == nil {
		measure(ctx)
		return
	}
	t.Later(func() {
		ctx, span := t.startSpan(ctx, name, trace.WithTimestamp(since), trace.WithAttributes(attributes...))
		measure(ctx)
		t.endSpan(span, nil, trace.WithTimestamp(now))
	})
}

// Unhandled counts an error that no caller and no callback gets. source is "background", "listener" or "callback".
func (t *Telemetry) Unhandled(ctx context.Context, source string, err error) {
	if t == nil {
		return
	}
	if source != "telemetry" { // whose panics would follow one another for ever
		t.driver.count("background-exceptions", 0)
	}
	defer func() { _ = recover() }()
	if m := t.meter(); m != nil && m.unhandledErrors.Enabled(ctx) {
		m.unhandledErrors.Add(ctx, 1,
			metric.WithAttributes(t.base(errorSource.String(source), errorType.String(ErrorType(err)))...))
	}
}

// closedValue returns the measurement of a value of a closed set.
func (t *Telemetry) closedValue(key attribute.Key, value string) measurement {
	if m, ok := t.closed.Load(value); ok {
		return m.(measurement)
	}
	m := newMeasurement(t.base(key.String(value))...)
	t.closed.Store(value, m)
	return m
}
