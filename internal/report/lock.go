package report

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
)

const (
	reentrant    = attribute.Key("curator.lock.reentrant")
	lockPosition = attribute.Key("curator.lock.position")
)

type lockInstruments struct {
	acquireDuration instrument.Histogram
	holdDuration    instrument.Histogram
	held            instrument.UpDownCounter
	waiting         instrument.UpDownCounter
}

var lockKit = instrument.NewKit(func(d *instrument.Declarer) *lockInstruments {
	return &lockInstruments{
		acquireDuration: d.Histogram("curator.lock.acquire.duration", "Time that a lock or a lease was waited for.",
			waitBuckets),
		holdDuration: d.Histogram("curator.lock.hold.duration", "Time that a lock or a lease was held.", holdBuckets),
		held:         d.UpDownCounter("curator.lock.held", "{lock}", "Locks and leases that are held."),
		waiting:      d.UpDownCounter("curator.lock.waiting", "{waiter}", "Calls that wait for a lock or a lease."),
	}
})

// Lock records what a lock or a semaphore does.
type Lock struct{ r resource }

// NewLock returns the report of a lock. name is the name that the user gives it, or "".
func NewLock(t *telemetry.Telemetry, recipe, name, path string) Lock {
	return Lock{resource{t: t, key: seriesKey{recipe: recipe, name: name}, path: path}}
}

// Acquire begins the wait for the lock.
func (l *Lock) Acquire(ctx context.Context) (context.Context, *Wait) {
	return l.r.wait(ctx, "lock acquire", lockWait)
}

func lockWait(s *instrument.Scope) (w waitInstruments) {
	if in := lockKit.Of(s); in != nil {
		w = waitInstruments{duration: &in.acquireDuration, waiting: &in.waiting}
	}
	return w
}

// Reentrant records that the owner already held the lock.
func (w *Wait) Reentrant() {
	if w.IsRecording() { // without this check the attribute would cost an allocation
		w.set(reentrant.Bool(true))
	}
}

// Position records the number of nodes that were ahead at the beginning of the wait.
func (w *Wait) Position(n int) {
	if w.IsRecording() {
		w.set(lockPosition.Int(n))
	}
}

// Hold begins the hold of a lock that was granted after a wait.
func (l *Lock) Hold(acquired *Wait) *HoldSpan {
	if acquired == nil {
		return nil
	}
	h := &HoldSpan{
		of: &l.r, parent: acquired.caller, link: trace.SpanContextFromContext(acquired.ctx), name: "lock hold",
		dropped: instrument.IsDropped(acquired.ctx), start: time.Now(), count: countLock,
	}
	if !trace.SpanContextFromContext(h.parent).IsValid() { // the wait begins the trace
		h.parent = acquired.ctx
	}
	if in := lockKit.Of(l.r.scope()); in != nil {
		h.duration = &in.holdDuration
		h.count(h, 1, Acquired)
	}
	return h
}

// countLock counts the beginning or the end of a hold.
func countLock(h *HoldSpan, n int, _ string) {
	lockKit.Of(h.of.scope()).held.Add(h.parent, n, h.of.measures().all)
}
