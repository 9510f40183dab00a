package framework_test

import (
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/telemetry"
)

// wrapper is a client of a user that changes a part of another one.
type wrapper struct{ *framework.Client }

// session is what a user's client may have without a client of this package.
type session struct{}

func (session) Session() *framework.Session { return nil }

func TestTelemetryOfClient(t *testing.T) {
	client, err := framework.New("localhost:2181")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	want := telemetry.Of(client)
	if want == nil {
		t.Fatal("a client has no telemetry")
	}
	for name, of := range map[string]any{
		"view":                      client.UsingNamespace("orders"),
		"watcher-removing view":     client.WatcherRemoving(),
		"wrapper":                   wrapper{client},
		"pointer to a wrapper":      &wrapper{client},
		"wrapper of a wrapper":      struct{ wrapper }{wrapper{client}},
		"wrapper of a view":         wrapper{client.UsingNamespace("orders")},
		"wrapper of a removing one": struct{ *framework.WatcherRemoveClient }{client.WatcherRemoving()},
	} {
		if telemetry.Of(of) != want {
			t.Errorf("%s: not the telemetry of its client", name)
		}
	}
	for name, of := range map[string]any{
		"nothing": nil, "no client": (*framework.Client)(nil), "wrapper of nothing": wrapper{}, "foreign client": session{},
	} {
		if telemetry.Of(of) != nil {
			t.Errorf("%s: has telemetry", name)
		}
	}
}
