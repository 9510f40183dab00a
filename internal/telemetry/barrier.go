package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// Barrier records what a barrier does.
type Barrier struct{ r resource }

// NewBarrier returns the telemetry of a barrier. name is the name that the user gives it, or "".
func (t *Telemetry) NewBarrier(recipe, name, path string) Barrier {
	return Barrier{resource{t: t, recipe: recipe, name: name, path: path}}
}

var barrierWait = waitMetrics{
	durations: func(m *instruments) metric.Float64Histogram { return m.barrierDuration },
}

// Wait begins what is waited for at the barrier: "wait", "enter" or "leave". members is how many have to come, 0 if
// that is not known.
func (b *Barrier) Wait(ctx context.Context, what string, members int) (context.Context, *Wait) {
	if !b.r.on() {
		return ctx, nil
	}
	ctx, w := b.r.wait(ctx, "barrier "+what, barrierWait)
	if members > 0 {
		w.set(barrierMembers.Int(members))
	}
	return ctx, w
}
