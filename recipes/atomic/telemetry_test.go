package atomic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/atomic"
)

func TestTelemetryCountsConflictsAndUncertainWrites(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		o := observe.New(s)
		s.client = s.connect(s.place, framework.WithTracerProvider(o.Tracers), framework.WithMeterProvider(o.Meters))
		s.must(s.otherLong().ForceSet(s.ctx, 5))
		n := s.long(atomic.WithName("hits"))
		_, err := n.Increment(s.ctx)
		s.must(err)
		want := func(name, values string) {
			s.Helper()
			if diff := cmp.Diff(strings.TrimLeft(values, "\n"), o.Values(t, name)); diff != "" {
				s.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		for _, name := range []string{"curator.value.conflicts", "curator.value.uncertain"} {
			if points := observe.Points(o.Metrics(t)[name]); len(points) != 1 || points[0].Value != 0 {
				s.Errorf("%s does not begin with 0: %v", name, points)
			}
		}
		s.overtaken(func() {
			_, err := n.Increment(s.ctx)
			s.must(err)
		})
		s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.CutAfter})
		_, err = n.Increment(s.ctx)
		s.wantErr(err, atomic.ErrUncertain)
		want("curator.value.conflicts", "curator.recipe=atomic_long,curator.resource.name=hits 1\n")
		want("curator.value.uncertain", "curator.recipe=atomic_long,curator.resource.name=hits 1\n")
		for _, span := range o.Named("setData") { // a conflict is no failure
			if code := span.Status().Code.String(); code == "Error" {
				s.Errorf("the span has the status %v", span.Status())
			}
		}
	})
}
