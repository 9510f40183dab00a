package framework_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/retry"
)

func TestConnectionWaitIsAnEventOfTheOperation(t *testing.T) {
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
				options := observed(o, framework.WithRetryPolicy(retry.NTimes(0, 0)), framework.WithEnsembleTracker(false),
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
				// Virtual time is exact; beside a real server it is not.
				var seconds float64
				events := observe.Events(span, "curator.connection.wait")
				if len(events) != 1 || len(span.Events()) == 0 {
					t.Fatalf("events %v", events)
				}
				if _, err := fmt.Sscanf(events[0], "curator.connection.wait.duration=%g", &seconds); err != nil ||
					seconds < tt.want.Seconds() || seconds > ended.Sub(began).Seconds() {
					t.Errorf("event %q, want %v of %v", events[0], tt.want, ended.Sub(began))
				}
				if at := span.Events()[0].Time; at.Before(began) || at.After(began.Add(ended.Sub(began)-tt.want)) {
					t.Errorf("the wait began %v after the call", at.Sub(began))
				}
				must(t, client.BlockUntilConnected(t.Context()))
				exists(t, client, "/")
				if got := observe.Events(o.Named("exists")[1], "curator.connection.wait"); len(got) > 0 {
					t.Errorf("with a connection: %v", got)
				}
			})
		})
	}
}
