package framework_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/retry"
)

func TestTelemetryConnectionWaitIsEvent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		context time.Duration // how long the caller waits
		want    time.Duration
	}{
		{"connected", time.Minute, 3 * time.Second},
		{"caller gives up", 2 * time.Second, 2 * time.Second},
		{"connection timeout", time.Minute, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				t.Helper()
				o := observe.New(t)
				var slow atomic.Bool // the first attempt to connect was
				options := observed(o, framework.WithRetryPolicy(retry.NTimes(0, 0)), framework.WithoutEnsembleTracker(),
					framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
						if !slow.Swap(true) {
							time.Sleep(3 * time.Second)
						}
						return place.DialContext(ctx, network, address)
					}))
				if tt.name == "connection timeout" {
					options = append(options, framework.WithConnectionTimeout(time.Second))
				}
				client := newClient(t, place.Addr()+chroot, options...)
				started := time.Now()
				start(t, client)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tt.context)
				defer cancel()
				_, err := client.CheckExists().ForPath(ctx, "/")
				ended := time.Now()
				if (err == nil) != (tt.name == "connected") {
					t.Errorf("exists: %v", err)
				}
				span := o.Named("exists")[0]
				// Virtual time is exact; beside a real server each step takes some time.
				var seconds float64
				events := observe.Events(span, "curator.connection.wait")
				if len(events) != 1 || len(span.Events()) == 0 {
					t.Fatalf("events %v", events)
				}
				if _, err := fmt.Sscanf(events[0], "curator.connection.wait.duration=%g", &seconds); err != nil {
					t.Fatalf("event %q: %v", events[0], err)
				}
				from := span.Events()[0].Time
				to := from.Add(time.Duration(math.Round(seconds * 1e9)))
				if from.Before(began) || to.Before(started.Add(tt.want)) || to.After(ended) {
					t.Errorf("the wait lasts from %v to %v of %v after the call, want %v",
						from.Sub(began), to.Sub(began), ended.Sub(began), tt.want)
				}
				must(t, client.BlockUntilConnected(t.Context()))
				// What begins while the client hands the connection to those who wait for it waits a moment behind them.
				for n := 1; ; n++ {
					exists(t, client, "/")
					got := observe.Events(o.Named("exists")[n], "curator.connection.wait")
					if len(got) == 0 {
						break
					}
					if n == 20 {
						t.Fatalf("with a connection: %v", got)
					}
				}
			})
		})
	}
}
