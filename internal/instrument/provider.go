package instrument

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

	"github.com/gocurator/curator/internal/usercode"
)

// The global providers of OpenTelemetry are placeholders until the program sets others. A span of a placeholder is not
// recorded but costs allocations, so a client is off until the global provider changes. The placeholders are the global
// providers at the start of the program, unless an init function has set others before.
var (
	tracerPlaceholder = tracersIfUnset(otel.GetTracerProvider())
	meterPlaceholder  = metersIfUnset(otel.GetMeterProvider())
)

// tracersIfUnset returns p if it is a placeholder, otherwise nil. A span of a placeholder has the id of its parent. The
// parent is not sampled, so a provider of the program drops the span.
func tracersIfUnset(p trace.TracerProvider) (placeholder trace.TracerProvider) {
	defer usercode.Catch("a provider", nil)
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
	ctx := trace.ContextWithSpanContext(context.Background(), parent) //nolint:forbidigo // it is the program's start
	_, span := p.Tracer(scope).Start(ctx, "init")
	defer span.End()
	if span.SpanContext().SpanID() != parent.SpanID() {
		return nil
	}
	return p
}

// metersIfUnset returns p if it is a placeholder, whose instruments record nothing, otherwise nil.
func metersIfUnset(p metric.MeterProvider) (placeholder metric.MeterProvider) {
	defer usercode.Catch("a provider", nil)
	c, err := p.Meter(scope).Int64Counter("curator.client.retries")
	if err != nil || c.Enabled(context.Background()) { //nolint:forbidigo // it is the program's start
		return nil
	}
	return p
}

// source builds its value from a provider. The program may set the global provider later, so the value may be built at
// its first use.
type source[P comparable, V any] struct {
	global      func() P // returns the current global provider
	placeholder P        // the global provider until the program sets one
	make        func(P) *V

	making sync.Mutex // held during make
	made   atomic.Pointer[V]
}

// newSource returns a source for the provider given, or the global one if given is nil. If make returns nil for a
// provider, newSource returns a nil source, which is off.
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

// get returns the value, or nil without a provider.
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
	// make runs once, because gauges that are declared twice are shown twice. Other calls do not wait for it: make
	// reports a panic of the provider, and the code that gets the report may call get.
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

// develVersion is the version in builds without one, such as in a workspace, with a replaced module, or in tests.
const develVersion = "devel"

// version returns the version of this library in the running program.
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
