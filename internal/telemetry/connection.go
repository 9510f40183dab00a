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

// maxHistory is how many changes operations that lasted through them tell of.
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

// StateNoted notes a change of the connection state, in order, when it happens: operations that end tell of it from
// then on.
func (t *Telemetry) StateNoted(state string) {
	if t.On() {
		t.history.Store(t.history.Load().with(change{time.Now(), state}))
	}
}

// StateChanged tells of a change of the connection state that happened at a time, in order.
func (t *Telemetry) StateChanged(state string, now time.Time) {
	if t == nil {
		return
	}
	ctx := context.Background() //nolint:forbidigo // nobody has asked for it
	if m := t.meter(); m != nil {
		add(ctx, m.stateChanges, 1, t.word(connectionState, state))
		if state == StateLost {
			add(ctx, m.expirations, 1, t.sessions)
		}
	}
	t.outage.mu.Lock()
	defer t.outage.mu.Unlock()
	o := &t.outage
	switch {
	case state == StateSuspended && o.since.IsZero():
		o.since = now
	case state == StateSuspended, o.since.IsZero():
	case o.connect && state != StateLost:
		t.connected(ctx, now)
	case !o.connect:
		t.outageEnded(ctx, state, now)
	}
}

// connected tells of the time to the first connection.
func (t *Telemetry) connected(ctx context.Context, now time.Time) {
	if tracer := t.tracer(); tracer != nil {
		_, span := tracer.Start(ctx, "curator.connect", trace.WithTimestamp(t.outage.since),
			trace.WithAttributes(t.base(t.server...)...))
		span.End(trace.WithTimestamp(now))
	}
	t.outage.since, t.outage.connect = time.Time{}, false
}

// outageEnded tells of the time without a connection: how it ended is all that there is to know.
func (t *Telemetry) outageEnded(ctx context.Context, state string, now time.Time) {
	outcome := outcomeKey.String("reconnected")
	if state == StateLost {
		outcome = outcomeKey.String("lost")
	}
	since := t.outage.since
	t.outage.since = time.Time{}
	if m := t.meter(); m != nil {
		record(ctx, m.outageDuration, now.Sub(since).Seconds(), newMeasurement(t.base(outcome)...))
	}
	if tracer := t.tracer(); tracer != nil {
		_, span := tracer.Start(ctx, "curator.connection.outage", trace.WithTimestamp(since),
			trace.WithAttributes(t.base(outcome)...))
		span.End(trace.WithTimestamp(now))
	}
}

// Unhandled notes an error that nobody else is told of; source is "background", "listener" or "callback".
func (t *Telemetry) Unhandled(ctx context.Context, source string, err error) {
	if t == nil {
		return
	}
	t.driver.count("background-exceptions", 0)
	if m := t.meter(); m != nil && m.unhandledErrors.Enabled(ctx) {
		m.unhandledErrors.Add(ctx, 1,
			metric.WithAttributes(t.base(errorSource.String(source), errorType.String(ErrorType(err)))...))
	}
}

// word returns the measurement of one word of a closed set.
func (t *Telemetry) word(key attribute.Key, word string) measurement {
	if m, ok := t.words.Load(word); ok {
		return m.(measurement)
	}
	m := newMeasurement(t.base(key.String(word))...)
	t.words.Store(word, m)
	return m
}
