package main

import (
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
		for _, want := range []string{"send jobs", "process jobs", "lock acquire", "lock hold", "create", "setData", "getData", "settle jobs"} {
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
		"submit job  [server]\n", "└─ send jobs  [producer", "process jobs  [consumer", "└─ setData  [client", "leader elect  [",
		"messaging.client.sent.messages", "curator.lock.held",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "submit job"); n != 1 {
		t.Errorf("%d traces of jobs are shown, not 1", n)
	}
}

func TestCollectorIsUsedIfThereIsOne(t *testing.T) {
	collector := newCollector(t)
	t.Setenv(endpoint, collector.URL)
	var out strings.Builder
	o := options{connect: testenv.ConnectString(t), jobs: 2, producers: 1, workers: 1}
	if err := run(testenv.Context(t), o, &out); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/traces", "/v1/metrics"} {
		if collector.received(path) == 0 {
			t.Errorf("nothing was sent to %s", path)
		}
	}
	if strings.Contains(out.String(), "trace ") {
		t.Errorf("traces are shown, too:\n%s", out.String())
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
