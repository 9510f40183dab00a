package wire_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// dialed is one dial, and when.
type dialed struct {
	address string
	at      time.Time
}

// recordDials makes cfg remember whom it dials.
func recordDials(cfg *wire.Config) *recorder[dialed] {
	var dials recorder[dialed]
	dial := cfg.Dial
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.add(dialed{address, time.Now()})
		return dial(ctx, network, address)
	}
	return &dials
}

// within fails if more than a tenth of the times, which a busy machine may stretch, are beyond the limit.
func within(tb testing.TB, times []time.Duration, limit time.Duration) {
	tb.Helper()
	slices.Sort(times)
	if got := times[len(times)*9/10]; got > limit {
		tb.Errorf("a tenth of %d take %s and more, want at most %s", len(times), got, limit)
	}
}

func TestDroppedConnectionIsUpAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		c, p := connectPiped(t, s)
		for range 50 {
			<-time.After(time.Millisecond)
			c.ask(t, get("/a", nil)) // it has served
			start := time.Now()
			p.cut()
			c.want(t, wire.Disconnected)
			c.want(t, wire.Connected)
			if d := time.Since(start); d > 50*time.Millisecond {
				t.Errorf("took %s, want at most 50ms", d)
			}
			p = s.next(t)
		}
	})
}

func TestServersAreTriedInTurnWithPausesBetweenPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := dialTo(network{"a:1": nil, "b:1": nil, "c:1": nil})
		dials := recordDials(&cfg)
		c := open(t, cfg)
		<-time.After(10 * time.Second)
		c.Close()

		all := dials.all()
		if len(all) < 3*8 {
			t.Fatalf("%d dials in 10s", len(all))
		}
		var pauses []time.Duration
		for i := 0; i+3 < len(all); i += 3 {
			pass := all[i : i+3]
			names := []string{pass[0].address, pass[1].address, pass[2].address}
			slices.Sort(names)
			if diff := cmp.Diff([]string{"a:1", "b:1", "c:1"}, names); diff != "" {
				t.Fatalf("pass %d (-want +got):\n%s", i/3, diff)
			}
			if d := pass[2].at.Sub(pass[0].at); d != 0 {
				t.Errorf("pass %d pauses for %s in itself", i/3, d)
			}
			pauses = append(pauses, all[i+3].at.Sub(pass[2].at))
		}
		for i, pause := range pauses {
			longest := min(20*time.Millisecond<<i, time.Second)
			if pause < longest/2 || pause > longest {
				t.Errorf("pause %d is %s, want between %s and %s", i, pause, longest/2, longest)
			}
		}
	})
}

func TestDisconnectedIsReportedAfterEachFailedPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := dialTo(network{"a:1": nil, "b:1": nil})
		dials := recordDials(&cfg)
		c := open(t, cfg)
		c.want(t, wire.Disconnected)
		if got := len(dials.all()); got != 2 {
			t.Errorf("reported after %d dials, want 2", got)
		}
		c.want(t, wire.Disconnected) // and again: no state of the first connection is left
	})
}

// A broken path to a server may show in the dial, in the first write, or in the wait for the answer.
func TestDisconnectedIsReportedForEachHandshakeFailure(t *testing.T) {
	broken := map[string]func(p *server) net.Conn{
		"in the write": func(s *server) net.Conn { return unwritable{s.pipe()} },
		"in the read": func(s *server) net.Conn {
			nc := s.pipe()
			_ = nc.Close()
			return readOnlyConn{nc}
		},
	}
	for name, conn := range broken {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				cfg := wire.Config{Servers: []string{"a:1"}}
				cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return conn(s), nil }
				c := open(t, cfg)
				c.want(t, wire.Disconnected)
				c.want(t, wire.Disconnected)
			})
		})
	}
}

type unwritable struct{ net.Conn }

func (unwritable) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// readOnlyConn takes writes and fails reads.
type readOnlyConn struct{ net.Conn }

func (readOnlyConn) Write(b []byte) (int, error) { return len(b), nil }

func TestServerThatAcceptsAndDropsIsTriedWithPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.greet = func(p *peer, _ jute.ConnectRequest) bool {
			p.grant()
			p.cut()
			return true
		}
		cfg := dialTo(network{"a:1": s})
		dials := recordDials(&cfg)
		c := open(t, cfg)
		<-time.After(time.Second)
		c.Close()
		if got := len(dials.all()); got > 110 || got < 5 {
			t.Errorf("%d dials in a second", got)
		}
	})
}

func TestNewListOfServersHelpsWhenTheOldOnesAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		cfg := dialTo(network{"a:1": nil, "b:1": nil, "c:1": s})
		cfg.Servers = []string{"a:1", "b:1"}
		c := open(t, cfg)
		<-time.After(time.Minute)
		c.UpdateServers([]string{"c:1"})
		start := time.Now()
		c.await(t, wire.Connected)
		if d := time.Since(start); d > 2*time.Second { // one pause of the old list, one of the new
			t.Errorf("connected %s after the new list came", d)
		}
	})
}

func TestEmptyListOfServersIsNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		c, p := connectPiped(t, s)
		c.UpdateServers(nil)
		p.cut()
		c.await(t, wire.Connected)
	})
}
