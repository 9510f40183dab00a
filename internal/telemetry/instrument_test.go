package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// measureAll uses every instrument.
func measureAll(ctx context.Context, t *telemetry.Telemetry) {
	what := telemetry.Operation{Name: "create", Namespace: "orders", Path: "/a"}
	r := begin(ctx, t, what, true)
	ctx = r.Context()
	r.Retry(jute.ErrConnectionLoss, time.Millisecond)
	r.GivenUp(jute.ErrConnectionLoss)
	r.End(time.Now(), telemetry.Facts{
		Err: zk.ErrNoNode, RequestSize: 1, ResponseSize: 1, Children: 1, Session: 7, Server: "127.0.0.1:2181",
	})
	t.Unhandled(ctx, "background", jute.ErrConnectionLoss)
	t.Started()
	for _, state := range []string{
		telemetry.StateConnected, telemetry.StateSuspended, telemetry.StateReconnected, telemetry.StateSuspended,
		telemetry.StateLost,
	} {
		t.StateNoted(state)
		t.StateChanged(state, time.Now())
	}
	t.WatchEvent(zk.Event{Type: zk.EventNodeCreated, Path: "/a"})

	lock := t.NewLock("mutex", "orders", "/locks/1")
	_, w := lock.Acquire(ctx)
	w.Position(3)
	w.End(telemetry.Acquired, nil)
	lock.Hold(w).End(telemetry.Released)
	election := t.NewElection("leader_latch", "orders", "", "/leaders/1")
	elected, w := election.Elect(ctx)
	w.End(telemetry.Elected, nil)
	election.Term(elected).End(telemetry.EndedClosed)
	barrier := t.NewBarrier("barrier", "orders", "/barriers/1")
	_, w = barrier.Wait(ctx, "wait", 2)
	w.End(telemetry.Passed, nil)

	queue := t.NewQueue("queue", "orders", "/queues/1")
	sending, m := queue.Send(ctx, 2)
	origin := queue.Extract(queue.Inject(sending))
	m.End("queue-1", nil)
	queue.HandedOver(ctx, time.Now(), 1)
	queue.Received(ctx, time.Now(), 1, origin)
	working, m := queue.Process(ctx, origin)
	m.End("queue-1", nil)
	_, m = queue.Settle(working)
	m.End("queue-1", nil)
}

func TestInstrumentsHaveTheirUnitsAndBounds(t *testing.T) {
	o := observe.New(t)
	measureAll(t.Context(), newTelemetry(o))
	database := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10}
	messaging := []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
	wait := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	tenure := []float64{.01, .1, 1, 10, 60, 600, 3600}
	type form struct {
		Unit   string
		Bounds []float64
		UpDown bool
	}
	want := map[string]form{
		"db.client.operation.duration":        {Unit: "s", Bounds: database},
		"curator.client.retries":              {Unit: "{retry}"},
		"curator.background.queue.duration":   {Unit: "s", Bounds: database},
		"curator.background.queue.size":       {Unit: "{operation}", UpDown: true},
		"curator.unhandled_errors":            {Unit: "{error}"},
		"curator.connection.state_changes":    {Unit: "{change}"},
		"curator.connection.outage.duration":  {Unit: "s", Bounds: []float64{.1, .5, 1, 5, 15, 30, 60, 300}},
		"curator.session.expirations":         {Unit: "{session}"},
		"curator.watch.events":                {Unit: "{event}"},
		"curator.lock.acquire.duration":       {Unit: "s", Bounds: wait},
		"curator.lock.hold.duration":          {Unit: "s", Bounds: tenure},
		"curator.lock.held":                   {Unit: "{lock}", UpDown: true},
		"curator.lock.waiting":                {Unit: "{waiter}", UpDown: true},
		"curator.leader.active":               {Unit: "{leader}", UpDown: true},
		"curator.leader.candidates":           {Unit: "{candidate}", UpDown: true},
		"curator.leader.changes":              {Unit: "{change}"},
		"curator.leader.term.duration":        {Unit: "s", Bounds: tenure},
		"messaging.client.sent.messages":      {Unit: "{message}"},
		"messaging.client.consumed.messages":  {Unit: "{message}"},
		"messaging.client.operation.duration": {Unit: "s", Bounds: messaging},
		"messaging.process.duration":          {Unit: "s", Bounds: messaging},
		"curator.queue.item.age":              {Unit: "s", Bounds: []float64{.001, .01, .1, 1, 10, 60, 600, 3600, 86400}},
		"curator.barrier.wait.duration":       {Unit: "s", Bounds: wait},
	}
	got := make(map[string]form)
	for name, m := range o.Metrics(t) {
		f := form{Unit: m.Unit, Bounds: observe.Points(m)[0].Bounds}
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
			f.UpDown = !sum.IsMonotonic
		}
		if m.Description == "" {
			t.Errorf("%s has no description", name)
		}
		got[name] = f
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instruments (-want +got):\n%s", diff)
	}
}

