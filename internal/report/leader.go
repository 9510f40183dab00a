package report

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
)

const participantKey = attribute.Key("curator.leader.participant")

type leaderInstruments struct {
	active       instrument.UpDownCounter
	candidates   instrument.UpDownCounter
	changes      instrument.Counter
	termDuration instrument.Histogram
}

var leaderKit = instrument.NewKit(func(d *instrument.Declarer) *leaderInstruments {
	return &leaderInstruments{
		active: d.UpDownCounter("curator.leader.active", "{leader}", "Leaders in this process."),
		candidates: d.UpDownCounter("curator.leader.candidates", "{candidate}",
			"Participants in this process that wait for leadership."),
		changes:      d.Counter("curator.leader.changes", "{change}", "Beginnings and ends of leadership in this process."),
		termDuration: d.Histogram("curator.leader.term.duration", "Time of leadership.", holdBuckets),
	}
})

// Election records what a participant of an election does.
type Election struct{ r resource }

// NewElection returns the report of a participant. name and participant are the names that the user gives to the
// election and the participant, or "".
func NewElection(t *telemetry.Telemetry, recipe, name, participant, path string) Election {
	return Election{resource{t: t, key: seriesKey{recipe, name, participant}, path: path}}
}

// Elect begins a wait for leadership. Its span is the root of a trace, which the operations of the term continue.
func (e *Election) Elect(ctx context.Context) (context.Context, *Wait) {
	if !e.r.on() { // without this check the option would cost an allocation
		return ctx, nil
	}
	e.addZeros(ctx)
	return e.r.wait(ctx, "leader elect", electionWait, trace.WithNewRoot())
}

// addZeros adds 0 to the series of changes, so that a rate over them includes the first change.
func (e *Election) addZeros(ctx context.Context) {
	if in := leaderKit.Of(e.r.scope()); in != nil {
		for _, outcome := range []string{Elected, Lost, EndedClosed, Interrupted, Returned} {
			in.changes.Add(ctx, 0, e.r.measures().outcomes.Get(outcome))
		}
	}
}

func electionWait(s *instrument.Scope) (w waitInstruments) {
	if in := leaderKit.Of(s); in != nil {
		w.waiting = &in.candidates
	}
	return w
}

// Term begins a term of leadership; ctx is the context of the election.
func (e *Election) Term(ctx context.Context) *HoldSpan {
	if !e.r.on() {
		return nil
	}
	h := &HoldSpan{
		of: &e.r, parent: ctx, link: trace.SpanContextFromContext(ctx), name: "leader term",
		dropped: instrument.IsDropped(ctx), start: time.Now(), count: countLeader,
	}
	if in := leaderKit.Of(e.r.scope()); in != nil {
		h.duration = &in.termDuration
		h.count(h, 1, Elected)
	}
	return h
}

// countLeader counts the beginning or the end of a term.
func countLeader(h *HoldSpan, n int, outcome string) {
	in, m := leaderKit.Of(h.of.scope()), h.of.measures()
	in.active.Add(h.parent, n, m.all)
	in.changes.Add(h.parent, 1, m.outcomes.Get(outcome))
}
