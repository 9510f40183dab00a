package report_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// measureAll uses every instrument.
func measureAll(ctx context.Context, t *telemetry.Telemetry) {
	what := telemetry.Operation{Name: "create", Namespace: "orders", Path: "/a"}
	r := t.Begin(ctx, new(telemetry.Record), what, true, time.Now())
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

	lock := report.NewLock(t, "mutex", "orders", "/locks/1")
	_, w := lock.Acquire(ctx)
	w.Position(3)
	w.End(report.Acquired, nil)
	lock.Hold(w).End(report.Released)
	election := report.NewElection(t, "leader_latch", "orders", "", "/leaders/1")
	elected, w := election.Elect(ctx)
	w.End(report.Elected, nil)
	election.Term(elected).End(report.EndedClosed)
	barrier := report.NewBarrier(t, "barrier", "orders", "/barriers/1")
	_, w = barrier.Wait(ctx, "wait", 2)
	w.End(report.Passed, nil)

	queue := report.NewQueue(t, "queue", "orders", "/queues/1")
	sending, m := queue.Send(ctx, 2)
	origin := queue.Extract(queue.Inject(sending))
	m.End("queue-1", nil)
	queue.HandedOver(ctx, time.Now(), 1)
	queue.Received(ctx, time.Now(), 1, origin)
	working, m := queue.Process(ctx, origin)
	m.End("queue-1", nil)
	_, m = queue.Settle(working)
	m.End("queue-1", nil)
	queue.PutBack(ctx)
	queue.DeadLettered(ctx)
	queue.ClaimLost(ctx, report.Taken)

	cache := report.NewCache(t, "curator_cache", "orders", "/config")
	cache.Created(ctx)
	cache.Unreadable(ctx, 1)
	cache.Reloaded(ctx)
	cache.Notified(ctx, time.Now().UnixMilli())

	value := report.NewValue(t, "shared_value", "orders", "/limits")
	value.Conflict(ctx)
	value.Uncertain(ctx)
	service := report.NewService(t, "orders", "/services/orders")
	service.Pick(ctx, report.Picked)
	node := report.NewNodes(t, "persistent_node", "orders", "/members/a")
	node.Desired(ctx, 1)
	node.Missing(ctx, 1)
	node.Refused(ctx, 1)
}

// observeAll makes every gauge show something, until the test ends.
func observeAll(tb testing.TB, t *telemetry.Telemetry) {
	tb.Helper()
	tb.Cleanup(t.Observe(func() telemetry.Load { return telemetry.Load{} }))
	queue := report.NewQueue(t, "queue", "orders", "/queues/1")
	tb.Cleanup(queue.ObserveDepth(func(context.Context) (report.Depth, bool) { return report.Depth{}, true }))
	service := report.NewService(t, "orders", "/services/orders")
	tb.Cleanup(service.Observe(func() report.ServiceState { return report.ServiceState{Changed: time.Now()} }))
}

func TestInstrumentsHaveTheirUnitsAndBounds(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	measureAll(t.Context(), tel)
	observeAll(t, tel)
	database := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10}
	messaging := []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
	wait := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	hold := []float64{.01, .1, 1, 10, 60, 600, 3600}
	age := []float64{.001, .01, .1, 1, 10, 60, 600, 3600, 86400}
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
		"curator.lock.hold.duration":          {Unit: "s", Bounds: hold},
		"curator.lock.held":                   {Unit: "{lock}", UpDown: true},
		"curator.lock.waiting":                {Unit: "{waiter}", UpDown: true},
		"curator.leader.active":               {Unit: "{leader}", UpDown: true},
		"curator.leader.candidates":           {Unit: "{candidate}", UpDown: true},
		"curator.leader.changes":              {Unit: "{change}"},
		"curator.leader.term.duration":        {Unit: "s", Bounds: hold},
		"messaging.client.sent.messages":      {Unit: "{message}"},
		"messaging.client.consumed.messages":  {Unit: "{message}"},
		"messaging.client.operation.duration": {Unit: "s", Bounds: messaging},
		"messaging.process.duration":          {Unit: "s", Bounds: messaging},
		"curator.queue.item.age":              {Unit: "s", Bounds: age},
		"curator.queue.requeues":              {Unit: "{message}"},
		"curator.queue.dead_letters":          {Unit: "{message}"},
		"curator.queue.claims.lost":           {Unit: "{claim}"},
		"curator.queue.depth":                 {Unit: "{node}"},
		"curator.queue.oldest.age":            {Unit: "s"},
		"curator.barrier.wait.duration":       {Unit: "s", Bounds: wait},
		"curator.cache.entries":               {Unit: "{node}", UpDown: true},
		"curator.cache.unreadable":            {Unit: "{node}", UpDown: true},
		"curator.cache.events":                {Unit: "{event}"},
		"curator.cache.reloads":               {Unit: "{reload}"},
		"curator.cache.lag":                   {Unit: "s", Bounds: age},
		"curator.value.conflicts":             {Unit: "{conflict}"},
		"curator.value.uncertain":             {Unit: "{write}"},
		"curator.discovery.picks":             {Unit: "{pick}"},
		"curator.discovery.instances":         {Unit: "{instance}"},
		"curator.discovery.down":              {Unit: "{instance}"},
		"curator.discovery.change.age":        {Unit: "s"},
		"curator.nodes.desired":               {Unit: "{node}", UpDown: true},
		"curator.nodes.missing":               {Unit: "{node}", UpDown: true},
		"curator.nodes.refused":               {Unit: "{node}", UpDown: true},

		"curator.client.connected":           {Unit: "{client}", UpDown: true},
		"curator.session.remaining":          {Unit: "s"},
		"curator.client.requests.in_flight":  {Unit: "{request}", UpDown: true},
		"curator.client.requests.queued":     {Unit: "{request}", UpDown: true},
		"curator.client.operations.pending":  {Unit: "{operation}", UpDown: true},
		"curator.client.operations.parked":   {Unit: "{operation}", UpDown: true},
		"curator.client.operations.retrying": {Unit: "{operation}", UpDown: true},
		"curator.client.watches":             {Unit: "{watch}", UpDown: true},
		"curator.client.callbacks.queued":    {Unit: "{callback}", UpDown: true},
		"curator.client.callbacks.age":       {Unit: "s"},
		"curator.client.answer.age":          {Unit: "s"},
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
	var log strings.Builder
	o := observe.New(t)
	tel := newTelemetry(o, func(c *telemetry.Config) {
		c.MeterProvider, c.Logger = refusing{}, slog.New(slog.NewTextHandler(&log, nil))
	})
	measureAll(t.Context(), tel)
	if got := strings.Count(log.String(), "level=WARN msg=\"metrics are left out\""); got != 1 {
		t.Errorf("%d warnings, want one:\n%s", got, log.String())
	}
	if len(o.Named("create orders")) != 1 {
		t.Error("no span of the operation")
	}
}
