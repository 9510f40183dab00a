package cache_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

// counted returns the sums of the metrics of caches: by name, and by event.
func (s *scene) counted(reader sdkmetric.Reader) map[string]int {
	s.Helper()
	var data metricdata.ResourceMetrics
	s.must(reader.Collect(s.ctx, &data))
	out := make(map[string]int)
	note := func(name string, set attribute.Set, n int) {
		for _, a := range set.ToSlice() {
			if strings.Contains(a.Value.String(), "/") {
				s.Errorf("%s has the path %s", name, a.Value.String())
			}
		}
		if recipe, _ := set.Value("curator.recipe"); recipe.AsString() != "curator_cache" {
			s.Errorf("%s is of %q", name, recipe.AsString())
		}
		if called, _ := set.Value("curator.resource.name"); called.AsString() != "limits" {
			s.Errorf("%s is of the cache %q", name, called.AsString())
		}
		if event, ok := set.Value("zookeeper.event.type"); ok {
			name += " " + event.AsString()
		}
		out[name] += n
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			name, ok := strings.CutPrefix(m.Name, "curator.cache.")
			if !ok {
				continue
			}
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					note(name, p.Attributes, int(p.Value))
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					note(name, p.Attributes, int(p.Count))
				}
			}
		}
	}
	return out
}

func TestCacheMetrics(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		reader := sdkmetric.NewManualReader()
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		s.Cleanup(func() { s.must(provider.Shutdown(context.WithoutCancel(s.ctx))) })
		s.client = s.newClient(s.place, framework.WithMeterProvider(provider))
		s.set(root+"=1", root+"/a=1", root+"/b=1")
		w := s.start(cache.WithName("limits"))
		s.set(root+"/a=2", root+"/c=1")
		s.remove(root + "/b")
		if got := w.received(); len(got) != 3 {
			t.Errorf("events %q", got)
		}
		want := map[string]int{
			"entries": 3, "reloads": 1, "lag": 2,
			"events node_created": 4, "events node_data_changed": 1, "events node_deleted": 1,
		}
		got := s.counted(reader)
		if got["reloads"] < 1 { // with one-shot watches the first connection is lost when the server is asked
			t.Errorf("%d reloads", got["reloads"])
		}
		want["reloads"] = got["reloads"]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		refusal := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"getData", "multiRead"}, Path: "/**" + root + "/a",
			Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		s.set(root + "/a=3")
		testenv.Eventually(t, func() bool { return w.Err(root+"/a") != nil }, "a node cannot be read")
		unreadable := func(n int) { // they are counted behind the change of the error
			t.Helper()
			what := fmt.Sprint(n, " unreadable nodes")
			testenv.Eventually(t, func() bool { return s.counted(reader)["unreadable"] == n }, what)
		}
		unreadable(1)
		refusal.Remove()
		testenv.Eventually(t, func() bool { return w.Err(root+"/a") == nil }, "the node is read again")
		unreadable(0)
		s.must(w.Close())
		if n := s.counted(reader)["entries"]; n != 0 {
			t.Errorf("%d entries after Close", n)
		}
	})
}
