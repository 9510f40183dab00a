package framework_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		want    []string
	}{
		{"connected", time.Minute, []string{"curator.connection.wait.duration=3"}},
		{"caller gives up", 2 * time.Second, []string{"curator.connection.wait.duration=2"}},
		{"connection timeout", time.Minute, []string{"curator.connection.wait.duration=1"}},
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
				if (err == nil) != (tt.name == "connected") {
					t.Errorf("exists: %v", err)
				}
				span := o.Named("exists")[0]
				if diff := cmp.Diff(tt.want, observe.Events(span, "curator.connection.wait")); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if events := span.Events(); len(events) > 0 && !events[0].Time.Equal(began) {
					t.Errorf("the wait began %v after the call", events[0].Time.Sub(began))
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
