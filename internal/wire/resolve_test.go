package wire_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// dropping is a server that accepts connections and hangs up.
func dropping(tb testing.TB) *server {
	tb.Helper()
	s := newServer(tb)
	s.greet = func(p *peer, _ jute.ConnectRequest) bool {
		p.cut()
		return true
	}
	return s
}

// muteServer is a server that accepts connections and says nothing.
func muteServer(tb testing.TB) *server {
	tb.Helper()
	s := newServer(tb)
	s.greet = mute
	return s
}

func TestEachAddressOfANameIsTried(t *testing.T) {
	for range 10 { // their order is random
		synctest.Test(t, func(t *testing.T) {
			cfg := dialTo(network{
				"10.0.0.1:1": dropping(t), "10.0.0.2:1": muteServer(t), "10.0.0.3:1": blackHole, "[fe80::4]:1": newServer(t),
			})
			cfg.Servers = []string{"zk:1"}
			cfg.Resolve = func(_ context.Context, host string) ([]string, error) {
				if host != "zk" {
					t.Errorf("resolves %q", host)
				}
				return []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "fe80::4"}, nil
			}
			var hosts recorder[string]
			cfg.Secure = func(_ context.Context, nc net.Conn, host string) (net.Conn, error) {
				hosts.add(host)
				return nc, nil
			}
			dials := recordDials(&cfg)
			start := time.Now()
			c := open(t, cfg)
			c.await(t, wire.Connected)
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("connected after %s", d)
			}
			for _, host := range hosts.all() {
				if host != "zk" {
					t.Errorf("TLS with %q, want the name", host)
				}
			}
			if n := len(dials.all()); n > 4 {
				t.Errorf("%d dials", n)
			}
		})
	}
}

func TestNamesAreResolvedInEachPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		cfg := dialTo(network{"10.0.0.1:1": nil, "10.0.0.2:1": nil, "10.0.0.9:1": s})
		cfg.Servers = []string{"zk:1", "10.0.0.2:1"}
		var lookups atomic.Int32
		cfg.Resolve = func(context.Context, string) ([]string, error) {
			switch lookups.Add(1) {
			case 1:
				return []string{"10.0.0.1"}, nil
			case 2:
				return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
			case 3:
				return nil, nil
			default:
				return []string{"10.0.0.9"}, nil
			}
		}
		dials := recordDials(&cfg)
		c := open(t, cfg)
		c.await(t, wire.Connected)
		if n := lookups.Load(); n != 4 {
			t.Errorf("%d lookups, want 4", n)
		}
		var addresses []string
		for _, d := range dials.all() {
			addresses = append(addresses, d.address)
		}
		slices.Sort(addresses)
		addresses = slices.Compact(addresses)
		if diff := cmp.Diff([]string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.9:1"}, addresses); diff != "" {
			t.Errorf("dialed (-want +got):\n%s", diff)
		}
	})
}

// The address that has just failed is the last of its name, and the next one is dialed at once.
func TestAnotherAddressIsNextWhenAConnectionIsLost(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t)
			cfg := dialTo(network{"10.0.0.1:1": s, "10.0.0.2:1": s})
			cfg.Servers = []string{"zk:1"}
			cfg.Resolve = func(context.Context, string) ([]string, error) { return []string{"10.0.0.1", "10.0.0.2"}, nil }
			dials := recordDials(&cfg)
			c := open(t, cfg)
			c.want(t, wire.Connected)
			<-time.After(time.Minute)
			s.next(t).cut()
			c.await(t, wire.Connected)
			all := dials.all()
			if len(all) != 2 || all[0].address == all[1].address {
				t.Errorf("dialed %v", all)
			}
		})
	}
}

func TestNameIsForTheDialerWhenNothingResolvesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := dialTo(network{"zk:1": newServer(t)})
		dials := recordDials(&cfg)
		c := open(t, cfg)
		c.want(t, wire.Connected)
		if all := dials.all(); len(all) != 1 || all[0].address != "zk:1" {
			t.Errorf("dialed %v", all)
		}
	})
}

func TestResolverThatNeverReturnsDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		cfg := dialTo(network{"10.0.0.2:1": newServer(t)})
		cfg.Servers = []string{"zk:1", "10.0.0.2:1"}
		cfg.Resolve = func(context.Context, string) ([]string, error) {
			<-release
			return nil, errors.New("too late")
		}
		c := open(t, cfg)
		c.await(t, wire.Connected)
		start := time.Now()
		c.Close()
		if d := time.Since(start); d > 0 {
			t.Errorf("Close took %s", d)
		}
		close(release)
	})
}
