package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Election is what one who takes part in an election tells.
type Election struct{ r *resource }

// NewElection returns what a participant of a recipe tells; name is what the user calls the election, "" for nothing.
func (t *Telemetry) NewElection(recipe, name, path string) Election {
	return Election{t.newResource(recipe, name, path)}
}

// Elect begins a wait for leadership: the root of a trace, whose context is for all that is done in the term that follows.
func (e Election) Elect(ctx context.Context) (context.Context, *Wait) {
	if !e.r.on() { // else the option would cost an allocation
		return ctx, nil
	}
	return e.r.wait(ctx, "leader elect", nil, trace.WithNewRoot())
}

// Term begins the tenure of a leader; ctx is that of the election.
func (e Election) Term(ctx context.Context) *Tenure {
	if !e.r.on() {
		return nil
	}
	turn := func(m *instruments, ctx context.Context, n int, outcome string) {
		addUpDown(ctx, m.leaderActive, n, e.r.all)
		add(ctx, m.leaderChanges, 1, e.r.outcomes.get(outcome))
	}
	h := &Tenure{
		of: e.r, metrics: e.r.t.meter(),
		parent: ctx, link: trace.SpanContextFromContext(ctx), name: "leader term", start: time.Now(),
		ended:     func(m *instruments, ctx context.Context, outcome string) { turn(m, ctx, -1, outcome) },
		durations: func(m *instruments) metric.Float64Histogram { return m.termDuration },
	}
	if h.metrics != nil {
		turn(h.metrics, ctx, 1, Elected)
	}
	return h
}
