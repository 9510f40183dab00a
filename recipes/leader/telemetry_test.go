package leader_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/leader"
)

// scene is an election in which a client of ours takes part, observed.
type scene struct {
	*observe.Observer
	t      *testing.T
	client *framework.Client
}

func newScene(t *testing.T, connect string) *scene {
	t.Helper()
	s := &scene{Observer: observe.New(t), t: t}
	s.client = newClient(t, connect, steady,
		framework.WithTracerProvider(s.Tracers), framework.WithMeterProvider(s.Meters))
	silent := newClient(t, connect, steady)
	// Not a container, which the server removes when it is empty.
	_, err := silent.Create().ForPath(testenv.Context(t), electionPath, nil)
	must(t, err)
	must(t, s.client.BlockUntilConnected(testenv.Context(t)))
	s.awaitSpans("curator.connect", 1)
	return s
}

// expire ends the session of the client. It keeps the client from taking the session back before: the client would lead
// again, and lose that, too.
func (s *scene) expire(proxy *curatortest.Proxy) {
	s.t.Helper()
	defer proxy.Faults().RefuseConnects()()
	must(s.t, testenv.Server(s.t).ExpireSession(s.client.SessionID()))
}

// awaitSpans waits until so many spans of a name have ended, and returns them.
func (s *scene) awaitSpans(name string, n int) []sdktrace.ReadOnlySpan {
	s.t.Helper()
	testenv.Eventually(s.t, func() bool { return len(s.Named(name)) >= n }, fmt.Sprintf("%d times %s", n, name))
	return s.Named(name)
}

// wantTree waits for as many spans as there are lines, beside those of the connection, and compares them.
func (s *scene) wantTree(want string) {
	s.t.Helper()
	want = strings.TrimLeft(want, "\n")
	ours := func() string {
		tree := s.Tree("curator.recipe", "curator.resource.name", "curator.outcome")
		return strings.ReplaceAll(tree, "curator.connect\n", "")
	}
	defer func() {
		if diff := cmp.Diff(want, ours()); diff != "" {
			s.t.Errorf("spans (-want +got):\n%s", diff)
		}
	}()
	testenv.Eventually(s.t, func() bool { return strings.Count(ours(), "\n") >= strings.Count(want, "\n") }, "all spans")
}

// wantOutcomes waits for as many spans of a name as there are outcomes, and compares these.
func (s *scene) wantOutcomes(name string, want ...string) []sdktrace.ReadOnlySpan {
	s.t.Helper()
	spans := s.awaitSpans(name, len(want))
	var got []string
	for _, span := range spans {
		got = append(got, observe.Attribute(span, "curator.outcome").AsString())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("outcomes of %s (-want +got):\n%s", name, diff)
	}
	return spans
}

// wantValues compares the series of a metric.
func (s *scene) wantValues(name, want string) {
	s.t.Helper()
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), s.Values(s.t, name)); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// wantLinked fails the test if a span is not in the trace of another, and linked to it.
func (s *scene) wantLinked(span, to sdktrace.ReadOnlySpan) {
	s.t.Helper()
	if span.SpanContext().TraceID() != to.SpanContext().TraceID() {
		s.t.Errorf("%s is not in the trace of its %s", span.Name(), to.Name())
	}
	if links := span.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != to.SpanContext().SpanID() {
		s.t.Errorf("%s has the links %v", span.Name(), links)
	}
}

