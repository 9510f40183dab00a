package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/barrier"
)

// observed returns a client that is observed, and the context of a request that it serves.
func (s *scene) observed() (o *observe.Observer, client *framework.Client, ctx context.Context) {
	s.Helper()
	o = observe.New(s)
	client = s.client(framework.WithTracerProvider(o.Tracers), framework.WithMeterProvider(o.Meters))
	s.awaitSpans(o, "curator.connect", 1)
	ctx, request := o.Start(s.ctx, "request")
	request.End()
	return o, client, ctx
}

// awaitSpans waits until so many spans of a name have ended, and returns them.
func (s *scene) awaitSpans(o *observe.Observer, name string, n int) []sdktrace.ReadOnlySpan {
	s.Helper()
	testenv.Eventually(s, func() bool { return len(o.Named(name)) >= n }, fmt.Sprintf("%d times %s", n, name))
	return o.Named(name)
}

// wantTree waits for as many spans as there are lines, beside the one of the connection, and compares them.
func (s *scene) wantTree(o *observe.Observer, want string) {
	s.Helper()
	want = "curator.connect\n" + strings.TrimLeft(want, "\n")
	tree := func() string {
		return o.Tree("curator.recipe", "curator.resource.name", "curator.barrier.members", "curator.outcome")
	}
	defer func() {
		if diff := cmp.Diff(want, tree()); diff != "" {
			s.Errorf("spans (-want +got):\n%s", diff)
		}
	}()
	testenv.Eventually(s, func() bool { return len(o.Spans()) >= strings.Count(want, "\n") }, "all spans")
}

// wantOutcome waits for a span and compares its outcome; error is the type of its error, "" if its status is unset.
func (s *scene) wantOutcome(o *observe.Observer, name, want, errorType string) {
	s.Helper()
	span := s.awaitSpans(o, name, 1)[0]
	if got := observe.Attribute(span, "curator.outcome").AsString(); got != want {
		s.Errorf("outcome of %s is %s", name, got)
	}
	if got := observe.Attribute(span, "error.type").AsString(); got != errorType {
		s.Errorf("error type of %s is %q", name, got)
	}
	if failed := span.Status().Code == codes.Error; failed != (errorType != "") {
		s.Errorf("status of %s is %v", name, span.Status())
	}
}

func TestTelemetryBarrierWaitIsOneSpan(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	o, client, ctx := s.observed()
	b := barrier.NewDistributedBarrier(client, barrierPath, barrier.WithName("migration"))
	waiting := s.laterWith(ctx, b.WaitOnBarrier)
	s.awaitWatch("")
	s.must(s.raw.Delete(s.path(""), -1))
	waiting.returns()
	s.wantTree(o, `
request
  barrier wait curator.recipe=barrier curator.resource.name=migration curator.outcome=passed
    getData CLIENT
    getData CLIENT
`)
	s.wantOutcome(o, "barrier wait", "passed", "")
}

func TestTelemetryEnterAndLeaveAreOneSpanEach(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	o, client, ctx := s.observed()
	d := barrier.NewDistributedDoubleBarrier(client, barrierPath, 1, barrier.WithName("migration"))
	s.must(d.Enter(ctx))
	s.must(d.Leave(ctx))
	s.wantTree(o, `
request
  barrier enter curator.recipe=double_barrier curator.resource.name=migration curator.barrier.members=1 `+
		`curator.outcome=passed
    create CLIENT
    getChildren CLIENT
    exists CLIENT
    multi CLIENT
  barrier leave curator.recipe=double_barrier curator.resource.name=migration curator.barrier.members=1 `+
		`curator.outcome=passed
    getChildren CLIENT
    multi CLIENT
`)
}

// TestTelemetryWaitForOthersIsPartOfSpan has another member come last and go first.
func TestTelemetryWaitForOthersIsPartOfSpan(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	o, client, ctx := s.observed()
	a := s.member(client, "a", 2)
	entering := s.laterWith(ctx, a.Enter)
	s.awaitWatch("ready")
	s.awaitWatch("a") // set after a moment of waiting
	if ended := o.Named("barrier enter"); len(ended) != 0 {
		t.Error("the span has ended before the other has come")
	}
	s.put("b")
	s.put("ready")
	entering.returns()
	leaving := s.laterWith(ctx, a.Leave)
	s.awaitWatch("b")
	if ended := o.Named("barrier leave"); len(ended) != 0 {
		t.Error("the span has ended before the other has gone")
	}
	s.take("b")
	leaving.returns()
	s.wantTree(o, `
request
  barrier enter curator.recipe=double_barrier curator.barrier.members=2 curator.outcome=passed
    create CLIENT
    getChildren CLIENT
    exists CLIENT
    getData CLIENT
    exists CLIENT
    getChildren CLIENT
  barrier leave curator.recipe=double_barrier curator.barrier.members=2 curator.outcome=passed
    getData CLIENT
    getChildren CLIENT
    multi CLIENT
`)
}

