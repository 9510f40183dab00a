package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Election records what a participant of an election does.
type Election struct{ r resource }

// NewElection returns the telemetry of a participant of a recipe. name and participant are what the user calls the
// election and the participant, "" for nothing.
func (t *Telemetry) NewElection(recipe, name, participant, path string) Election {
	return Election{resource{t: t, recipe: recipe, name: name, participant: participant, path: path}}
}

var electionWait = waitMetrics{
	waiting: func(m *instruments) metric.Int64UpDownCounter { return m.leaderCandidates },
}

// Elect begins a wait for leadership: the root of a trace, whose context is for all that is done in the term that
// follows.
func (e *Election) Elect(ctx context.Context) (context.Context, *Wait) {
	if !e.r.on() { // else the option would cost an allocation
		return ctx, nil
	}
	return e.r.wait(ctx, "leader elect", electionWait, trace.WithNewRoot())
}

// Term begins the tenure of a leader; ctx is that of the election.
func (e *Election) Term(ctx context.Context) *HoldSpan {
	if !e.r.on() {
		return nil
	}
	h := &HoldSpan{
		of: &e.r, metrics: e.r.t.meter(),
		parent: ctx, link: trace.SpanContextFromContext(ctx), name: "leader term", start: time.Now(),
		dropped:   isDropped(ctx),
		ended:     func(h *HoldSpan, outcome string) { h.countLeader(-1, outcome) },
		durations: func(m *instruments) metric.Float64Histogram { return m.termDuration },
	}
	if h.metrics != nil {
		h.countLeader(1, Elected)
	}
	return h
}

// countLeader counts a beginning or an end of leadership.
func (h *HoldSpan) countLeader(n int, outcome string) {
	h.of.t.addUpDown(h.parent, h.metrics.leaderActive, n, h.of.measures().all)
	h.of.t.add(h.parent, h.metrics.leaderChanges, 1, h.of.measures().outcomes.get(outcome))
}
