package wire_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// outcome is a request's number and how it ended.
type outcome struct {
	N    int
	Lost bool
}

func outcomeOf(tb testing.TB, r *wire.Request) outcome {
	tb.Helper()
	if r.Err != nil && r.Err != jute.ErrConnectionLoss {
		tb.Errorf("%s: %v", r.Path, r.Err)
	}
	return outcome{number(tb, r.Path), r.Err != nil}
}

func TestEveryRequestIsAnsweredOnceWhereverTheConnectionIsCut(t *testing.T) {
	const total = 6
	cuts := []struct {
		name     string
		answered int // of the request at which it is cut
		cut      func(p *peer, r *request)
	}{
		{"before the server has acted", 0, func(p *peer, _ *request) { p.cut() }},
		{"in the length of an answer", 0, func(p *peer, _ *request) {
			p.raw([]byte{0, 0})
			p.cut()
		}},
		{"in the middle of an answer", 0, func(p *peer, r *request) {
			b := jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: r.Xid, Zxid: 1})
			p.raw(framed(b)[:9])
			p.cut()
		}},
		{"behind an answer", 1, func(p *peer, r *request) {
			p.yes(r)
			p.cut()
		}},
	}
	for _, cut := range cuts {
		for position := range total {
			t.Run(fmt.Sprintf("%s %d", cut.name, position), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer(t)
					var once atomic.Bool
					all := make(chan struct{})
					s.serve = func(p *peer, r *request) bool {
						<-all
						if r.Xid < wire.FirstXid || number(t, r.path()) != position || once.Swap(true) {
							return false
						}
						cut.cut(p, r)
						return true
					}
					c, _ := connectPiped(t, s)
					done := newAnswers()
					for n := range total {
						c.submit(t, numbered(n, done))
					}
					close(all)
					var got, want []outcome
					for n := range total {
						got = append(got, outcomeOf(t, receive(t, done)))
						want = append(want, outcome{n, n >= position+cut.answered})
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("answers (-want +got):\n%s", diff)
					}
					c.await(t, wire.Connected)
					c.submit(t, numbered(total, done))
					if got := outcomeOf(t, receive(t, done)); got != (outcome{total, false}) {
						t.Errorf("on the next connection: %+v", got)
					}
					synctest.Wait()
					empty(t, done)
				})
			})
		}
	}
}

func TestLossOfPendingRequestsIsReportedInOrder(t *testing.T) {
	const total = wire.MaxInFlight + 1000
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(_ *peer, r *request) bool { return r.Xid >= wire.FirstXid }
		c, p := connectPiped(t, s)
		done := newAnswers()
		for n := range total {
			c.submit(t, numbered(n, done))
		}
		synctest.Wait()
		p.cut()
		for n := range total {
			if got := outcomeOf(t, receive(t, done)); got != (outcome{n, true}) {
				t.Fatalf("got %+v, want the loss of %d", got, n)
			}
		}
		synctest.Wait()
		empty(t, done)
	})
}

// To accept it would be to lose it, and a loop that submits again at once would never end.
func TestNothingIsAcceptedWhileLossesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(_ *peer, r *request) bool { return r.path() != "/last" }
		c, p := connectPiped(t, s)
		done := newAnswers()
		h := handlerFunc(func(r *wire.Request) {
			if err := c.Submit(get("/again", discard), false); err != wire.ErrNotConnected || c.IsConnected() {
				t.Errorf("submit: %v, connected %t", err, c.IsConnected())
			}
			done <- r
		})
		for n := range wire.MaxInFlight + 5 {
			c.submit(t, numbered(n, h))
		}
		synctest.Wait()
		p.cut()
		for n := range wire.MaxInFlight + 5 {
			if got := outcomeOf(t, receive(t, done)); got != (outcome{n, true}) {
				t.Fatalf("got %+v, want the loss of %d", got, n)
			}
		}
		c.await(t, wire.Connected)
		if r := c.ask(t, get("/last", nil)); r.Err != nil {
			t.Errorf("on the next connection: %v", r.Err)
		}
	})
}

func TestWithoutAConnectionNothingIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, dialTo(network{"a:1": nil}))
		c.want(t, wire.Disconnected)
		if err := c.Submit(get("/a", discard), false); err != wire.ErrNotConnected {
			t.Errorf("submit: %v, want ErrNotConnected", err)
		}
		if c.IsConnected() {
			t.Error("claims to be connected")
		}
	})
}

