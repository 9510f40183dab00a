package nodes_test

import (
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/nodes"
)

// The metrics follow a node that is foreign, there, gone and closed.
func TestTelemetryNodeStates(t *testing.T) {
	o := observe.New(t)
	inScene(t, func(s *scene) {
		want := func(desired, missing, refused string) {
			s.Helper()
			got := func(name string) string { return o.Values(s.T, "curator.nodes."+name) }
			const series = "curator.recipe=persistent_node,curator.resource.name=members "
			testenv.Eventually(s, func() bool {
				return got("desired") == series+desired+"\n" && got("missing") == series+missing+"\n" &&
					(refused == "" || got("refused") == series+refused+"\n")
			}, desired+" desired, "+missing+" missing, "+refused+" refused")
		}
		_, err := s.reader.Create().CreatingParentsIfNeeded().WithMode(builders.Ephemeral).ForPath(s.ctx, keptPath, nil)
		s.must(err)
		one := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, nil, nodes.WithName("members"))
		s.must(one.Start())
		want("1", "1", "1")
		two := s.ephemeral("/members/b", "", nodes.WithName("members"))
		want("2", "1", "1")
		s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
		want("2", "0", "0")
		restore := s.place.Faults().RefuseConnects()
		s.place.Faults().CutAll()
		want("2", "2", "0")
		restore()
		want("2", "0", "0")
		s.must(one.Close(s.ctx))
		s.must(two.Close(s.ctx))
		want("0", "0", "0")
		o.WantBounded(s.T)
	}, framework.WithMeterProvider(o.Meters))
}

func TestTelemetryOffAllocatesNothing(t *testing.T) {
	for name, off := range map[string]*telemetry.Telemetry{"none": nil, "off": telemetry.New(telemetry.Config{})} {
		allocations := testing.AllocsPerRun(100, func() {
			obs := report.NewNodes(off, "persistent_node", "members", keptPath)
			obs.Desired(t.Context(), 1)
			obs.Missing(t.Context(), 1)
			obs.Refused(t.Context(), 1)
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}
