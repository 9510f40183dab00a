package wire_test

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

func TestConnectRequestHasTheHighestZxidSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var zxid atomic.Int64
		s.serve = func(p *peer, r *request) bool {
			if r.Xid < wire.FirstXid {
				return false
			}
			p.answer(r.Xid, zxid.Load(), jute.CodeNoNode, nil)
			return true
		}
		c, p := connectPiped(t, s)
		var highest int64
		for _, answers := range [][]int64{{100, 101, 100}, {0, -1}, {7}, {205}} {
			if p.greeting.LastZxidSeen != highest {
				t.Errorf("last zxid seen is %d, want %d", p.greeting.LastZxidSeen, highest)
			}
			for _, seen := range answers {
				zxid.Store(seen)
				c.ask(t, get("/a", nil))
				highest = max(highest, seen)
			}
			p.cut()
			c.await(t, wire.Connected)
			p = s.next(t)
		}
		if p.greeting.LastZxidSeen != highest {
			t.Errorf("last zxid seen is %d, want %d", p.greeting.LastZxidSeen, highest)
		}
	})
}

func TestConnectRequestSaysWhetherAReadOnlyServerWillDo(t *testing.T) {
	for name, readOnly := range map[string]bool{"it will": true, "it will not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				cfg := dialTo(network{"a:1": s})
				cfg.ReadOnly = readOnly
				open(t, cfg)
				if g := s.next(t).greeting; !g.HasReadOnly || g.ReadOnly != readOnly {
					t.Errorf("read-only is %t, present %t", g.ReadOnly, g.HasReadOnly)
				}
			})
		})
	}
}

func TestSessionIsResumedOnTheNextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		c, p := connectPiped(t, s)
		id := c.SessionID()
		if id != p.session {
			t.Errorf("session %#x, want %#x", id, p.session)
		}
		p.cut()
		c.want(t, wire.Disconnected)
		c.want(t, wire.Connected)
		if g := s.next(t).greeting; g.SessionID != id || string(g.Password) != "sixteen letters!" {
			t.Errorf("asks for session %#x with password %q", g.SessionID, g.Password)
		}
		if c.SessionID() != id {
			t.Errorf("session %#x, want %#x", c.SessionID(), id)
		}
	})
}

func TestNegotiatedTimeoutCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		requested := make(chan struct{})
		s.greet = func(p *peer, _ jute.ConnectRequest) bool {
			<-requested
			p.respond(jute.ConnectResponse{TimeoutMs: 6000, SessionID: 5})
			return true
		}
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = 40 * time.Second
		c := open(t, cfg)
		if got := c.SessionTimeout(); got != 40*time.Second {
			t.Errorf("before the handshake %s, want the requested one", got)
		}
		close(requested)
		c.want(t, wire.Connected)
		if got := c.SessionTimeout(); got != 6*time.Second {
			t.Errorf("session timeout %s, want 6s", got)
		}
		if g := s.next(t).greeting; g.TimeoutMs != 40_000 {
			t.Errorf("asks for %d ms", g.TimeoutMs)
		}
	})
}

func TestRefusedHandshakeIsTriedAgain(t *testing.T) {
	refusals := map[string]func(p *peer){
		"hung up": func(p *peer) { p.cut() },
		"an error frame in place of the response": func(p *peer) {
			p.send(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: 0, Zxid: 77, Code: jute.CodeAuthFailed}))
		},
		"a truncated response": func(p *peer) {
			p.raw([]byte{0, 0, 0, 37, 0, 0, 0, 0, 0, 0, 0x75})
			p.cut()
		},
		"a response without a password": func(p *peer) {
			p.respond(jute.ConnectResponse{TimeoutMs: 6000, SessionID: 7, Password: []byte{}})
		},
		"another protocol": func(p *peer) {
			p.respond(jute.ConnectResponse{ProtocolVersion: 1, TimeoutMs: 6000, SessionID: 7})
		},
		"a negative timeout": func(p *peer) { p.respond(jute.ConnectResponse{TimeoutMs: -1, SessionID: 7}) },
		"a negative length":  func(p *peer) { p.raw([]byte{0xff, 0xff, 0xff, 0xff}) },
		"a huge length":      func(p *peer) { p.raw([]byte{0x7f, 0xff, 0xff, 0xff}) },
		"HTTP":               func(p *peer) { p.raw([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
	}
	for name, refuse := range refusals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				var refused bool
				s.greet = func(p *peer, _ jute.ConnectRequest) bool {
					if refused {
						return false
					}
					refused = true
					refuse(p)
					return true
				}
				c := open(t, dialTo(network{"a:1": s}))
				c.await(t, wire.Connected)
				s.next(t)
				p := s.next(t)
				if p.greeting.SessionID != 0 || c.SessionID() != p.session {
					t.Errorf("asks for session %#x and has %#x", p.greeting.SessionID, c.SessionID())
				}
			})
		})
	}
}

