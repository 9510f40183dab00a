package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/usercode"
)

// Config has the providers and the settings of telemetry. The zero Config uses the global providers.
type Config struct {
	TracerProvider trace.TracerProvider // nil for the global one
	MeterProvider  metric.MeterProvider // nil for the global one
	// Propagator writes trace contexts into the items of queues, and reads them. With a nil Propagator the items have
	// the same bytes as Java's.
	Propagator propagation.TextMapPropagator
	// FormatPath returns the path that spans show; "" hides it. A nil FormatPath shows paths unchanged.
	FormatPath func(path string) string
	// Driver is a Java-style tracer driver. With DriverFailures it also gets failed foreground operations.
	Driver         Driver
	DriverFailures bool
	// Post runs calls in order, on a goroutine on which they may block. A nil Post runs them at once.
	Post func(call func())
	// Panicked gets a panic in code of the program. It is called on the goroutine of the panic.
	Panicked func(where string, err error)
	// RequestSpans makes a span for each request of an operation.
	RequestSpans bool
	// WatchSpans makes a span around each call of a watcher.
	WatchSpans bool
	// SessionIDs puts the id of the session on the spans of operations.
	SessionIDs bool
	// DetachedConsumers begins a trace for each consumed item, linked to the trace of its put. Otherwise the consumer
	// continues that trace.
	DetachedConsumers bool
	Logger            *slog.Logger
	// Name is the name of the client, or "".
	Name string
	// Server is the host and port of the server, or "" if the client has several servers.
	Server string
}

// Telemetry records the operations and the connections of a client. It is safe for concurrent use. All methods of a nil
// Telemetry do nothing.
type Telemetry struct {
	cfg    Config
	scope  *instrument.Scope
	driver driver
	gauges *gauges
	server []attribute.KeyValue // the address of the server, if the client has only one
	client []attribute.KeyValue // the name of the client, if it has one

	// operations is replaced as a whole: each operation reads it.
	operations atomic.Pointer[map[opMetricsKey]*opMetrics]
	mu         sync.Mutex // guards namespaces, and changes of operations
	namespaces instrument.Names

	history  atomic.Pointer[history]
	outage   outage
	closed   sync.Map       // connection state or event type → instrument.Set
	sessions instrument.Set // the attributes of session expirations
}

// New returns the telemetry of a client. It never fails: an instrument that a provider refuses is left out, and logged.
func New(cfg Config) *Telemetry {
	t := &Telemetry{cfg: cfg, server: serverAttributes(cfg.Server)}
	t.operations.Store(&map[opMetricsKey]*opMetrics{})
	t.driver.t, t.driver.to = t, cfg.Driver
	if cfg.Name != "" {
		t.client = []attribute.KeyValue{clientName.String(cfg.Name)}
	}
	t.scope = instrument.New(instrument.Config{
		TracerProvider: cfg.TracerProvider, MeterProvider: cfg.MeterProvider, Panicked: cfg.Panicked, Logger: cfg.Logger,
		Attributes: append([]attribute.KeyValue{instrument.SystemName.String(System)}, t.client...),
	})
	t.gauges = instrument.Shared[gauges](t.scope)
	t.sessions = instrument.NewSet(t.scope.Base()...)
	return t
}

// On reports whether telemetry is on: there is a provider or a driver.
func (t *Telemetry) On() bool { return t != nil && (t.driver.on() || t.scope.On()) }

// Scope returns the instrumentation scope of the client, nil without a client.
func (t *Telemetry) Scope() *instrument.Scope {
	if t == nil {
		return nil
	}
	return t.scope
}

// Config returns the settings of a client.
func (t *Telemetry) Config() *Config { return &t.cfg }

// Endpoint returns the attributes of the client and of its server, if it has one server.
func (t *Telemetry) Endpoint() []attribute.KeyValue {
	return append(t.client[:len(t.client):len(t.client)], t.server...)
}

// instruments returns the metrics of operations and connections, or nil if metrics are off.
func (t *Telemetry) instruments() *instruments {
	if t == nil {
		return nil
	}
	return kit.Of(t.scope)
}

// Later runs a call after the earlier ones, on a goroutine on which it may block. The goroutine that reads the
// connection must not block, nor the one that notifies the state listeners.
func (t *Telemetry) Later(call func()) {
	if t.cfg.Post == nil {
		call()
		return
	}
	t.cfg.Post(call)
}

// FormatPath returns the path that spans show, or "".
func (t *Telemetry) FormatPath(path string) (shown string) {
	if t.cfg.FormatPath == nil || path == "" {
		return path
	}
	defer usercode.Catch("FormatPath", nil) // a panic hides the path
	return t.cfg.FormatPath(path)
}

// WithPath adds a path to the attributes of a span.
func (t *Telemetry) WithPath(attributes []attribute.KeyValue, path string) []attribute.KeyValue {
	if path = t.FormatPath(path); path != "" {
		attributes = append(attributes, pathKey.String(path))
	}
	return attributes
}

// LogAttrs returns the ids of the span of ctx, for a log handler that does not look into contexts by itself.
func LogAttrs(ctx context.Context) []slog.Attr {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return nil
	}
	return []slog.Attr{slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String())}
}
