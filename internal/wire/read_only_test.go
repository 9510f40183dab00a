package wire_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// readOnly grants sessions of a server without a quorum, to clients that accept them.
func readOnly(p *peer, req jute.ConnectRequest) bool {
	if !req.ReadOnly {
		p.cut()
		return true
	}
	p.grantAs(true)
	return true
}

// answering is a server that answers the four-letter word isro.
func answering(tb testing.TB, word string) *server {
	tb.Helper()
	s := newServer(tb)
	s.word.Store(&word)
	return s
}

// twoServers has one server without a quorum and another that answers word, and is refused until it is up.
func twoServers(tb testing.TB, word string) (cfg wire.Config, lonely, other *server, up chan struct{}) {
	tb.Helper()
	lonely, other = answering(tb, "ro"), answering(tb, word)
	lonely.greet = readOnly
	up = make(chan struct{})
	n := network{"a:1": lonely, "b:1": other}
	cfg = dialTo(n)
	cfg.ReadOnly = true
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		select {
		case <-up:
		default:
			if address == "b:1" {
				return nobody.dial(ctx, network, address)
			}
		}
		return n.dial(ctx, network, address)
	}
	return cfg, lonely, other, up
}

// nobody is a network without servers.
var nobody network

func TestReadOnlySessionIsReplacedWhenAQuorumIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, lonely, other, up := twoServers(t, "rw")
		c := open(t, cfg)
		c.await(t, wire.ConnectedReadOnly)
		w := newWatcher()
		if r := c.ask(t, watch(jute.OpGetData, "/a", w, nil)); r.Err != nil {
			t.Fatal(r.Err)
		}
		first := c.SessionID()
		if p := lonely.next(t); p.session != first || p.greeting.SessionID != 0 {
			t.Errorf("session %#x, requested %#x", first, p.greeting.SessionID)
		}
		<-time.After(time.Minute) // no server has a quorum: it stays
		empty(t, c.states)

		close(up)
		start := time.Now()
		c.want(t, wire.Disconnected)
		c.want(t, wire.Connected)
		if d := time.Since(start); d > 11*time.Second {
			t.Errorf("found after %s", d)
		}
		// The other servers know nothing of the session.
		if p := other.next(t); p.greeting.SessionID != 0 || c.SessionID() != p.session {
			t.Errorf("asks for session %#x and has %#x", p.greeting.SessionID, c.SessionID())
		}
		synctest.Wait() // the watchers come after the listener
		var states []zk.State
		for len(w) > 0 {
			states = append(states, (<-w).State)
		}
		if len(states) != 2 || states[0] != zk.StateDisconnected || states[1] != zk.StateHasSession {
			t.Errorf("watcher gets %v", states)
		}
		<-time.After(time.Hour) // the search is over
		empty(t, c.states)
		empty(t, lonely.peers)
	})
}

func TestServerThatHasAQuorumIsTheNextToBeTried(t *testing.T) {
	for range 20 { // the order of the servers is random
		synctest.Test(t, func(t *testing.T) {
			lonely, other := answering(t, "ro"), answering(t, "rw")
			lonely.greet = readOnly
			n := network{"a:1": lonely, "b:1": blackHole, "c:1": blackHole, "d:1": blackHole}
			cfg := dialTo(n)
			cfg.ReadOnly = true
			var found atomic.Bool
			cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if address == "d:1" && found.Load() {
					return other.pipe(), nil
				}
				return n.dial(ctx, network, address)
			}
			c := open(t, cfg)
			c.await(t, wire.ConnectedReadOnly)
			found.Store(true)
			c.await(t, wire.Disconnected)
			lost := time.Now()
			c.want(t, wire.Connected)
			if d := time.Since(lost); d > 10*time.Millisecond {
				t.Errorf("%s without a connection: others were tried first", d)
			}
		})
	}
}

func TestSessionOfAQuorumOutlivesAReadOnlyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answering(t, "ro")
		cfg := dialTo(network{"a:1": s})
		cfg.ReadOnly = true
		c := open(t, cfg)
		c.want(t, wire.Connected)
		id := c.SessionID()
		for _, step := range []struct {
			greet func(*peer, jute.ConnectRequest) bool
			want  wire.State
		}{{readOnly, wire.ConnectedReadOnly}, {nil, wire.Connected}} {
			s.next(t)
			s.greet = step.greet
			s.cutAll()
			c.want(t, wire.Disconnected)
			c.want(t, step.want)
			if c.SessionID() != id {
				t.Errorf("session %#x, want %#x", c.SessionID(), id)
			}
		}
		if got := s.next(t).greeting.SessionID; got != id {
			t.Errorf("asks for session %#x, want %#x", got, id)
		}
	})
}

func TestServerWithoutQuorumIsRefusedByReadWriteSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lonely, other := newServer(t), newServer(t)
		lonely.greet = readOnly
		c := open(t, dialTo(network{"a:1": lonely, "b:1": other}))
		c.await(t, wire.Connected)
		other.next(t)
	})
}

func TestSearchForQuorumSkipsServersWithoutOne(t *testing.T) {
	for _, word := range []string{"ro", "", "imok", "rw and much more than fits in an answer"} {
		t.Run(word, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, _, other, up := twoServers(t, word)
				close(up)
				other.greet = func(p *peer, _ jute.ConnectRequest) bool {
					p.cut()
					return true
				}
				c := open(t, cfg)
				c.await(t, wire.ConnectedReadOnly)
				<-time.After(time.Hour)
				empty(t, c.states)
			})
		})
	}
}

func TestCloseDoesNotWaitForTheSearchForAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lonely, silent := answering(t, "ro"), newServer(t) // silent waits for a frame and says nothing
		lonely.greet = readOnly
		silent.greet = mute
		cfg := dialTo(network{"a:1": lonely, "b:1": silent})
		cfg.ReadOnly = true
		requested := make(chan struct{}, 100)
		dial := cfg.Dial
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := dial(ctx, network, address)
			if address == "b:1" {
				requested <- struct{}{}
			}
			return nc, err
		}
		c := open(t, cfg)
		c.await(t, wire.ConnectedReadOnly)
		for len(requested) > 0 {
			<-requested
		}
		receive(t, requested)
		start := time.Now()
		c.Close()
		if d := time.Since(start); d > 0 {
			t.Errorf("took %s", d)
		}
	})
}
