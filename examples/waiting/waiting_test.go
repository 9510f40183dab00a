package waiting

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

// lateServer is a server whose port is refused until it is up.
type lateServer struct {
	*curatortest.Server
	up atomic.Bool
}

func (s *lateServer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !s.up.Load() {
		return nil, syscall.ECONNREFUSED
	}
	return s.Server.DialContext(ctx, network, address)
}

func startClient(t *testing.T, server *lateServer) *framework.Client {
	t.Helper()
	client, err := framework.New(server.ConnectString(), framework.WithDialer(server.DialContext))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	return client
}

func TestForServerSaysAfterTwoSecondsThatItWaits(t *testing.T) {
	for _, test := range []struct {
		upAfter time.Duration
		said    map[time.Duration]string
	}{
		{upAfter: 0},
		{upAfter: time.Second},
		{upAfter: time.Minute, said: map[time.Duration]string{2 * time.Second: "waiting for a ZooKeeper server at zk:2181"}},
	} {
		t.Run(test.upAfter.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &lateServer{Server: curatortest.NewServerT(t, curatortest.WithoutPort())}
				client := startClient(t, server)
				start := time.Now()
				time.AfterFunc(test.upAfter, func() { server.up.Store(true) })
				var said map[time.Duration]string
				err := ForServer(t.Context(), client, "zk:2181", func(format string, args ...any) {
					said = map[time.Duration]string{time.Since(start): fmt.Sprintf(format, args...)}
				})
				if err != nil || !client.IsConnected() || time.Since(start) < test.upAfter {
					t.Errorf("after %v: connected %t, %v", time.Since(start), client.IsConnected(), err)
				}
				if diff := cmp.Diff(test.said, said); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestForServerCancelledReturnsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := startClient(t, &lateServer{Server: curatortest.NewServerT(t, curatortest.WithoutPort())})
		for _, limit := range []time.Duration{time.Second, time.Minute} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			said := 0
			err := ForServer(ctx, client, "zk:2181", func(string, ...any) { said++ })
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("limit %v: %v", limit, err)
			}
			if want := map[time.Duration]int{time.Second: 0, time.Minute: 1}[limit]; said != want {
				t.Errorf("limit %v: said %d times, not %d", limit, said, want)
			}
		}
	})
}
