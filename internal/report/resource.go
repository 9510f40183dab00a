package report

import (
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
)

// resource is the object of a recipe: a lock, an election, a barrier, a cache. Its series are made at the first use
// while telemetry is on.
type resource struct {
	t    *telemetry.Telemetry
	key  seriesKey // the names as the program gives them: their number is not bounded
	path string
	made atomic.Pointer[measures]
}

// measures are the spans and measurements of a resource.
type measures struct {
	*series
	start []trace.SpanStartOption // options of the spans
}

func (r *resource) on() bool                 { return r.t.On() }
func (r *resource) scope() *instrument.Scope { return r.t.Scope() }

// measures returns the spans and measurements of r. It is called while telemetry is on.
func (r *resource) measures() *measures {
	if m := r.made.Load(); m != nil {
		return m
	}
	m := &measures{
		series: seriesOf(r.t, r.key),
		start: []trace.SpanStartOption{
			trace.WithAttributes(r.t.WithPath(r.scope().Base(r.key.attributes()...), r.path)...),
		},
	}
	r.made.Store(m)
	return m
}