// mute leaves the connect request unanswered: so does a server that is just starting.
func mute(*peer, jute.ConnectRequest) bool { return true }

func TestMuteServerCostsAtMostTheConnectTimeout(t *testing.T) {
	const connectTimeout = 3 * time.Second
	for range 20 { // the order of the servers is random
		synctest.Test(t, func(t *testing.T) {
			silent, fine := newServer(t), newServer(t)
			silent.greet = mute
			cfg := dialTo(network{"a:1": silent, "b:1": fine})
			cfg.ConnectTimeout = connectTimeout
			start := time.Now()
			c := open(t, cfg)
			c.want(t, wire.Connected)
			if d := time.Since(start); d > connectTimeout {
				t.Errorf("connected after %s, want at most %s", d, connectTimeout)
			}
			synctest.Wait()
			if len(fine.peers) != 1 || len(silent.peers) > 1 {
				t.Errorf("requested the mute server %d times, the other %d", len(silent.peers), len(fine.peers))
			}
		})
	}
}

func TestMuteServerIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		start := time.Now()
		s.greet = func(*peer, jute.ConnectRequest) bool { return time.Since(start) < 5*time.Second }
		cfg := dialTo(network{"a:1": s})
		cfg.ConnectTimeout = 10 * time.Second
		c := open(t, cfg)
		c.await(t, wire.Connected)
		if d := time.Since(start); d > 15*time.Second {
			t.Errorf("connected after %s, 5s of which the server was mute", d)
		}
	})
}

// A server is away for long. When it starts it accepts a connection and drops the handshake, as Apache ZooKeeper does
// before it serves. The many refused tries before must not make the client wait for that answer for long.
func TestMuteServerAfterRefusedConnectionsIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		start := time.Now()
		const away = 20 * time.Second
		first := true
		s.greet = func(*peer, jute.ConnectRequest) (unanswered bool) {
			unanswered, first = first, false
			return unanswered
		}
		cfg := dialTo(network{"a:1": s})
		cfg.ConnectTimeout = 30 * time.Second
		dial := cfg.Dial
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if time.Since(start) < away {
				return nil, syscall.ECONNREFUSED
			}
			return dial(ctx, network, address)
		}
		c := open(t, cfg)
		c.await(t, wire.Connected)
		if d := time.Since(start) - away; d > 4*time.Second { // a pause, a second without an answer, a pause
			t.Errorf("connected %s after the server's start", d)
		}
	})
}

// Of many servers all but one are mute. The session must not expire before that one was requested.
func TestSessionOutlivesAPassOverMuteServers(t *testing.T) {
	for range 20 { // the order of the servers is random
		synctest.Test(t, func(t *testing.T) {
			fine := newServer(t)
			n := network{"a:1": fine}
			var broken []*server
			for _, address := range []string{"b:1", "c:1", "d:1", "e:1"} {
				n[address] = newServer(t)
				broken = append(broken, n[address])
			}
			cfg := dialTo(n)
			cfg.SessionTimeout = 4 * time.Second
			c := open(t, cfg)
			c.want(t, wire.Connected)
			for _, s := range broken {
				s.greet = mute
			}
			lost := time.Now()
			for _, s := range n {
				s.cutAll()
			}
			c.await(t, wire.Connected)
			if d := time.Since(lost); d >= cfg.SessionTimeout {
				t.Errorf("connected after %s: the session of %s is gone", d, cfg.SessionTimeout)
			}
		})
	}
}

