package framework_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// ensembleInMemory is three servers of one ensemble that a test can slow down.
type ensembleInMemory struct {
	cluster *curatortest.Cluster
	delays  map[string]time.Duration // of the dialer, by address; negative never connects
}

func (e *ensembleInMemory) dial(ctx context.Context, network, address string) (net.Conn, error) {
	delay := e.delays[address]
	if delay < 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(delay)
	return e.cluster.DialContext(ctx, network, address)
}

func TestServerOrders(t *testing.T) {
	for _, tt := range []struct {
		name   string
		order  framework.ServerOrder
		delays [3]time.Duration
		want   int
	}{
		{"as given", framework.AsGiven(), [3]time.Duration{}, 0},
		{"as given, and the first one away", framework.AsGiven(), [3]time.Duration{-1}, 1},
		{"by latency", framework.ByLatency(), [3]time.Duration{
			20 * time.Millisecond, 9 * time.Millisecond,
			time.Millisecond,
		}, 2},
		{"by latency, and one away", framework.ByLatency(), [3]time.Duration{-1, time.Millisecond, 9 * time.Millisecond}, 1},
		{"by the program", framework.OrderedBy(func(_ context.Context, servers []string) []string {
			slices.Sort(servers)
			slices.Reverse(servers)
			return servers
		}), [3]time.Duration{}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &ensembleInMemory{cluster: curatortest.NewClusterT(t, 3, curatortest.WithoutPort())}
				addrs := strings.Split(e.cluster.ConnectString(), ",")
				slices.Sort(addrs)
				e.delays = map[string]time.Duration{}
				for i, d := range tt.delays {
					e.delays[addrs[i]] = d
				}
				client := newClient(t, addrs[0]+","+addrs[1]+","+addrs[2], framework.WithServerOrder(tt.order),
					framework.WithDialer(e.dial))
				start(t, client)
				awaitConnected(t, client)
				if got := client.Health().Server; got != addrs[tt.want] {
					t.Errorf("connected to %s of %v", got, addrs)
				}
				closeClient(t, client)
			})
		})
	}
}

// twoHosts knows two hosts.
type twoHosts struct{ framework.Resolver }

func (twoHosts) LookupHost(_ context.Context, host string) ([]string, error) {
	switch host {
	case "near":
		return []string{"127.0.0.1"}, nil
	case "far":
		return []string{"198.51.100.1"}, nil // reserved for documentation
	}
	return nil, errors.New("no such host")
}

// A server on this host goes before one that is far away; names are looked up.
func TestServerOrderLocalFirst(t *testing.T) {
	t.Parallel()
	for range 5 {
		var first atomic.Pointer[string]
		client := newClient(t, "far:1,none:1,198.51.100.2:1,near:1", framework.WithServerOrder(framework.LocalFirst()),
			framework.WithResolver(twoHosts{}), framework.WithDialer(
				func(ctx context.Context, _, address string) (net.Conn, error) {
					first.CompareAndSwap(nil, &address)
					<-ctx.Done()
					return nil, ctx.Err()
				}))
		start(t, client)
		testenv.Eventually(t, func() bool { return first.Load() != nil }, "a try")
		closeClient(t, client)
		if got := first.Load(); *got != "near:1" {
			t.Errorf("tried %q first", *got)
		}
	}
}

// A dialer that returns nothing, or panics, has failed.
func TestServerOrderByLatencyOfADialerThatMisbehaves(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(){"returns nothing": func() {}, "panics": func() { panic("oops") }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, chroot := split(testenv.ConnectString(t))
			var asked atomic.Int64
			client := newClient(t, "none:1,"+addr+chroot, framework.WithServerOrder(framework.ByLatency()),
				framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
					if address == "none:1" {
						asked.Add(1)
						fail()
						return nil, nil //nolint:nilnil // the point
					}
					return (&net.Dialer{}).DialContext(ctx, network, address)
				}))
			start(t, client)
			awaitConnected(t, client)
			if asked.Load() == 0 {
				t.Error("the latency was not measured")
			}
		})
	}
}