func TestTelemetryLatchWorkIsInTraceOfElection(t *testing.T) {
	t.Parallel()
	s := newScene(t, testenv.ConnectString(t))
	latch, _ := startLatch(t, s.client, "latch", leader.WithName("reports"))
	leadership := await(t, latch)
	s.awaitSpans("getChildren", 2) // it has looked once more
	_, err := s.client.CheckExists().ForPath(leadership.Context(), "/work")
	must(t, err)
	s.wantValues("curator.leader.active", `
curator.leader.participant=latch,curator.recipe=leader_latch,curator.resource.name=reports 1
`)
	must(t, latch.Close())
	s.wantTree(`
leader elect curator.recipe=leader_latch curator.resource.name=reports curator.outcome=elected
  create CLIENT
  getChildren CLIENT
  leader term curator.recipe=leader_latch curator.resource.name=reports curator.outcome=closed -> leader elect
  getData CLIENT
  getChildren CLIENT
  exists CLIENT
  delete CLIENT
`)
	s.wantValues("curator.leader.active", `
curator.leader.participant=latch,curator.recipe=leader_latch,curator.resource.name=reports 0
`)
	s.wantValues("curator.leader.changes", `
curator.leader.participant=latch,curator.outcome=closed,curator.recipe=leader_latch,curator.resource.name=reports 1
curator.leader.participant=latch,curator.outcome=elected,curator.recipe=leader_latch,curator.resource.name=reports 1
`)
	s.wantValues("curator.leader.term.duration", `
curator.leader.participant=latch,curator.outcome=closed,curator.recipe=leader_latch,curator.resource.name=reports 1
`)
	s.WantBounded(t)
}

// TestTelemetryLatchBehindAnotherIsElected has one span for all of the waiting.
func TestTelemetryLatchBehindAnotherIsElected(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	s := newScene(t, connect)
	first, _ := startLatch(t, newClient(t, connect, steady), "first")
	await(t, first)
	latch, _ := startLatch(t, s.client, "second")
	s.awaitSpans("getData", 1) // of the first, which is watched then
	if elects := s.Named("leader elect"); len(elects) != 0 {
		t.Errorf("%d elections have ended", len(elects))
	}
	must(t, first.Close())
	await(t, latch)
	s.wantOutcomes("leader elect", "elected")
	must(t, latch.Close())
	s.wantOutcomes("leader term", "closed")
}

func TestTelemetryNamedElectionCountsLeadersAndCandidates(t *testing.T) {
	t.Parallel()
	s := newScene(t, testenv.ConnectString(t))
	blue, _ := startLatch(t, s.client, "blue", leader.WithName("jobs"))
	await(t, blue)
	green := leader.NewLeaderSelector(s.client, "/selectors", func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}, leader.WithName("jobs"), leader.WithID("green"))
	must(t, green.Start())
	candidate, _ := startLatch(t, s.client, "red", leader.WithName("jobs"))
	series := func(participant string) string {
		return "curator.leader.participant=" + participant + ",curator.recipe=leader_latch,curator.resource.name=jobs"
	}
	const selector = "curator.leader.participant=green,curator.recipe=leader_selector,curator.resource.name=jobs"
	active := series("blue") + " 1\n" + selector + " 1\n"
	testenv.Eventually(t, func() bool { return s.Values(t, "curator.leader.active") == active }, "a leader of each")
	candidates := func() string { return s.Values(t, "curator.leader.candidates") }
	waits := series("blue") + " 0\n" + selector + " 0\n" + series("red") + " 1\n"
	testenv.Eventually(t, func() bool { return candidates() == waits }, "a candidate")
	must(t, candidate.Close())
	must(t, blue.Close())
	must(t, green.Close())
	s.wantValues("curator.leader.candidates", series("blue")+" 0\n"+selector+" 0\n"+series("red")+" 0\n")
	s.wantValues("curator.leader.active", series("blue")+" 0\n"+selector+" 0\n")
	s.WantBounded(t)
}

// TestTelemetryLatchReconnectedHasTwoTerms has a session that outlasts the loss.
func TestTelemetryLatchReconnectedHasTwoTerms(t *testing.T) {
	t.Parallel()
	proxy, connect, _ := newProxy(t)
	s := newScene(t, connect)
	latch, events := startLatch(t, s.client, "latch")
	events.want(true)
	s.awaitSpans("getChildren", 2) // it has looked once more
	proxy.Faults().CutAll()
	events.want(false)
	events.want(true)
	must(t, latch.Close())
	elect := s.wantOutcomes("leader elect", "elected")[0]
	for _, term := range s.wantOutcomes("leader term", "lost", "closed") {
		s.wantLinked(term, elect)
	}
	s.wantValues("curator.leader.active", "curator.recipe=leader_latch 0\n")
	s.wantValues("curator.leader.changes", `
curator.outcome=closed,curator.recipe=leader_latch 1
curator.outcome=elected,curator.recipe=leader_latch 2
curator.outcome=lost,curator.recipe=leader_latch 1
`)
}

