package wire_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// refusesStrangers answers the probes whether s serves, and counts them.
func refusesStrangers(s *server) *recorder[jute.ConnectRequest] {
	var seen recorder[jute.ConnectRequest]
	s.greet = func(p *peer, req jute.ConnectRequest) bool {
		if req.SessionID != 1 {
			return false
		}
		seen.add(req)
		p.expire()
		return true
	}
	return &seen
}

func TestSessionMovesFromAServerThatIsNotInTheListAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newServer(t), newServer(t)
		questions := refusesStrangers(second)
		cfg := dialTo(network{"a:1": first, "b:1": second})
		cfg.Servers = []string{"a:1"}
		c := open(t, cfg)
		c.want(t, wire.Connected)
		p := first.next(t)
		c.ask(t, get("/a", nil))
		<-time.After(time.Minute)
		c.UpdateServers([]string{"b:1"})
		c.want(t, wire.Disconnected)
		c.want(t, wire.Connected)
		for {
			q := second.next(t)
			if q.greeting.SessionID == 1 {
				continue
			}
			if q.greeting.SessionID != p.session {
				t.Errorf("asks for session %#x, want %#x", q.greeting.SessionID, p.session)
			}
			break
		}
		if got := questions.all(); len(got) != 1 || got[0].LastZxidSeen != first.zxid.Load() || got[0].ReadOnly {
			t.Errorf("requested %+v", got)
		}
	})
}

func TestSessionStaysWhileNoServerOfTheListServes(t *testing.T) {
	tests := map[string]func(tb testing.TB) *server{
		"refused":    func(testing.TB) *server { return nil },
		"black hole": func(testing.TB) *server { return blackHole },
		"mute":       muteServer,
		"hangs up":   dropping,
		"garbage": func(tb testing.TB) *server {
			tb.Helper()
			s := newServer(tb)
			s.greet = func(p *peer, _ jute.ConnectRequest) bool {
				p.raw([]byte{0x7f, 0xff, 0xff, 0xff, 1})
				return true
			}
			return s
		},
	}
	for name, other := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := newServer(t), newServer(t)
				cfg, servers := dialToSwitchboard(network{"a:1": first, "b:1": other(t)})
				cfg.Servers = []string{"a:1"}
				c := open(t, cfg)
				c.want(t, wire.Connected)
				c.UpdateServers([]string{"b:1"})
				<-time.After(time.Hour)
				synctest.Wait()
				empty(t, c.states)
				if r := c.ask(t, get("/a", nil)); r.Err != nil {
					t.Errorf("on the connection that stands: %v", r.Err)
				}
				servers.set("b:1", second)
				c.want(t, wire.Disconnected)
				c.want(t, wire.Connected)
			})
		})
	}
}

func TestSessionStaysWhenTheListIsAsBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newServer(t), newServer(t)
		cfg, servers := dialToSwitchboard(network{"a:1": first, "b:1": nil})
		cfg.Servers = []string{"a:1"}
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.UpdateServers([]string{"b:1"})
		<-time.After(time.Minute)
		c.UpdateServers([]string{"b:1", "a:1"})
		<-time.After(time.Minute)
		synctest.Wait()
		servers.set("b:1", second)
		<-time.After(time.Hour)
		empty(t, c.states)
		empty(t, second.peers)
	})
}

// addressed is a connection to an address.
type addressed struct {
	net.Conn
	remote net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.remote }

// A server may be in the new list under another name: its address shows it.
func TestSessionStaysWithAServerUnderAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		cfg := wire.Config{Servers: []string{"zk1:2181"}}
		cfg.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
			remote, err := net.ResolveTCPAddr("tcp", address)
			return addressed{s.pipe(), remote}, err
		}
		cfg.Resolve = func(_ context.Context, host string) ([]string, error) {
			if host == "zk2.example" {
				return []string{"10.0.0.2"}, nil
			}
			return []string{"10.0.0.1"}, nil
		}
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.UpdateServers([]string{"zk1.example:2181", "zk2.example:2181"})
		<-time.After(time.Hour)
		synctest.Wait()
		empty(t, c.states)
	})
}

func TestCloseWhileASessionIsToMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := dialTo(network{"a:1": newServer(t), "b:1": blackHole})
		cfg.Servers = []string{"a:1"}
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.UpdateServers([]string{"b:1"})
		<-time.After(100 * time.Millisecond)
		start := time.Now()
		c.Close()
		if d := time.Since(start); d > 0 {
			t.Errorf("took %s", d)
		}
	})
}
