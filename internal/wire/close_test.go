package wire_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

func TestGoodbyeComesAfterEverythingSubmittedBefore(t *testing.T) {
	for _, total := range []int{0, 1, wire.MaxInFlight + 3000} {
		t.Run(fmt.Sprint(total), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.serve = func(*peer, *request) bool {
					<-time.After(10 * time.Microsecond) // so that some still wait when Close is called
					return false
				}
				seen := trace(s)
				c, _ := connectPiped(t, s)
				done := newAnswers()
				for n := range total {
					c.submit(t, numbered(n, done))
				}
				c.Close()
				if diff := cmp.Diff(numbers(total), done.collect(t, total)); diff != "" {
					t.Errorf("completion (-want +got):\n%s", diff)
				}
				got := seen.all()
				if len(got) != total+1 || got[total] != "goodbye" {
					t.Errorf("%d requests arrived, the last is %q", len(got), got[len(got)-1:])
				}
				if err := c.Submit(get("/late", discard), false); err != zk.ErrClosing {
					t.Errorf("submit after Close: %v, want zk.ErrClosing", err)
				}
				c.Close() // does nothing
			})
		})
	}
}

// A server that needs its time for what was submitted before is not mute.
func TestGoodbyeWaitsForASlowServer(t *testing.T) {
	const total = 100
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(*peer, *request) bool {
			<-time.After(40 * time.Millisecond)
			return false
		}
		c, _ := connectPiped(t, s)
		done := newAnswers()
		for n := range total {
			c.submit(t, numbered(n, done))
		}
		c.Close()
		done.collect(t, total)
	})
}

func TestCloseWithAMuteServerIsBounded(t *testing.T) {
	for _, inFlight := range []int{0, 1, wire.MaxInFlight + 10} {
		t.Run(fmt.Sprintf("%d in flight", inFlight), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.serve = func(*peer, *request) bool { return true }
				s.mutePings.Store(true)
				cfg := dialTo(network{"a:1": s})
				cfg.CloseWait = 3 * time.Second
				c := open(t, cfg)
				c.want(t, wire.Connected)
				done := newAnswers()
				for n := range inFlight {
					c.submit(t, numbered(n, done))
				}
				start := time.Now()
				c.Close()
				if d := time.Since(start); d > cfg.CloseWait+time.Second {
					t.Errorf("took %s", d)
				}
				for n := range inFlight {
					if got := outcomeOf(t, receive(t, done)); got != (outcome{n, true}) {
						t.Fatalf("got %+v, want the loss of %d", got, n)
					}
				}
				empty(t, done)
			})
		})
	}
}

func TestCloseWithAServerThatDoesNotReadIsBounded(t *testing.T) {
	s := newServer(t)
	stop := make(chan struct{})
	defer close(stop)
	s.serve = func(*peer, *request) bool {
		<-stop
		return true
	}
	const closeWait = 300 * time.Millisecond
	c := open(t, wire.Config{Servers: []string{s.listen(t)}, CloseWait: closeWait})
	c.await(t, wire.Connected)
	done := newAnswers()
	for n := range 100 {
		r := numbered(n, done)
		r.Op, r.Data = jute.OpSetData, make([]byte, 1<<20)
		c.submit(t, r)
	}
	start := time.Now()
	c.Close()
	if d := time.Since(start); d > closeWait+10*time.Second { // the session takes longer to end
		t.Errorf("took %s", d)
	}
	for n := range 100 {
		if got := outcomeOf(t, receive(t, done)); got != (outcome{n, true}) {
			t.Fatalf("got %+v, want the loss of %d", got, n)
		}
	}
}

// unreachable are the ways of having no connection, and when to close.
func unreachable(tb testing.TB) map[string]network {
	tb.Helper()
	silent, dropping := newServer(tb), newServer(tb)
	silent.greet = mute
	dropping.greet = func(p *peer, _ jute.ConnectRequest) bool {
		p.cut()
		return true
	}
	return map[string]network{
		"dialing a black hole":          {"a:1": blackHole},
		"refused":                       {"a:1": nil, "b:1": nil},
		"in the handshake":              {"a:1": silent},
		"dropped in the handshake":      {"a:1": dropping},
		"a little of everything at all": {"a:1": nil, "b:1": silent, "c:1": blackHole, "d:1": dropping},
	}
}

