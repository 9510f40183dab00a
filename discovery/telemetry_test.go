package discovery_test

import (
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

func TestTelemetryOfAService(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	client := testclient.Connect(t, curatortest.NewServerT(t).ConnectString(), framework.WithMeterProvider(o.Meters))
	ctx := testenv.Context(t)
	d := discovery.New[string](client, base)
	testclient.Must(t, d.Start())
	for _, id := range []string{"a", "b"} {
		testclient.Must(t, d.Register(ctx, orders(id, id)))
	}
	p := d.Provider("orders", discovery.WithDownInstancePolicy[string](time.Hour, 1))
	testclient.Must(t, p.Start(ctx))
	ill, err := p.Instance()
	testclient.Must(t, err)
	p.NoteError(ill)
	pick, err := p.Pick(ctx)
	testclient.Must(t, err)
	p.NoteError(pick.Instance)
	pick.Done(nil)
	if _, err := p.Instance(); err == nil {
		t.Error("an instance that is down")
	}
	const series = "curator.recipe=service_discovery,curator.resource.name=orders"
	for name, want := range map[string]string{
		"curator.discovery.instances": series + " 2\n", "curator.discovery.down": series + " 2\n",
		"curator.nodes.desired": series + " 2\n", "curator.nodes.missing": series + " 0\n",
		"curator.discovery.picks": "curator.outcome=no_instance," + series + " 1\ncurator.outcome=picked," + series + " 2\n",
	} {
		if got := o.Values(t, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	testclient.Must(t, d.Close(ctx))
	testenv.Eventually(t, func() bool {
		return o.Values(t, "curator.discovery.instances") == ""
	}, "a closed provider has no gauges")
}

// A collection of metrics reads the state of caches that begin and end meanwhile.
func TestTelemetryOfCachesThatComeAndGo(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	server := curatortest.NewServerT(t)
	client := testclient.Connect(t, server.ConnectString(), framework.WithMeterProvider(o.Meters))
	ctx := testenv.Context(t)
	d := discovery.New[string](client, base)
	testclient.Must(t, d.Start())
	stop, collected := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(collected)
		for {
			select {
			case <-stop:
				return
			default:
				o.Metrics(t)
			}
		}
	}()
	for range 50 {
		p := d.Provider("orders")
		testclient.Must(t, p.Start(ctx))
		testclient.Must(t, d.Register(ctx, orders("a", "one")))
		_, err := p.Pick(ctx)
		testclient.Must(t, err)
		testclient.Must(t, d.Unregister(ctx, orders("a", "one")))
		testclient.Must(t, p.Close())
	}
	close(stop)
	<-collected
	testclient.Must(t, d.Close(ctx))
}
