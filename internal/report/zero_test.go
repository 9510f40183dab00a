package report_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/queue"
)

// A rate sees the first change only if the counter was 0 before it.
func TestCountersKnownAtStartBeginAtZero(t *testing.T) {
	t.Parallel()
	server := curatortest.NewServerT(t, curatortest.WithoutPort())
	o := observe.New(t)
	client, err := framework.New(server.ConnectString(), framework.WithDialer(server.DialContext),
		framework.WithTracerProvider(o.Tracers), framework.WithMeterProvider(o.Meters))
	must(t, err)
	must(t, client.Start())
	defer client.Close() //nolint:errcheck // the end of the test

	latch := leader.NewLeaderLatch(client, "/leader", leader.WithName("reports"))
	must(t, latch.Start())
	defer latch.Close() //nolint:errcheck // the end of the test
	nothing := func(context.Context, int) error { return nil }
	jobs, err := queue.NewBuilder(client, nothing, codec.JSON[int]{}, "/jobs").Name("jobs").BuildQueue()
	must(t, err)
	must(t, jobs.Start())
	defer jobs.Close() //nolint:errcheck // the end of the test
	config := cache.NewCuratorCache(client, "/config", cache.WithName("config"))
	must(t, config.Start())
	defer config.Close() //nolint:errcheck // the end of the test

	for metric, want := range map[string]string{
		"curator.connection.state_changes": "connected lost read_only reconnected suspended",
		"curator.session.expirations":      "",
		"curator.watch.events": "node_children_changed node_created node_data_changed node_deleted none " +
			"persistent_watch_removed",
		"curator.leader.changes":             "closed elected interrupted lost returned",
		"curator.queue.requeues":             "",
		"curator.queue.dead_letters":         "",
		"curator.queue.claims.lost":          "lost taken",
		"messaging.client.sent.messages":     "",
		"messaging.client.consumed.messages": "",
		"curator.cache.reloads":              "",
		"curator.cache.events":               "node_created node_data_changed node_deleted",
	} {
		// A recipe begins its series one after another, when it runs: the reader may come between two of them.
		var diff string
		testenv.Eventually(t, func() bool {
			var got []string
			for _, p := range observe.Points(o.Metrics(t)[metric]) {
				value := ""
				for _, key := range []string{"curator.connection.state", "zookeeper.event.type", "curator.outcome"} {
					if v, ok := p.Attributes.Value(attribute.Key(key)); ok {
						value = v.AsString()
					}
				}
				got = append(got, value)
			}
			diff = cmp.Diff(strings.Split(want, " "), slices.Sorted(slices.Values(got)))
			return diff == ""
		}, metric)
	}
}
