package report

import (
	"context"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
)

type valueInstruments struct{ conflicts, uncertain instrument.Counter }

var valueKit = instrument.NewKit(func(d *instrument.Declarer) *valueInstruments {
	return &valueInstruments{
		conflicts: d.Counter("curator.value.conflicts", "{conflict}",
			"Writes of shared values and counters that were refused because another client had written before."),
		uncertain: d.Counter("curator.value.uncertain", "{write}",
			"Writes of shared values and counters whose answer was lost and whose outcome is not known."),
	}
})

// Value records what a shared value or a counter does.
type Value struct{ r resource }

// NewValue returns the report of a value. recipe is its kind. name is the name that the user gives it, or "".
func NewValue(t *telemetry.Telemetry, recipe, name, path string) Value {
	return Value{resource{t: t, key: seriesKey{recipe: recipe, name: name}, path: path}}
}

// Started begins the counters of the value with 0, so that a rate over them includes the first count.
func (v *Value) Started(ctx context.Context) {
	v.conflicts(ctx, 0)
	v.uncertain(ctx, 0)
}

// Conflict counts a write that was refused because another client had written before.
func (v *Value) Conflict(ctx context.Context) { v.conflicts(ctx, 1) }

// Uncertain counts a write whose outcome is not known.
func (v *Value) Uncertain(ctx context.Context) { v.uncertain(ctx, 1) }

func (v *Value) conflicts(ctx context.Context, n int) {
	if in := valueKit.Of(v.r.scope()); in != nil {
		in.conflicts.Add(ctx, n, v.r.measures().all)
	}
}

func (v *Value) uncertain(ctx context.Context, n int) {
	if in := valueKit.Of(v.r.scope()); in != nil {
		in.uncertain.Add(ctx, n, v.r.measures().all)
	}
}
