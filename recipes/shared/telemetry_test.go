package shared_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/shared"
)

func TestValueMetrics(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		reader := sdkmetric.NewManualReader()
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		s.Cleanup(func() { s.must(provider.Shutdown(context.WithoutCancel(s.ctx))) })
		client := s.newClient(s.place, framework.WithMeterProvider(provider), noRetries)
		v := s.start(client, "1", shared.WithName("limits"))
		shared.NewValue(client, path, codec.Text{}, shared.WithName("limits"))
		first := v.VersionedValue()
		s.must(v.SetValue(s.ctx, []byte("2")))
		for range 2 {
			if set, err := v.TrySetValue(s.ctx, first, nil); set || err != nil {
				t.Errorf("%t, %v", set, err)
			}
		}
		s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Action: curatortest.CutAfter, Count: 1})
		_, err := v.TrySetValue(s.ctx, v.VersionedValue(), []byte("3"))
		s.wantError(err, shared.ErrUncertain)
		want := map[string]int64{
			"curator.value.conflicts shared_value": 2, "curator.value.conflicts value": 0,
			"curator.value.uncertain shared_value": 1, "curator.value.uncertain value": 0,
		}
		if diff := cmp.Diff(want, s.counted(reader)); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
	})
}

// counted returns the counters of values, by name and recipe.
func (s *scene) counted(reader sdkmetric.Reader) map[string]int64 {
	s.Helper()
	var data metricdata.ResourceMetrics
	s.must(reader.Collect(s.ctx, &data))
	out := make(map[string]int64)
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok || m.Name != "curator.value.conflicts" && m.Name != "curator.value.uncertain" {
				continue
			}
			for _, p := range sum.DataPoints {
				recipe, _ := p.Attributes.Value("curator.recipe")
				if name, _ := p.Attributes.Value("curator.resource.name"); name != attribute.StringValue("limits") {
					s.Errorf("%s of %v", m.Name, name)
				}
				out[m.Name+" "+recipe.AsString()] = p.Value
			}
		}
	}
	return out
}