// Unbounded values are in spans only.
func TestMetricsHaveNoKeyWithoutBounds(t *testing.T) {
	o := observe.New(t)
	measureAll(t.Context(), newTelemetry(o, func(c *telemetry.Config) { c.SessionIDs, c.RequestSpans = true, true }))
	o.WantBounded(t)
	spans := make(map[string]bool)
	for _, s := range o.Spans() {
		for _, key := range observe.Keys(s) {
			spans[key] = true
		}
	}
	for _, key := range observe.Banned[:6] { // else the test looks for what there is not
		if !spans[string(key)] {
			t.Errorf("no span has %s", key)
		}
	}
}

func TestPathsAddNoSeries(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	for i := range 1000 {
		run(t.Context(), tel, telemetry.Operation{Name: "create", Path: fmt.Sprint("/", i)}, i%2 == 0, nil)
		tel.WatchEvent(zk.Event{Type: zk.EventNodeCreated, Path: fmt.Sprint("/", i)})
	}
	for name, want := range map[string]string{
		"db.client.operation.duration":      "db.operation.name=create 1000\n",
		"curator.background.queue.duration": "db.operation.name=create 500\n",
		"curator.watch.events":              "zookeeper.event.type=node_created 1000\n",
	} {
		if diff := cmp.Diff(want, o.Values(t, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNamespacesBeyondAHundredAreOne(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	for i := range 150 {
		for _, name := range []string{"create", "delete"} {
			run(t.Context(), tel, telemetry.Operation{Name: name, Namespace: fmt.Sprint("tenant-", i)}, false, nil)
		}
	}
	run(t.Context(), tel, telemetry.Operation{Name: "create", Namespace: "tenant-7"}, false, nil)
	run(t.Context(), tel, telemetry.Operation{Name: "create"}, false, nil)
	series := make(map[string]int64)
	for _, p := range observe.Points(o.Metrics(t)["db.client.operation.duration"]) {
		name, _ := p.Attributes.Value("db.operation.name")
		namespace, _ := p.Attributes.Value("db.namespace")
		series[name.AsString()+" "+namespace.AsString()] = p.Value
	}
	if len(series) != 2*101+1 {
		t.Errorf("%d series, want those of 100 namespaces, of all others, and of none", len(series))
	}
	for name, want := range map[string]int64{
		"create _OTHER": 50, "delete _OTHER": 50, "create tenant-7": 2, "create tenant-99": 1, "create tenant-100": 0,
		"create ": 1,
	} {
		if series[name] != want {
			t.Errorf("%q was measured %d times, want %d", name, series[name], want)
		}
	}
}

func TestMetricsTellOfErrorsInAClosedSet(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	for i := range 100 {
		run(t.Context(), tel, telemetry.Operation{Name: "sync"}, false, jute.Code(-1000-i).Err())
		run(t.Context(), tel, telemetry.Operation{Name: "sync"}, false, fmt.Errorf("something %d", i))
	}
	run(t.Context(), tel, telemetry.Operation{Name: "sync"}, false, zk.ErrNoAuth)
	run(t.Context(), tel, telemetry.Operation{Name: "sync"}, false, jute.ErrConnectionLoss)
	want := `db.operation.name=sync,db.response.status_code=NOAUTH,error.type=NOAUTH 1
db.operation.name=sync,db.response.status_code=_OTHER,error.type=_OTHER 100
db.operation.name=sync,error.type=CONNECTIONLOSS 1
db.operation.name=sync,error.type=_OTHER 100
`
	if diff := cmp.Diff(want, o.Values(t, "db.client.operation.duration")); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// refusing is a provider whose instruments cannot be made.
type refusing struct{ noopmetric.MeterProvider }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

type refusingMeter struct{ noopmetric.Meter }

var errRefused = errors.New("refused")

func (refusingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errRefused
}

func (refusingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errRefused
}

func (refusingMeter) Int64UpDownCounter(string, ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return nil, errRefused
}

func TestRefusedInstrumentsAreLoggedAndLeftOut(t *testing.T) {
	log := &records{}
	o := observe.New(t)
	tel := newTelemetry(o, func(c *telemetry.Config) { c.MeterProvider, c.Logger = refusing{}, log.logger() })
	measureAll(t.Context(), tel)
	if want := []string{"metrics are left out"}; !slices.Equal(log.messages("WARN"), want) {
		t.Errorf("logged %q, want %q", log.messages("WARN"), want)
	}
	if len(o.Named("create orders")) != 1 {
		t.Error("no span of the operation")
	}
}
