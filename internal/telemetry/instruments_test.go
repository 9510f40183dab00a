package telemetry_test

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

func TestPathsAddNoSeries(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	for i := range 1000 {
		run(t.Context(), tel, telemetry.Operation{Name: "create", Path: fmt.Sprint("/", i)}, i%2 == 0, nil)
		tel.WatchEvent(zk.Event{Type: zk.EventNodeCreated, Path: fmt.Sprint("/", i)})
	}
	for name, want := range map[string]string{
		"db.client.operation.duration":      "db.operation.name=create 1000\n",
		"curator.background.queue.duration": "db.operation.name=create 500\n",
		"curator.watch.events":              "zookeeper.event.type=node_created 1000\n",
	} {
		if diff := cmp.Diff(want, o.Values(t, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNamespacesBeyondAHundredAreOne(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	for i := range 150 {
		for _, name := range []string{"create", "delete"} {
			run(t.Context(), tel, telemetry.Operation{Name: name, Namespace: fmt.Sprint("tenant-", i)}, false, nil)
		}
	}
	run(t.Context(), tel, telemetry.Operation{Name: "create", Namespace: "tenant-7"}, false, nil)
	run(t.Context(), tel, telemetry.Operation{Name: "create"}, false, nil)
	series := make(map[string]int64)
	for _, p := range observe.Points(o.Metrics(t)["db.client.operation.duration"]) {
		name, _ := p.Attributes.Value("db.operation.name")
		namespace, _ := p.Attributes.Value("db.namespace")
		series[name.AsString()+" "+namespace.AsString()] = p.Value
	}
	if len(series) != 2*101+1 {
		t.Errorf("%d series, want those of 100 namespaces, of all others, and of none", len(series))
	}
	for name, want := range map[string]int64{
		"create _OTHER": 50, "delete _OTHER": 50, "create tenant-7": 2, "create tenant-99": 1, "create tenant-100": 0,
		"create ": 1,
	} {
		if series[name] != want {
			t.Errorf("%q was measured %d times, want %d", name, series[name], want)
		}
	}
}

func TestErrorTypesOfMetricsAreAClosedSet(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	for i := range 100 {
		run(t.Context(), tel, telemetry.Operation{Name: "sync"}, false, jute.Code(-1000-i).Err())
		run(t.Context(), tel, telemetry.Operation{Name: "sync"}, false, fmt.Errorf("something %d", i))
	}
	run(t.Context(), tel, telemetry.Operation{Name: "sync"}, false, zk.ErrNoAuth)
	run(t.Context(), tel, telemetry.Operation{Name: "sync"}, false, jute.ErrConnectionLoss)
	want := `db.operation.name=sync,db.response.status_code=NOAUTH,error.type=NOAUTH 1
db.operation.name=sync,db.response.status_code=_OTHER,error.type=_OTHER 100
db.operation.name=sync,error.type=CONNECTIONLOSS 1
db.operation.name=sync,error.type=_OTHER 100
`
	if diff := cmp.Diff(want, o.Values(t, "db.client.operation.duration")); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}
