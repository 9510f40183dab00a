package wire_test

import (
	"context"
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

// tried is a network that records which servers are dialed.
type tried struct {
	network
	list recorder[string]
}

// The order of the program counts from its first server on, each time that a connection is needed.
func TestOrderOfTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := tried{network: network{"a:1": newServer(t), "b:1": newServer(t), "c:1": newServer(t)}}
		cfg := dialTo(n.network)
		dial := cfg.Dial
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			n.list.add(address)
			return dial(ctx, network, address)
		}
		var asked atomic.Int64
		cfg.Order = func(_ context.Context, servers []string) []string {
			asked.Add(1)
			slices.Sort(servers)
			if got := slices.Clone(servers); !slices.Equal(got, []string{"a:1", "b:1", "c:1"}) {
				t.Errorf("asked for the order of %v", got)
			}
			return []string{"c:1", "none:1", "c:1", "a:1"} // b comes last
		}
		c := open(t, cfg)
		c.await(t, wire.Connected)
		for range 3 {
			time.Sleep(2 * time.Second) // the server is well
			n.network["c:1"].cutAll()
			c.await(t, wire.Connected)
		}
		if diff := cmp.Diff([]string{"c:1", "c:1", "c:1", "c:1"}, n.list.all()); diff != "" || asked.Load() != 4 {
			t.Errorf("asked %d times (-want +dialed):\n%s", asked.Load(), diff)
		}
		n.list.clear()
		time.Sleep(2 * time.Second)
		down := n.network["c:1"]
		n.network["c:1"] = nil
		down.cutAll()
		c.await(t, wire.Connected)
		if diff := cmp.Diff([]string{"c:1", "a:1"}, n.list.all()); diff != "" {
			t.Errorf("with c away (-want +dialed):\n%s", diff)
		}
	})
}

// The first server of the order does not hold a client that others would serve.
func TestOrderWithAServerThatFlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := newServer(t), newServer(t)
		bad.serve = func(p *peer, r *request) bool {
			if r.Op == jute.OpGetData {
				p.yes(r)
				p.cut()
				return true
			}
			return false
		}
		cfg := dialTo(network{"a:1": bad, "b:1": good})
		cfg.Order = func(_ context.Context, servers []string) []string { return []string{"a:1", "b:1"} }
		c := open(t, cfg)
		c.await(t, wire.Connected)
		c.ask(t, get("/a", nil)) // an answer, and then no connection
		c.await(t, wire.Connected)
		if c.Peer() != "b:1" {
			t.Errorf("connected to %s", c.Peer())
		}
	})
}

// A function that does not return in time orders nothing, and holds nothing.
func TestOrderThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := dialTo(network{"a:1": newServer(t)})
		release := make(chan struct{})
		defer close(release)
		cfg.Order = func(context.Context, []string) []string { <-release; return nil }
		start := time.Now()
		c := open(t, cfg)
		c.await(t, wire.Connected)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("connected after %v", took)
		}
	})
}

// A change of the list asks again.
func TestOrderOfAnotherList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := dialTo(network{"a:1": newServer(t), "b:1": newServer(t), "c:1": newServer(t)})
		cfg.Servers = []string{"a:1"}
		cfg.Order = func(_ context.Context, servers []string) []string {
			slices.Sort(servers)
			slices.Reverse(servers)
			return servers
		}
		c := open(t, cfg)
		c.await(t, wire.Connected)
		c.UpdateServers([]string{"b:1", "c:1"})
		c.await(t, wire.Connected)
		if c.Peer() != "c:1" {
			t.Errorf("connected to %s", c.Peer())
		}
	})
}
