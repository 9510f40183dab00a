package framework_test

import (
	"os"
	"os/exec"
	"testing"

	"go.opentelemetry.io/otel"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// globalVariable has the server of the process of TestTelemetryUsesGlobalProviders.
const globalVariable = "FRAMEWORK_TEST_GLOBAL_CONNECT"

// The providers of a program may be set behind the making of its clients. A process has them once.
func TestTelemetryUsesGlobalProviders(t *testing.T) {
	if connect := os.Getenv(globalVariable); connect != "" {
		tellGlobalProviders(t, connect)
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(testenv.Context(t), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), globalVariable+"="+testenv.ConnectString(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func tellGlobalProviders(t *testing.T, connect string) {
	t.Helper()
	o, own := observe.New(t), observe.New(t)
	traced := connectClient(t, connect)
	none := connectClient(t, connect, framework.WithTracerProvider(nil), framework.WithMeterProvider(nil))
	elsewhere := connectClient(t, connect, observed(own)...)
	exists(t, traced, "/")
	otel.SetTracerProvider(o.Tracers)
	otel.SetMeterProvider(o.Meters)
	for _, client := range []*framework.Client{traced, none, elsewhere} {
		exists(t, client, "/")
	}
	wantTree(t, o, "exists CLIENT\nexists CLIENT\n")
	wantTree(t, own, "exists CLIENT\n")
	if points := observe.Points(o.Metrics(t)["db.client.operation.duration"]); len(points) != 1 || points[0].Value != 2 {
		t.Errorf("measured %v", points)
	}
}

func TestTelemetryPathFormatterPanicHidesPath(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	opts := observed(o, framework.WithPathFormatter(func(string) string { panic("no") }), framework.WithWatchSpans())
	client := connectClient(t, testenv.ConnectString(t), opts...)
	create(t, client, "/n", "")
	watcher, recorded := newWatcher()
	_, err := client.GetData().UsingWatcher(watcher).ForPath(testenv.Context(t), "/n")
	must(t, err)
	setData(t, client, "/n", "1")
	receive(t, recorded)
	closeClient(t, client)
	for _, s := range o.Spans() {
		if path := observe.Attribute(s, "zookeeper.path"); path.AsString() != "" {
			t.Errorf("%s has path %q", s.Name(), path.AsString())
		}
	}
	wantTree(t, o, "create CLIENT\ngetData CLIENT\nsetData CLIENT\nwatch node_data_changed -> getData\n")
}
