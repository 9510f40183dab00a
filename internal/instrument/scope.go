package instrument

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/usercode"
)

// Config has the providers and the settings of a Scope. The zero Config uses the global providers.
type Config struct {
	TracerProvider trace.TracerProvider // nil for the global one
	MeterProvider  metric.MeterProvider // nil for the global one
	Attributes     []attribute.KeyValue // the attributes that Base returns, of all measurements and spans
	// Panicked gets a panic of a provider, on the goroutine of the panic.
	Panicked func(where string, err error)
	Logger   *slog.Logger
}

// Scope is the instrumentation scope of a client: its tracer, its instruments and the values that its parts share. It
// is safe for concurrent use.
type Scope struct {
	cfg     Config
	tracers *source[trace.TracerProvider, trace.Tracer]
	meters  *source[metric.MeterProvider, meter]
	shared  sync.Map // sharedKey → value
}

// New returns a Scope. It never fails: an instrument that a provider refuses is left out, and logged.
func New(cfg Config) *Scope {
	s := &Scope{cfg: cfg}
	s.tracers = newSource(cfg.TracerProvider, otel.GetTracerProvider, tracerPlaceholder, s.newTracer)
	s.meters = newSource(cfg.MeterProvider, otel.GetMeterProvider, meterPlaceholder, s.newMeter)
	return s
}

// The names of code of the program in reports of its panics.
const (
	InTracing = "tracer provider"
	inMetrics = "meter provider"
)

func (s *Scope) newTracer(p trace.TracerProvider) *trace.Tracer {
	defer usercode.Report(InTracing, s.cfg.Panicked)
	return newTracer(p)
}

// newMeter declares the instruments of all kits.
func (s *Scope) newMeter(p metric.MeterProvider) *meter {
	defer usercode.Report(inMetrics, s.cfg.Panicked)
	made := newMeter(p)
	if made == nil {
		return nil
	}
	d := &Declarer{scope: s, meter: made}
	m := &meter{}
	for _, declare := range kits {
		m.kits = append(m.kits, declare(d))
	}
	m.gauges = d.gauges
	if err := errors.Join(d.errs...); err != nil {
		s.cfg.Logger.Warn("metrics are left out", "error", err)
	}
	return m
}

// On reports whether there is a provider.
func (s *Scope) On() bool { return s.Traces() || s.Measures() }

// Traces reports whether tracing is on.
func (s *Scope) Traces() bool { return s != nil && s.tracers.get() != nil }

// Measures reports whether metrics are on. The first call after a provider is set declares the instruments.
func (s *Scope) Measures() bool { return s != nil && s.meters.get() != nil }

// StopGauges ends the callbacks of all gauges.
func (s *Scope) StopGauges() {
	if m := s.meters.get(); m != nil {
		for _, gauge := range m.gauges {
			_ = gauge.Unregister() // after an error the gauge stays, and observes nothing
		}
	}
}

// Base returns the attributes of the Config followed by more.
func (s *Scope) Base(more ...attribute.KeyValue) []attribute.KeyValue {
	return slices.Concat(s.cfg.Attributes, more)
}

// StartSpan starts a span. It returns the context of the span, and a nil span if the sampler drops it or tracing is
// off.
func (s *Scope) StartSpan(
	ctx context.Context, name string, options ...trace.SpanStartOption,
) (in context.Context, span trace.Span) {
	in = ctx
	if !s.Traces() {
		return ctx, nil
	}
	defer usercode.Report(InTracing, s.cfg.Panicked)
	started, fresh := (*s.tracers.get()).Start(ctx, name, options...)
	if fresh.IsRecording() {
		return started, fresh
	}
	fresh.End()
	return started, nil
}

// EndSpan ends a span of StartSpan, after a call of finish, which adds attributes and events. A nil finish adds none.
func (s *Scope) EndSpan(span trace.Span, finish func(), options ...trace.SpanEndOption) {
	if span == nil {
		return
	}
	defer usercode.Report(InTracing, s.cfg.Panicked)
	if finish != nil {
		finish()
	}
	span.End(options...)
}

// Event adds an event to a span.
func Event(span trace.Span, name string, at time.Time, attributes ...attribute.KeyValue) {
	span.AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(attributes...))
}

// IsDropped reports whether the sampler of this process has dropped the span of ctx.
func IsDropped(ctx context.Context) bool {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		return false
	}
	in := span.SpanContext()
	return in.IsValid() && !in.IsSampled() && !in.IsRemote()
}

// AppendLink adds a link to a span, if the span is valid.
func AppendLink(links []trace.Link, to trace.SpanContext) []trace.Link {
	if !to.IsValid() {
		return links
	}
	return append(links, trace.Link{SpanContext: to})
}

// Shared returns the only value of type T of s. The first call creates it.
func Shared[T any](s *Scope) *T {
	value, ok := s.shared.Load(sharedKey[T]{})
	if !ok {
		value, _ = s.shared.LoadOrStore(sharedKey[T]{}, new(T))
	}
	return value.(*T)
}

type sharedKey[T any] struct{}
