package telemetry

import (
	"reflect"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

// source gives what is made of a provider. Until the program has set its global provider there stands a placeholder for
// it, with which every span costs something and nobody sees it: as long as that is so there is nothing, and it costs a
// look.
type source[P comparable, V any] struct {
	global func() P // of the program, at this moment
	holder P        // the placeholder, if it is that
	make   func(P) *V
	made   atomic.Pointer[V]
}

// newSource returns the source of what make makes of a provider: given, or the global one if that is nil. What make
// returns nil for is off for good.
func newSource[P comparable, V any](given P, global func() P, make func(P) *V) *source[P, V] {
	var none P
	if given == none {
		given = global()
	}
	if isPlaceholder(given) {
		return &source[P, V]{global: global, holder: given, make: make}
	}
	v := make(given)
	if v == nil {
		return nil
	}
	s := &source[P, V]{}
	s.made.Store(v)
	return s
}

// get returns what there is, or nil.
func (s *source[P, V]) get() *V {
	if s == nil {
		return nil
	}
	if v := s.made.Load(); v != nil {
		return v
	}
	now := s.global()
	if now == s.holder {
		return nil
	}
	if v := s.make(now); v != nil {
		s.made.CompareAndSwap(nil, v)
	}
	return s.made.Load()
}

// isPlaceholder reports whether a provider is what stands for the global one until there is one. Its type cannot be
// named.
func isPlaceholder(provider any) bool {
	t := reflect.TypeOf(provider)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "go.opentelemetry.io/otel/internal/global"
}

// scope is the name of all that this library tells.
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

func globalTracers() trace.TracerProvider { return otel.GetTracerProvider() }
func globalMeters() metric.MeterProvider  { return otel.GetMeterProvider() }