// In a bubble time stands still while anybody computes, and a goroutine that is left makes the test fail.
func TestCloseWithoutAConnectionWaitsForNothing(t *testing.T) {
	for name := range unreachable(t) {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				synctest.Test(t, func(t *testing.T) {
					c := open(t, dialTo(unreachable(t)[name]))
					<-time.After(rand.N(5 * time.Second)) // anywhere between the first dial and a long pause
					start := time.Now()
					c.Close()
					if d := time.Since(start); d > 0 {
						t.Errorf("took %s", d)
					}
				})
			}
		})
	}
}

func TestCloseWithoutAConnectionIsFast(t *testing.T) {
	networks := unreachable(t)
	for name, n := range networks {
		t.Run(name, func(t *testing.T) {
			var times []time.Duration
			for i := range 50 {
				started := make(chan struct{}, 1)
				cfg := dialTo(n)
				dial := cfg.Dial
				cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					select {
					case started <- struct{}{}:
					default:
					}
					return dial(ctx, network, address)
				}
				c := open(t, cfg)
				if i%2 == 0 {
					receive(t, started)
				}
				start := time.Now()
				c.Close()
				times = append(times, time.Since(start))
			}
			within(t, times, 2*time.Second) // there is nothing that takes less to wait for
		})
	}
}

func TestCloseRightAwayAndOften(t *testing.T) {
	s := newServer(t)
	address := s.listen(t)
	closing := func(t *testing.T, cfg wire.Config, i int) time.Duration {
		t.Helper()
		c := open(t, cfg)
		for range i % 20 { // somewhere in the dial, the handshake or behind it
			runtime.Gosched()
		}
		if i%4 == 3 {
			c.await(t, wire.Connected)
		}
		var wg sync.WaitGroup
		start := time.Now()
		for range 3 {
			wg.Go(c.Close)
		}
		wg.Wait()
		return time.Since(start)
	}
	var times []time.Duration
	for i := range 200 {
		times = append(times, closing(t, wire.Config{Servers: []string{address}}, i))
	}
	within(t, times, 2*time.Second) // there is nothing that takes less to wait for
	synctest.Test(t, func(t *testing.T) {
		for i := range 200 {
			if d := closing(t, dialTo(network{"a:1": newServer(t)}), i); d > 0 {
				t.Errorf("took %s with nothing to wait for", d)
			}
		}
	})
}

// The session that is being closed may be in any state, and its servers too.
func TestCloseAtAnyMoment(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			below := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			servers := network{"a:1": nil, "b:1": nil, "c:1": nil}
			for address := range servers {
				s := newServer(t)
				chance := func(percent int) bool { return below(100) < percent }
				s.greet = func(p *peer, _ jute.ConnectRequest) bool {
					switch {
					case chance(20): // mute
						return true
					case chance(20):
						p.cut()
						return true
					case chance(5):
						p.expire()
						return true
					}
					return false
				}
				s.serve = func(p *peer, _ *request) bool {
					switch {
					case chance(3):
						p.cut()
						return true
					case chance(1): // mute
						return true
					case chance(20):
						<-time.After(10 * time.Millisecond)
					}
					return false
				}
				servers[address] = s
			}
			cfg := dialTo(servers)
			cfg.SessionTimeout, cfg.CloseWait = 6*time.Second, time.Second
			c := open(t, cfg)
			var accepted, answered atomic.Int64
			stop := make(chan struct{})
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					tick := time.NewTicker(7 * time.Millisecond)
					defer tick.Stop()
					for {
						select {
						case <-stop:
							return
						case <-tick.C:
						}
						r := get("/n", handlerFunc(func(*wire.Request) { answered.Add(1) }))
						if c.Submit(r, seed%2 == 0) == nil {
							accepted.Add(1)
						}
					}
				})
			}
			<-time.After(time.Duration(below(8000)) * time.Millisecond)
			start := time.Now()
			if seed%5 == 0 {
				c.Abandon()
			} else {
				c.Close()
			}
			if d := time.Since(start); d > cfg.CloseWait+time.Second {
				t.Errorf("seed %d: took %s", seed, d)
			}
			close(stop)
			wg.Wait() // an answer may come before its submitter has counted it
			if a, b := accepted.Load(), answered.Load(); a != b {
				t.Errorf("seed %d: %d accepted, %d answered", seed, a, b)
			}
		})
	}
}

