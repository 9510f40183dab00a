package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Lock records what a lock or a semaphore does.
type Lock struct{ r resource }

// NewLock returns the telemetry of a lock. name is the name that the user gives it, or "".
func (t *Telemetry) NewLock(recipe, name, path string) Lock {
	return Lock{resource{t: t, recipe: recipe, name: name, path: path}}
}

// Acquire begins the wait for the lock.
func (l *Lock) Acquire(ctx context.Context) (context.Context, *Wait) {
	return l.r.wait(ctx, "lock acquire", lockWait)
}

// Reentrant says that the owner had the lock before.
func (w *Wait) Reentrant() {
	if w.IsSeen() { // else it would cost an allocation
		w.set(reentrant.Bool(true))
	}
}

// Position says how many were ahead when the wait began.
func (w *Wait) Position(n int) {
	if w.IsSeen() {
		w.set(lockPosition.Int(n))
	}
}

// Hold begins the tenure of a lock that was granted after a wait.
func (l *Lock) Hold(acquired *Wait) *HoldSpan {
	if acquired == nil {
		return nil
	}
	h := &HoldSpan{
		of: &l.r, metrics: l.r.t.meter(),
		parent: acquired.caller, link: trace.SpanContextFromContext(acquired.ctx), name: "lock hold", start: time.Now(),
		dropped: isDropped(acquired.ctx), ended: holdEnded, durations: holdDuration,
	}
	if !trace.SpanContextFromContext(h.parent).IsValid() { // it has no other trace than that of the wait
		h.parent = acquired.ctx
	}
	if h.metrics != nil {
		l.r.t.addUpDown(h.parent, h.metrics.held, 1, l.r.measures().all)
	}
	return h
}

var lockWait = waitMetrics{
	durations: func(m *instruments) metric.Float64Histogram { return m.acquireDuration },
	waiting:   func(m *instruments) metric.Int64UpDownCounter { return m.lockWaiting },
}

func holdDuration(m *instruments) metric.Float64Histogram { return m.holdDuration }

func holdEnded(h *HoldSpan, _ string) {
	h.of.t.addUpDown(h.parent, h.metrics.held, -1, h.of.measures().all)
}