func TestTelemetryBarrierOutcomes(t *testing.T) {
	t.Parallel()
	ends := map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"canceled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(10*time.Millisecond, cancel)
			return ctx, cancel
		},
		"timeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 10*time.Millisecond)
		},
	}
	for outcome, end := range ends {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			s := newBarrier(t)
			o, client, ctx := s.observed()
			d := s.member(client, "a", 2)
			s.put("b")
			s.put("ready")
			s.must(d.Enter(ctx))
			for _, wait := range []func(context.Context) error{
				barrier.NewDistributedBarrier(client, barrierPath).WaitOnBarrier,
				d.Leave,
			} {
				bounded, cancel := end(ctx)
				if err := wait(bounded); err == nil {
					t.Error("it has not waited")
				}
				cancel()
			}
			s.take("b", "ready")
			bounded, cancel := end(ctx)
			defer cancel()
			if err := d.Enter(bounded); err == nil {
				t.Error("it has not waited")
			}
			s.wantOutcome(o, "barrier wait", outcome, "")
			s.wantOutcome(o, "barrier leave", outcome, "")
			s.awaitSpans(o, "barrier enter", 2)
			last := o.Named("barrier enter")[1]
			if got := observe.Attribute(last, "curator.outcome").AsString(); got != outcome ||
				last.Status().Code != codes.Unset {
				t.Errorf("outcome %s, status %v", got, last.Status())
			}
		})
	}
}

func TestTelemetryBarrierErrorIsSpanStatus(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	o := observe.New(t)
	client, faults := s.proxied(append(impatient, framework.WithTracerProvider(o.Tracers))...)
	restore := faults.RefuseConnects()
	defer restore()
	faults.CutAll()
	s.outlast(client)
	err := barrier.NewDistributedBarrier(client, barrierPath).WaitOnBarrier(s.ctx)
	if !errors.Is(err, framework.ErrConnectionLoss) {
		t.Errorf("got %v", err)
	}
	s.wantOutcome(o, "barrier wait", "error", "CONNECTIONLOSS")
}

func TestTelemetryDurationsHaveBarrierName(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	o, client, ctx := s.observed()
	d := barrier.NewDistributedDoubleBarrier(client, barrierPath+"/double", 1, barrier.WithName("migration"))
	s.must(d.Enter(ctx))
	s.must(d.Leave(ctx))
	b := barrier.NewDistributedBarrier(client, barrierPath)
	if err := b.WaitOnBarrier(s.within(time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	want := strings.TrimLeft(`
curator.outcome=passed,curator.recipe=double_barrier,curator.resource.name=migration 2
curator.outcome=timeout,curator.recipe=barrier 1
`, "\n")
	if diff := cmp.Diff(want, o.Values(t, "curator.barrier.wait.duration")); diff != "" {
		t.Errorf("durations (-want +got):\n%s", diff)
	}
	bounds := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	for _, p := range observe.Points(o.Metrics(t)["curator.barrier.wait.duration"]) {
		if diff := cmp.Diff(bounds, p.Bounds); diff != "" {
			t.Errorf("bounds (-want +got):\n%s", diff)
		}
	}
}

func TestTelemetryPathsAddNoSeries(t *testing.T) {
	t.Parallel()
	const paths, hands = 400, 8
	s := newScene(t)
	o, client, ctx := s.observed()
	var wg sync.WaitGroup
	for range hands {
		wg.Go(func() {
			for range paths / hands {
				b := barrier.NewDistributedBarrier(client, fmt.Sprintf("/barrier-%x", rand.Uint64()))
				if err := b.WaitOnBarrier(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want := fmt.Sprintf("curator.outcome=passed,curator.recipe=barrier %d\n", paths)
	if diff := cmp.Diff(want, o.Values(t, "curator.barrier.wait.duration")); diff != "" {
		t.Errorf("durations (-want +got):\n%s", diff)
	}
	for name, m := range o.Metrics(t) {
		if n := len(observe.Points(m)); n > 6 { // the types of watch events
			t.Errorf("%s has %d series", name, n)
		}
	}
	o.WantBounded(t)
}

// TestTelemetryOffAllocatesNothing covers all telemetry of a wait.
func TestTelemetryOffAllocatesNothing(t *testing.T) {
	ctx := testenv.Context(t)
	for name, off := range map[string]*telemetry.Telemetry{"none": nil, "off": telemetry.New(telemetry.Config{})} {
		obs := report.NewBarrier(off, "double_barrier", "migration", barrierPath)
		allocations := testing.AllocsPerRun(100, func() {
			_, span := obs.Wait(off.ExpectingErrors(ctx), "enter", 3)
			span.End(report.Passed, nil)
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}
