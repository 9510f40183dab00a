package report_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/testenv/observe"
)

func TestLockWaitingCountsWaitersWhileTheyWait(t *testing.T) {
	o := observe.New(t)
	lock := report.NewLock(newTelemetry(o), "mutex", "orders", "/lock")
	_, first := lock.Acquire(t.Context())
	_, second := lock.Acquire(t.Context())
	const series = "curator.recipe=mutex,curator.resource.name=orders"
	wantMetric(t, o, "curator.lock.waiting", series+" 2\n")
	first.End(report.Acquired, nil)
	wantMetric(t, o, "curator.lock.waiting", series+" 1\n")
	second.End(report.Timeout, nil)
	wantMetric(t, o, "curator.lock.waiting", series+" 0\n")
}

func TestLeaderMetricsNameTheParticipant(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	blue := report.NewElection(tel, "leader_latch", "scheduler", "blue", "/leader")
	green := report.NewElection(tel, "leader_latch", "scheduler", "green", "/leader")
	ctx, wait := blue.Elect(t.Context())
	_, other := green.Elect(t.Context())
	wait.End(report.Elected, nil)
	term := blue.Term(ctx)

	series := func(participant, more string) string {
		return "curator.leader.participant=" + participant + more +
			",curator.recipe=leader_latch,curator.resource.name=scheduler"
	}
	wantMetric(t, o, "curator.leader.candidates", series("blue", "")+" 0\n"+series("green", "")+" 1\n")
	wantMetric(t, o, "curator.leader.active", series("blue", "")+" 1\n")
	other.End(report.EndedClosed, nil)
	term.End(report.EndedClosed)
	wantMetric(t, o, "curator.leader.candidates", series("blue", "")+" 0\n"+series("green", "")+" 0\n")
	wantMetric(t, o, "curator.leader.active", series("blue", "")+" 0\n")
	if got := o.Named("leader term")[0]; observe.Attribute(got, "curator.leader.participant").AsString() != "blue" {
		t.Errorf("the span has %v", got.Attributes())
	}
}

func TestParticipantsBeyondAHundredAreOne(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	for i := range 150 {
		election := report.NewElection(tel, "leader_latch", "", fmt.Sprint("pod-", i), "/leader")
		election.Term(t.Context()).End(report.EndedClosed)
	}
	if got := len(observe.Points(o.Metrics(t)["curator.leader.active"])); got != 101 {
		t.Errorf("%d series, want those of 100 participants and of all others", got)
	}
}

func wantMetric(tb testing.TB, o *observe.Observer, name, want string) {
	tb.Helper()
	if diff := cmp.Diff(want, o.Values(tb, name)); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
