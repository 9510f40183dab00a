package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Config has the providers and the settings of telemetry. The zero Config uses the global providers.
type Config struct {
	TracerProvider trace.TracerProvider // nil for the global one
	MeterProvider  metric.MeterProvider // nil for the global one
	// Propagator puts trace contexts into the items of queues, and reads them; nil leaves them as Java writes them.
	Propagator propagation.TextMapPropagator
	// FormatPath makes of a path what spans hold of it, nothing if that is empty; nil leaves it as it is.
	FormatPath func(path string) string
	// Driver gets what Java's TracerDriver gets, and with DriverFailures the failed foreground operations too.
	Driver         Driver
	DriverFailures bool
	// Post runs calls in order, on a goroutine on which they may block: those of what happens where nothing may block.
	// Without it they run there.
	Post func(call func())
	// Panicked gets the value of a panic in code of the program. It is called on the goroutine of the panic.
	Panicked func(where string, value any)
	// RequestSpans makes a span for each request of an operation.
	RequestSpans bool
	// WatchSpans makes a span around each call of a watcher.
	WatchSpans bool
	// SessionIDs puts the id of the session on the spans of operations.
	SessionIDs bool
	// DetachedConsumers begins a trace for each item that is consumed, linked to that of its put, in place of going on
	// with that.
	DetachedConsumers bool
	Logger            *slog.Logger
	// Name is the name of the client, or "".
	Name string
	// Server is the host and port of the one server that there is, "" if there are several.
	Server string
}

// Telemetry records what a client and its recipes do. It is safe for concurrent use. All methods of a nil Telemetry do
// nothing.
type Telemetry struct {
	cfg     Config
	driver  driver
	tracers *source[trace.TracerProvider, trace.Tracer]
	meters  *source[metric.MeterProvider, instruments]
	server  []attribute.KeyValue
	client  []attribute.KeyValue // its name, if it has one

	// operations is replaced as a whole: each operation reads it.
	operations atomic.Pointer[map[opMetricsKey]*opMetrics]

	mu         sync.RWMutex
	series     map[seriesKey]*series
	depths     map[*depthReader]struct{}
	namespaces []string // that have series of their own
	names      []string // of what recipes work on, that have series of their own
	// participants of elections, that have series of their own
	participants []string

	history    atomic.Pointer[history]
	outage     outage
	load       atomic.Pointer[func() Load]
	closed     sync.Map // connection state or event type → measurement
	sessions   measurement
	background atomic.Int64 // background operations that were submitted and whose callback has not begun
}

// New returns the telemetry of a client. It never fails: what a provider refuses is left out, and logged.
func New(cfg Config) *Telemetry {
	t := &Telemetry{
		cfg: cfg, series: make(map[seriesKey]*series), depths: make(map[*depthReader]struct{}),
	}
	t.operations.Store(&map[opMetricsKey]*opMetrics{})
	t.driver.t, t.driver.to = t, cfg.Driver
	t.server = serverAttributes(cfg.Server)
	if cfg.Name != "" {
		t.client = []attribute.KeyValue{clientName.String(cfg.Name)}
	}
	tracerOf := func(p trace.TracerProvider) *trace.Tracer {
		defer t.caught(inTracing)
		return newTracer(p)
	}
	t.tracers = newSource(cfg.TracerProvider, otel.GetTracerProvider, tracerPlaceholder, tracerOf)
	instrumentsOf := func(p metric.MeterProvider) *instruments {
		defer t.caught(inMetrics)
		meter := newMeter(p)
		if meter == nil {
			return nil
		}
		in, err := newInstruments(meter)
		gauges, refused := t.declareGauges(meter)
		depths, refusedDepths := t.declareDepths(meter)
		in.gauges = registrations{all: []metric.Registration{gauges, depths}}
		if err = errors.Join(err, refused, refusedDepths); err != nil {
			cfg.Logger.Warn("metrics are left out", "error", err)
		}
		return in
	}
	t.meters = newSource(cfg.MeterProvider, otel.GetMeterProvider, meterPlaceholder, instrumentsOf)
	t.sessions = newMeasurement(t.base()...)
	return t
}

// On reports whether telemetry is on: there is a provider or a driver.
func (t *Telemetry) On() bool {
	return t != nil && (t.driver.on() || t.tracers.get() != nil || t.meters.get() != nil)
}

// tracer returns the tracer, or nil if tracing is off.
func (t *Telemetry) tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	if p := t.tracers.get(); p != nil {
		return *p
	}
	return nil
}

// meter returns the instruments, or nil if metrics are off.
func (t *Telemetry) meter() *instruments {
	if t == nil {
		return nil
	}
	return t.meters.get()
}

// base returns the attributes that everything has, and more.
func (t *Telemetry) base(more ...attribute.KeyValue) []attribute.KeyValue {
	return slices.Concat([]attribute.KeyValue{systemName.String(system)}, t.client, more)
}

// formatted returns what spans hold of a path.
func (t *Telemetry) formatted(path string) (shown string) {
	if t.cfg.FormatPath == nil || path == "" {
		return path
	}
	defer func() {
		if recover() != nil { // the user's code may run on any goroutine: better no path than none of those
			shown = ""
		}
	}()
	return t.cfg.FormatPath(path)
}

// withPath adds a path to the attributes of a span.
func (t *Telemetry) withPath(attributes []attribute.KeyValue, path string) []attribute.KeyValue {
	if path = t.formatted(path); path != "" {
		attributes = append(attributes, pathKey.String(path))
	}
	return attributes
}

// LogAttrs returns the ids of the span of ctx, for a record in a log that does not look into contexts by itself.
func LogAttrs(ctx context.Context) []slog.Attr {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return nil
	}
	return []slog.Attr{slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String())}
}
