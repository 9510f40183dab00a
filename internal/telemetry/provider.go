package telemetry

import (
	"context"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

// OpenTelemetry has placeholders for the global providers until the program sets them. A span of the placeholder is not
// free, although it is not recorded, so a client does without until the global provider is another one. The
// placeholders are the global providers at the start of the program, unless an init function has set others before.
var (
	tracerPlaceholder = tracersIfUnset(otel.GetTracerProvider())
	meterPlaceholder  = metersIfUnset(otel.GetMeterProvider())
)

// tracersIfUnset returns p if its spans are those of their parents: nobody records them. Otherwise it returns nil. The
// parent is not sampled, so that a provider of the program drops the span.
func tracersIfUnset(p trace.TracerProvider) (placeholder trace.TracerProvider) {
	defer func() { _ = recover() }()
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
	ctx := trace.ContextWithSpanContext(context.Background(), parent) //nolint:forbidigo // it is the program's start
	_, span := p.Tracer(scope).Start(ctx, "init")
	defer span.End()
	if span.SpanContext().SpanID() != parent.SpanID() {
		return nil
	}
	return p
}

// metersIfUnset returns p if its instruments record nothing. Otherwise it returns nil.
func metersIfUnset(p metric.MeterProvider) (placeholder metric.MeterProvider) {
	defer func() { _ = recover() }()
	c, err := p.Meter(scope).Int64Counter("curator.client.retries")
	if err != nil || c.Enabled(context.Background()) { //nolint:forbidigo // it is the program's start
		return nil
	}
	return p
}

// source returns what is made of a provider, which may be the global one that the program sets later.
type source[P comparable, V any] struct {
	global      func() P // the provider of the program, at this moment
	placeholder P
	make        func(P) *V

	making sync.Mutex
	made   atomic.Pointer[V]
}

// newSource returns a source for the provider given, or the global one if given is nil. A provider for which make
// returns nil is off for good.
func newSource[P comparable, V any](given P, global func() P, placeholder P, make func(P) *V) *source[P, V] {
	var none P
	if given == none {
		given = global()
	}
	if placeholder != none && given == placeholder {
		return &source[P, V]{global: global, placeholder: placeholder, make: make}
	}
	v := make(given)
	if v == nil {
		return nil
	}
	s := &source[P, V]{}
	s.made.Store(v)
	return s
}

// get returns what is made of the provider, or nil.
func (s *source[P, V]) get() *V {
	if s == nil {
		return nil
	}
	if v := s.made.Load(); v != nil {
		return v
	}
	now := s.global()
	if now == s.placeholder {
		return nil
	}
	// What is made twice would be shown twice. A provider that panics is reported from within make, so nobody waits.
	if s.making.TryLock() {
		defer s.making.Unlock()
		if s.made.Load() == nil {
			s.made.Store(s.make(now))
		}
	}
	return s.made.Load()
}

// scope is the name of the instrumentation.
const scope = "github.com/gocurator/curator"

// develVersion is the version where the build has none: in a workspace, in place of a replaced module, in tests.
const develVersion = "devel"

// version returns the version of this library in the program that it is part of.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return versionIn(info)
	}
	return develVersion
}

func versionIn(info *debug.BuildInfo) string {
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != scope {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version != "" && m.Version != "(devel)" {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return develVersion
}

func newTracer(p trace.TracerProvider) *trace.Tracer {
	switch p.(type) {
	case nooptrace.TracerProvider, *nooptrace.TracerProvider:
		return nil
	}
	t := p.Tracer(scope, trace.WithInstrumentationVersion(version()), trace.WithSchemaURL(schemaURL))
	return &t
}

func newMeter(p metric.MeterProvider) metric.Meter {
	switch p.(type) {
	case noopmetric.MeterProvider, *noopmetric.MeterProvider:
		return nil
	}
	return p.Meter(scope, metric.WithInstrumentationVersion(version()), metric.WithSchemaURL(schemaURL))
}
