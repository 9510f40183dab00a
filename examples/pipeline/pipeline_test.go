package main

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestEachJobIsOneTraceFromItsProducerToTheLastCallback(t *testing.T) {
	o := observe.New(t)
	seen := &observation{tracers: o.Tracers, meters: o.Meters}
	options := options{connect: testenv.ConnectString(t), jobs: 6, producers: 2, workers: 2}
	var out strings.Builder
	if err := newPipeline(options, seen, &out).run(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	if want := "6 of 6 jobs are done"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in:\n%s", want, out.String())
	}
	jobs := make(map[trace.TraceID]map[string]int)
	for _, s := range o.Named("submit job") {
		jobs[s.SpanContext().TraceID()] = make(map[string]int)
	}
	if len(jobs) != options.jobs {
		t.Errorf("%d traces of %d jobs", len(jobs), options.jobs)
	}
	for _, s := range o.Spans() {
		if names := jobs[s.SpanContext().TraceID()]; names != nil {
			names[s.Name()]++
		}
	}
	for id, names := range jobs {
		for _, want := range []string{
			"send jobs", "process jobs", "lock acquire", "lock hold", "create", "setData",
			"getData", "settle jobs",
		} {
			if names[want] == 0 {
				t.Errorf("no %s in trace %s: %v", want, id, names)
			}
		}
	}
}

func TestTracesAndMetricsAreShown(t *testing.T) {
	t.Setenv(endpoint, "")
	var out strings.Builder
	o := options{connect: testenv.ConnectString(t), jobs: 3, producers: 1, workers: 2, shown: 1}
	if err := run(testenv.Context(t), o, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"submit job  [server]\n", "└─ send jobs  [producer", "process jobs  [consumer", "└─ setData  [client",
		"leader elect  [",
		"lock hold  [", "  → lock acquire\n", " more traces: ", " curator.connect",
		"messaging.client.sent.messages", "curator.lock.held",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "submit job  ["); n != 1 {
		t.Errorf("%d traces of jobs are shown, not 1", n)
	}
}

// A transaction of several puts is in the trace of none of them.
func TestTransactionIsShownWithTheSendsThatItIsLinkedTo(t *testing.T) {
	o := observe.New(t)
	var sends []trace.Link
	for range 5 {
		ctx, submit := o.Start(t.Context(), "submit job")
		_, send := o.Start(ctx, "send jobs")
		sends = append(sends, trace.Link{SpanContext: send.SpanContext()})
		send.End()
		submit.End()
	}
	tracer := o.Tracers.Tracer("test")
	for _, links := range [][]trace.Link{sends[:4], sends[4:]} {
		_, create := tracer.Start(t.Context(), "multi create", trace.WithLinks(links...))
		create.End()
	}
	var out strings.Builder
	showTraces(&out, o.Spans(), 1)
	short := func(s trace.SpanContext) string { return s.TraceID().String()[:8] }
	of := func(i int) string { return "send jobs (trace " + short(sends[i].SpanContext) + "…)" }
	for _, want := range []string{
		"└─ send jobs  ← multi create (trace " + short(o.Named("multi create")[0].SpanContext()) + "…)\n",
		"multi create  → " + of(0) + ", " + of(1) + ", " + of(2) + ", 1 more\n",
		"\n5 more traces: 1 multi create, 4 submit job\n",
	} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

// said has what is written, line by line.
type said chan string

func (s said) Write(line []byte) (int, error) {
	s <- string(line)
	return len(line), nil
}

func TestLeaderCountsTheJobsWhoseLastStepIsDone(t *testing.T) {
	o, ctx := observe.New(t), testenv.Context(t)
	seen := &observation{tracers: o.Tracers, meters: o.Meters}
	received := make(said, 10)
	p := newPipeline(options{connect: testenv.ConnectString(t), jobs: 2}, seen, received)
	if err := p.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	for len(received) > 0 { // that it waits: a busy machine takes its time to connect
		<-received
	}
	client, err := newClient(p.options, seen)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // other tests close, too
	result := p.results + "/job-0"
	if _, err := client.Create().ForPath(ctx, result, []byte(begunData)); err != nil {
		t.Fatal(err)
	}
	w := &worker{pipeline: p, client: client}
	term, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.report(term) }()
	want := func(line string) {
		t.Helper()
		select {
		case got := <-received:
			if got != line {
				t.Fatalf("said %q, want %q", got, line)
			}
		case <-ctx.Done():
			t.Fatalf("not said: %q", line)
		}
	}
	want("leader: 0 of 2 jobs are done\n")
	if _, err := client.SetData().ForPath(ctx, result, []byte(doneData)); err != nil {
		t.Fatal(err)
	}
	want("leader: 1 of 2 jobs are done\n")
	end()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the term ends with %v", err)
	}
}

func TestPipelineWithoutServerSaysThatItWaits(t *testing.T) {
	t.Setenv(endpoint, "")
	late := testenv.NewLateServer(t)
	o := options{connect: late.ConnectString(), jobs: 2, producers: 1, workers: 1}
	if err := run(testenv.Context(t), o, late); err != nil {
		t.Errorf("%v after\n%s", err, late)
	}
}

// gRPC takes minutes to compile, and only the exporters need it.
func TestPipelineWithoutTagImportsNoGRPC(t *testing.T) {
	for _, build := range []struct {
		tags string
		grpc bool
	}{{tags: "-tags=", grpc: false}, {tags: "-tags=otlp", grpc: true}} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", build.tags, ".")
		packages, err := list.Output()
		if err != nil {
			t.Fatalf("%v: %v", list, err)
		}
		if got := strings.Contains(string(packages), "\ngoogle.golang.org/grpc"); got != build.grpc {
			t.Errorf("%v: gRPC is imported: %t", list, got)
		}
	}
}

func TestCollectorWithoutExportersIsRefused(t *testing.T) {
	t.Setenv(endpoint, "http://localhost:4318")
	built := exporting
	exporting = nil
	defer func() { exporting = built }()
	o := options{jobs: 1, producers: 1, workers: 1}
	if err := run(t.Context(), o, io.Discard); err == nil || !strings.Contains(err.Error(), "go run -tags otlp") {
		t.Errorf("%v does not say how to get OTLP", err)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	for _, o := range []options{
		{jobs: 0, producers: 1, workers: 1},
		{jobs: 1, producers: 0, workers: 1},
		{jobs: 1, producers: 1, workers: 0},
		{connect: "//", jobs: 1, producers: 1, workers: 1},
	} {
		if err := run(t.Context(), o, &strings.Builder{}); err == nil {
			t.Errorf("%+v", o)
		}
	}
}