// expiring grants one session, and then says that it is gone.
func expiring(p *peer, req jute.ConnectRequest) bool {
	if req.SessionID == 0 {
		return false
	}
	p.expire()
	return true
}

func TestExpiredSessionEndsTheConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.greet = expiring
		s.serve = func(_ *peer, r *request) bool { return r.path() == "/lost" }
		c, p := connectPiped(t, s)
		w := newWatcher()
		if r := c.ask(t, watch(jute.OpGetData, "/watched", w, nil)); r.Err != nil {
			t.Fatal(r.Err)
		}
		done := newAnswers()
		c.submit(t, get("/lost", done))
		synctest.Wait()
		p.cut()
		c.want(t, wire.Disconnected)
		c.want(t, wire.Expired)
		s.next(t)

		if r := receive(t, done); r.Err != jute.ErrConnectionLoss {
			t.Errorf("in flight: %v, want connection loss", r.Err)
		}
		if err := c.Submit(get("/late", discard), true); err != zk.ErrSessionExpired {
			t.Errorf("submit: %v, want zk.ErrSessionExpired", err)
		}
		if c.IsConnected() || c.WatchCount() != 0 {
			t.Errorf("connected %t, %d watches", c.IsConnected(), c.WatchCount())
		}
		for _, want := range []zk.State{zk.StateDisconnected, zk.StateExpired} {
			if ev := receive(t, w); ev.Type != zk.EventSession || ev.State != want {
				t.Errorf("watcher gets %+v, want %s", ev, want)
			}
		}
		<-time.After(time.Hour)
		empty(t, s.peers)
		empty(t, c.states)
		c.Close()
		empty(t, w)
		empty(t, c.states)
		if err := c.Submit(get("/late", discard), true); err != zk.ErrSessionExpired {
			t.Errorf("submit after Close: %v, want why it ended", err)
		}
	})
}

// Java takes a timeout of 0 for the end of a session, whatever the id.
func TestTimeoutOfZeroIsTheEndOfTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.greet = func(p *peer, _ jute.ConnectRequest) bool {
			p.respond(jute.ConnectResponse{SessionID: 7})
			return true
		}
		c := open(t, dialTo(network{"a:1": s}))
		c.want(t, wire.Expired)
	})
}

func TestNothingOfAnExpiredSessionIsSentInAnother(t *testing.T) {
	s := newServer(t)
	s.greet = expiring
	var arrived recorder[int]
	s.serve = func(_ *peer, r *request) bool {
		if r.Xid >= wire.FirstXid {
			arrived.add(number(t, r.path()))
		}
		return r.Xid >= wire.FirstXid
	}
	const total = wire.MaxInFlight + 2000
	address := s.listen(t)
	c := open(t, wire.Config{Servers: []string{address}})
	c.await(t, wire.Connected)
	p := s.peerOf(t, c)
	done := newAnswers()
	for n := range total {
		c.submit(t, numbered(n, done))
	}
	p.cut()
	c.await(t, wire.Expired)
	for range total {
		if r := receive(t, done); r.Err != jute.ErrConnectionLoss {
			t.Fatalf("%s: %v, want connection loss", r.Path, r.Err)
		}
	}
	wait(t, p.ended) // it has served what it had read
	before := len(arrived.all())
	next := open(t, wire.Config{Servers: []string{address}}) // the next session
	next.await(t, wire.Connected)
	if r := next.Submit(numbered(total, done), true); r != nil {
		t.Fatal(r)
	}
	p = s.peerOf(t, next) // behind the one that said that the first session was gone
	s.cutAll()
	next.await(t, wire.Expired)
	wait(t, p.ended)
	if got := arrived.all()[before:]; len(got) > 1 || len(got) == 1 && got[0] != total {
		t.Errorf("in the next session arrived %v, want only %d", got, total)
	}
}