// The connection is lost while Close waits, and the next server is mute: Close does not wait for it.
func TestCloseDoesNotWaitForTheNextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(*peer, *request) bool { return true }
		cfg := dialTo(network{"a:1": s})
		cfg.CloseWait = 2 * time.Second
		c := open(t, cfg)
		c.want(t, wire.Connected)
		p := s.next(t)
		s.greet = mute
		done := newAnswers()
		c.submit(t, get("/n", done))
		closed := make(chan struct{})
		start := time.Now()
		go func() {
			defer close(closed)
			c.Close()
		}()
		synctest.Wait()
		p.cut()
		wait(t, closed)
		if d := time.Since(start); d > time.Second {
			t.Errorf("took %s", d)
		}
		if r := receive(t, done); r.Err != jute.ErrConnectionLoss {
			t.Errorf("got %v", r.Err)
		}
	})
}

func TestEverythingAcceptedIsAnsweredWhenCloseReturns(t *testing.T) {
	s := newServer(t)
	address := s.listen(t)
	for range 10 {
		c := open(t, wire.Config{Servers: []string{address}})
		c.await(t, wire.Connected)
		var accepted, answered atomic.Int64
		var wg sync.WaitGroup
		enough := make(chan struct{})
		for range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					r := get("/n", handlerFunc(func(*wire.Request) {
						if answered.Add(1) == 300 {
							close(enough)
						}
					}))
					if err := c.Submit(r, n%2 == 0); err != nil {
						if err != zk.ErrClosing {
							t.Errorf("submit: %v", err)
						}
						return
					}
					for accepted.Add(1); accepted.Load()-answered.Load() > 5000; {
						runtime.Gosched() // more of them only take longer
					}
				}
			})
		}
		wait(t, enough)
		c.Close()
		wg.Wait()
		if a, b := accepted.Load(), answered.Load(); a != b {
			t.Errorf("%d accepted, %d answered", a, b)
		}
	}
}

func TestAbandonSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(*peer, *request) bool { return true }
		seen := trace(s)
		c, _ := connectPiped(t, s)
		w := newWatcher()
		done := newAnswers()
		c.submit(t, watch(jute.OpGetData, "/a", w, done))
		synctest.Wait()
		start := time.Now()
		c.Abandon()
		if d := time.Since(start); d > 0 {
			t.Errorf("took %s", d)
		}
		if r := receive(t, done); r.Err != jute.ErrConnectionLoss {
			t.Errorf("in flight: %v", r.Err)
		}
		if err := c.Submit(get("/a", discard), false); err != zk.ErrSessionExpired {
			t.Errorf("submit: %v, want zk.ErrSessionExpired", err)
		}
		if diff := cmp.Diff([]string{"getData /a watch"}, seen.all()); diff != "" {
			t.Errorf("on the wire (-want +got):\n%s", diff)
		}
	})
}

func TestAbandonNotifiesWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connectPiped(t, newServer(t))
		w := newWatcher()
		c.ask(t, watch(jute.OpGetData, "/a", w, nil))
		c.Abandon()
		var last zk.Event
		for len(w) > 0 {
			last = <-w
		}
		if last.Type != zk.EventSession || last.State != zk.StateExpired || last.Err != zk.ErrSessionExpired {
			t.Errorf("the last event is %+v", last)
		}
	})
}

// politeConn says goodbye in a protocol of its own when it is closed, as TLS does, and gives the other side its time
// to take it.
type politeConn struct {
	net.Conn
	cut    context.Context // has ended when the connection below is closed
	cancel context.CancelFunc
}

// NetConn returns the connection below.
func (p politeConn) NetConn() net.Conn { return bluntConn{p.Conn, p.cancel} }

func (p politeConn) Close() error {
	select {
	case <-p.cut.Done():
	case <-time.After(5 * time.Second):
	}
	return p.Conn.Close()
}

type bluntConn struct {
	net.Conn
	closed func()
}

func (b bluntConn) Close() error {
	b.closed()
	return b.Conn.Close()
}

func TestConnectionIsCutWithoutPoliteness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := dialTo(network{"a:1": newServer(t)})
		dial := cfg.Dial
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := dial(ctx, network, address)
			cut, cancel := context.WithCancel(t.Context())
			return politeConn{nc, cut, cancel}, err
		}
		c := open(t, cfg)
		c.want(t, wire.Connected)
		start := time.Now()
		c.Abandon()
		if d := time.Since(start); d > 0 {
			t.Errorf("took %s", d)
		}
	})
}