// Connections are cut at random while many goroutines submit: what was accepted is answered once, and in
// order.
func TestAnswersKeepTheirOrderAcrossLosses(t *testing.T) {
	const goroutines, cuts = 6, 60
	s := newServer(t)
	var served atomic.Int64
	s.serve = func(p *peer, _ *request) bool {
		if served.Add(1)%500 == 0 {
			p.cut()
			return true
		}
		return false
	}
	address := s.listen(t)
	c := open(t, wire.Config{Servers: []string{address}})
	c.await(t, wire.Connected)

	var accepted atomic.Int64
	var reported, wrong, lost int // of the reader
	var last int32
	window := make(chan struct{}, 300)
	h := handlerFunc(func(r *wire.Request) {
		<-window
		reported++
		if r.Version <= last {
			wrong++
		}
		last = r.Version
		if r.Err != nil {
			lost++
		}
	})
	var mu sync.Mutex // makes the order of Submit known
	var next int32
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for !stop.Load() {
				r := get("/a", h)
				window <- struct{}{}
				mu.Lock()
				r.Version = next + 1
				err := c.Submit(r, rand.IntN(4) == 0)
				if err == nil {
					next++
					accepted.Add(1)
				}
				mu.Unlock()
				if err != nil {
					<-window
					runtime.Gosched()
				}
			}
		})
	}
	for range cuts {
		c.await(t, wire.Disconnected)
		c.await(t, wire.Connected)
	}
	stop.Store(true)
	wg.Wait()
	c.Close() // the reader has ended
	if n := accepted.Load(); reported != int(n) || wrong > 0 {
		t.Errorf("%d accepted, %d reported, %d out of order", n, reported, wrong)
	}
	if lost == 0 {
		t.Error("nothing was lost: the test tests nothing")
	}
}

// stuckConn is a connection whose reads wait, once it is stuck, until a write has failed. What arrives meanwhile is
// kept, as the kernel does.
type stuckConn struct {
	net.Conn
	arrived       chan []byte // closed at the end
	rest          []byte
	closed        context.Context // has ended when the connection is closed
	cancel        context.CancelFunc
	stuck, broken atomic.Bool
	waits, failed chan struct{}
}

func newStuckConn(nc net.Conn) *stuckConn {
	c := &stuckConn{
		Conn: nc, arrived: make(chan []byte, 1000), waits: make(chan struct{}), failed: make(chan struct{}),
	}
	c.closed, c.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(c.arrived)
		for {
			b := make([]byte, 1<<10)
			n, err := nc.Read(b)
			if err != nil {
				return
			}
			c.arrived <- b[:n]
		}
	}()
	return c
}

func (c *stuckConn) Read(b []byte) (int, error) {
	if c.stuck.CompareAndSwap(true, false) {
		close(c.waits)
		<-c.failed
	}
	for len(c.rest) == 0 {
		select {
		case <-c.closed.Done():
			return 0, net.ErrClosed
		case b, ok := <-c.arrived:
			if !ok {
				return 0, io.EOF
			}
			c.rest = b
		}
	}
	if c.closed.Err() != nil {
		return 0, net.ErrClosed
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *stuckConn) Close() error {
	c.cancel()
	return c.Conn.Close()
}

func (c *stuckConn) Write(b []byte) (int, error) {
	if c.broken.Load() {
		close(c.failed)
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(b)
}

// A server may close a connection behind an answer that says why. A request that is written at that moment fails, and
// must not take the answer with it.
func TestAnswerThatHasArrivedIsReadAfterAFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		closed := make(chan struct{})
		s.serve = func(p *peer, r *request) bool {
			if r.path() == "/last" {
				p.yes(r)
				p.cut()
				close(closed)
			}
			return r.path() == "/last"
		}
		conns := make(chan *stuckConn, 10)
		cfg := dialTo(network{"a:1": s})
		cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
			c := newStuckConn(s.pipe())
			conns <- c
			return c, nil
		}
		c := open(t, cfg)
		c.want(t, wire.Connected)
		nc, p := receive(t, conns), s.next(t)
		nc.stuck.Store(true)
		p.event(zk.EventNodeDeleted, "/wakes-the-reader")
		wait(t, nc.waits)
		done := newAnswers()
		c.submit(t, get("/last", done))
		wait(t, closed)
		nc.broken.Store(true)
		c.submit(t, get("/lost", done))
		want := []string{"/last <nil>", fmt.Sprint("/lost ", jute.ErrConnectionLoss)}
		got := []string{}
		for range want {
			r := receive(t, done)
			got = append(got, fmt.Sprint(r.Path, " ", r.Err))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		c.await(t, wire.Connected)
	})
}