func TestTelemetryLatchSessionExpiredStartsTrace(t *testing.T) {
	t.Parallel()
	proxy, connect := proxyBeside(t, testenv.ConnectString(t))
	s := newScene(t, connect)
	latch, events := startLatch(t, s.client, "latch")
	events.want(true)
	s.expire(proxy)
	events.want(false)
	events.want(true)
	must(t, latch.Close())
	terms := s.wantOutcomes("leader term", "lost", "closed")
	elects := s.Named("leader elect")
	if len(elects) < 2 { // one that the loss has interrupted may be between them
		t.Fatalf("%d elections", len(elects))
	}
	last := elects[len(elects)-1]
	s.wantLinked(terms[0], elects[0])
	s.wantLinked(terms[1], last)
	if elects[0].SpanContext().TraceID() == last.SpanContext().TraceID() {
		t.Error("both elections are of one trace")
	}
	for _, elect := range elects {
		if elect.Parent().IsValid() {
			t.Errorf("an election is caused by %v", elect.Parent())
		}
	}
	s.wantValues("curator.leader.active", "curator.recipe=leader_latch 0\n")
}

// TestTelemetryElectionCancelledIsCanceled closes a participant before its turn.
func TestTelemetryElectionCancelledIsCanceled(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	s := newScene(t, connect)
	first, _ := startLatch(t, newClient(t, connect, steady), "first")
	await(t, first)
	leads := newTurns()
	receiveTurn := startSelector(t, newClient(t, connect, steady), leads)
	receive(t, leads.began, "the first selector leads")
	defer func() { must(t, receiveTurn.Close()) }()
	latch, _ := startLatch(t, s.client, "second")
	selector := startSelector(t, s.client, newTurns())
	s.awaitSpans("getData", 2) // both watch the node before theirs
	must(t, latch.Close())
	must(t, selector.Close())
	for _, elect := range s.wantOutcomes("leader elect", "canceled", "canceled") {
		if elect.Status().Code != codes.Unset {
			t.Errorf("status %v", elect.Status())
		}
	}
	if terms := s.Named("leader term"); len(terms) != 0 {
		t.Errorf("%d terms", len(terms))
	}
	if points := observe.Points(s.Metrics(t)["curator.leader.active"]); len(points) != 0 {
		t.Errorf("active are %v", points)
	}
}

func TestTelemetrySelectorTurnIsTraceWithOutcome(t *testing.T) {
	t.Parallel()
	proxy, connect := proxyBeside(t, testenv.ConnectString(t))
	s := newScene(t, connect)
	f := newTurns()
	selector := startSelector(t, s.client, f, leader.WithAutoRequeue(), leader.WithName("reports"))
	ends := []func(){
		func() { f.stop <- nil },
		func() {
			if !selector.InterruptLeadership() {
				t.Error("it does not lead")
			}
		},
		func() { s.expire(proxy) },
		func() { must(t, selector.Close()) },
	}
	var works []trace.TraceID
	for _, end := range ends {
		ctx := receive(t, f.began, "it leads")
		works = append(works, trace.SpanContextFromContext(ctx).TraceID())
		end()
		receive(t, f.ended, "its turn is over")
	}
	terms := s.wantOutcomes("leader term", "returned", "interrupted", "lost", "closed")
	seen := map[trace.TraceID]bool{}
	for i, term := range terms {
		id := term.SpanContext().TraceID()
		if id != works[i] || seen[id] {
			t.Errorf("term %d and its work are in %v and %v, seen: %t", i, id, works[i], seen[id])
		}
		seen[id] = true
		if term.Status().Code != codes.Unset {
			t.Errorf("status %v", term.Status())
		}
		for _, elect := range s.Named("leader elect") {
			if elect.SpanContext().TraceID() == id {
				s.wantLinked(term, elect)
			}
		}
	}
	s.wantValues("curator.leader.active", `
curator.recipe=leader_selector,curator.resource.name=reports 0
`)
	s.wantValues("curator.leader.changes", `
curator.outcome=closed,curator.recipe=leader_selector,curator.resource.name=reports 1
curator.outcome=elected,curator.recipe=leader_selector,curator.resource.name=reports 4
curator.outcome=interrupted,curator.recipe=leader_selector,curator.resource.name=reports 1
curator.outcome=lost,curator.recipe=leader_selector,curator.resource.name=reports 1
curator.outcome=returned,curator.recipe=leader_selector,curator.resource.name=reports 1
`)
}

