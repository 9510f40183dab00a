package report

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
)

const barrierMembers = attribute.Key("curator.barrier.members")

type barrierInstruments struct{ waitDuration instrument.Histogram }

var barrierKit = instrument.NewKit(func(d *instrument.Declarer) *barrierInstruments {
	return &barrierInstruments{
		waitDuration: d.Histogram("curator.barrier.wait.duration", "Time that was waited at a barrier.", waitBuckets),
	}
})

// Barrier records what a barrier does.
type Barrier struct{ r resource }

// NewBarrier returns the report of a barrier. name is the name that the user gives it, or "".
func NewBarrier(t *telemetry.Telemetry, recipe, name, path string) Barrier {
	return Barrier{resource{t: t, key: seriesKey{recipe: recipe, name: name}, path: path}}
}

// Wait begins a wait at the barrier. step is "wait", "enter" or "leave". members is the number of members, 0 if it is
// unknown.
func (b *Barrier) Wait(ctx context.Context, step string, members int) (context.Context, *Wait) {
	if !b.r.on() {
		return ctx, nil
	}
	ctx, w := b.r.wait(ctx, "barrier "+step, barrierWait)
	if members > 0 {
		w.set(barrierMembers.Int(members))
	}
	return ctx, w
}

func barrierWait(s *instrument.Scope) (w waitInstruments) {
	if in := barrierKit.Of(s); in != nil {
		w.duration = &in.waitDuration
	}
	return w
}
