package wire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// growing fails if the pauses between dials, of which a connection takes some time, do not grow to about a second.
func growing(tb testing.TB, dials []dialed, span, lasts time.Duration) {
	tb.Helper()
	if most := int(span/time.Second)*2 + 8; len(dials) > most || len(dials) < int(span/time.Second)-1 {
		tb.Errorf("%d dials in %s, want at most %d", len(dials), span, most)
	}
	if len(dials) > 2 {
		last := dials[len(dials)-1].at.Sub(dials[len(dials)-2].at)
		if last < 500*time.Millisecond+lasts || last > time.Second+lasts {
			tb.Errorf("the last pause is %s", last)
		}
	}
}

func TestServerThatDropsAfterTheHandshakeIsMetWithGrowingPauses(t *testing.T) {
	const span = 20 * time.Second
	for name, lasts := range map[string]time.Duration{"at once": 0, "soon": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.greet = func(p *peer, _ jute.ConnectRequest) bool {
					p.grant()
					if lasts == 0 {
						p.cut()
						return true
					}
					p.s.wg.Go(func() {
						<-time.After(lasts)
						p.cut()
					})
					return true
				}
				cfg := dialTo(network{"a:1": s})
				dials := recordDials(&cfg)
				c := open(t, cfg)
				<-time.After(span)
				c.Close()
				growing(t, dials.all(), span, lasts)
			})
		})
	}
}

// Each session is another Conn: what they share keeps the pause.
func TestServerThatExpiresEverySessionIsMetWithGrowingPauses(t *testing.T) {
	const span = 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.greet = func(p *peer, _ jute.ConnectRequest) bool {
			p.expire()
			return true
		}
		cfg := dialTo(network{"a:1": s})
		cfg.Hosts = new(wire.Hosts)
		dials := recordDials(&cfg)
		end := time.Now().Add(span)
		for time.Now().Before(end) {
			c := open(t, cfg)
			c.await(t, wire.Expired)
			c.Abandon()
		}
		growing(t, dials.all(), span, 0)
	})
}

func TestPausesEndWithAConnectionThatLasts(t *testing.T) {
	tests := map[string]struct {
		lasts time.Duration
		ask   bool
	}{
		"a second":       {lasts: time.Second},
		"with an answer": {lasts: time.Millisecond, ask: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				cfg, servers := dialToSwitchboard(network{"a:1": nil})
				c := open(t, cfg)
				<-time.After(10 * time.Second)
				servers.set("a:1", s)
				c.await(t, wire.Connected)
				<-time.After(tt.lasts)
				if tt.ask {
					c.ask(t, get("/a", nil))
				}
				start := time.Now()
				s.next(t).cut()
				c.await(t, wire.Connected)
				if d := time.Since(start); d > 10*time.Millisecond {
					t.Errorf("connected again after %s", d)
				}
			})
		})
	}
}

// An answer is a good sign, but not when each connection has one and none lasts.
func TestServerThatAnswersAndDropsIsMetWithGrowingPausesInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.greet = func(*peer, jute.ConnectRequest) bool {
			<-time.After(time.Millisecond)
			return false
		}
		s.serve = func(p *peer, r *request) bool {
			p.yes(r)
			p.cut()
			return true
		}
		cfg := dialTo(network{"a:1": s})
		dials := recordDials(&cfg)
		var c *client
		opened := make(chan struct{})
		cfg.OnState = func(state wire.State) {
			<-opened
			if state == wire.Connected {
				_ = c.Submit(get("/a", discard), false)
			}
		}
		c = open(t, cfg)
		close(opened)
		<-time.After(10 * time.Minute)
		c.Close()
		all := dials.all()
		if n := len(all); n > 1200 {
			t.Errorf("%d dials in ten minutes", n)
		}
		if first := all[10].at.Sub(all[9].at); first > 50*time.Millisecond {
			t.Errorf("a pause of %s at first", first)
		}
		if last := all[len(all)-1].at.Sub(all[len(all)-2].at); last < time.Second {
			t.Errorf("a pause of %s at last", last)
		}
	})
}