func TestTelemetrySelectorRequeuedStartsTrace(t *testing.T) {
	t.Parallel()
	s := newScene(t, testenv.ConnectString(t))
	f := newTurns()
	selector := startSelector(t, s.client, f)
	for range 2 {
		receive(t, f.began, "it leads")
		f.stop <- nil
		receive(t, f.ended, "its turn is over")
		testenv.Eventually(t, func() bool { return !selector.HasLeadership() && selector.Requeue() }, "it is queued again")
	}
	receive(t, f.began, "it leads")
	must(t, selector.Close())
	seen := map[trace.TraceID]bool{}
	for _, elect := range s.wantOutcomes("leader elect", "elected", "elected", "elected") {
		seen[elect.SpanContext().TraceID()] = true
	}
	s.wantOutcomes("leader term", "returned", "returned", "closed")
	if len(seen) != 3 {
		t.Errorf("%d traces", len(seen))
	}
}

func TestTelemetryPathsAddNoSeries(t *testing.T) {
	t.Parallel()
	s := newScene(t, testenv.ConnectString(t))
	const paths = 50
	for i := range paths {
		latch := leader.NewLeaderLatch(s.client, fmt.Sprintf("%s-%d", electionPath, i))
		must(t, latch.Start())
		await(t, latch)
		must(t, latch.Close())
	}
	s.wantValues("curator.leader.changes", fmt.Sprintf(`
curator.outcome=closed,curator.recipe=leader_latch %[1]d
curator.outcome=elected,curator.recipe=leader_latch %[1]d
`, paths))
	s.WantBounded(t)
	elects := s.awaitSpans("leader elect", paths)
	if got := observe.Attribute(elects[1], attribute.Key("zookeeper.path")).AsString(); got != electionPath+"-1" {
		t.Errorf("a span has the path %q", got)
	}
}

// TestTelemetryOffAllocatesNothing covers all telemetry of a participant.
func TestTelemetryOffAllocatesNothing(t *testing.T) {
	ctx := testenv.Context(t)
	for name, off := range map[string]*telemetry.Telemetry{"none": nil, "off": telemetry.New(telemetry.Config{})} {
		election := report.NewElection(off, "leader_latch", "reports", "", electionPath)
		allocations := testing.AllocsPerRun(100, func() {
			electing, span := election.Elect(ctx)
			span.End(report.Elected, nil)
			election.Term(electing).End(report.EndedClosed)
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}

type processor func(sdktrace.ReadOnlySpan)

func (processor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (f processor) OnEnd(s sdktrace.ReadOnlySpan)                 { f(s) }
func (processor) Shutdown(context.Context) error                  { return nil }
func (processor) ForceFlush(context.Context) error                { return nil }

// A slow or curious span processor must not hold the latch's mutex.
func TestTelemetryTermEndsOutsideMutex(t *testing.T) {
	var latch *leader.LeaderLatch
	locked := make(chan bool, 10)
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(processor(func(s sdktrace.ReadOnlySpan) {
		if s.Name() != "leader term" {
			return
		}
		done := make(chan struct{})
		go func() { latch.HasLeadership(); close(done) }()
		select {
		case <-done:
			locked <- true
		case <-time.After(5 * time.Second):
			locked <- false
		}
	})))
	client := newClient(t, testenv.ConnectString(t), steady, framework.WithTracerProvider(tp))
	latch = leader.NewLeaderLatch(client, electionPath, leader.WithID("a"))
	must(t, latch.Start())
	await(t, latch)
	must(t, latch.Close())
	if !<-locked {
		t.Error("the latch was locked while its term was reported")
	}
}
