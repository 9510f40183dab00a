package wire_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// numbered is a request whose path is /n.
func numbered(n int, h wire.Handler) *wire.Request { return get("/"+strconv.Itoa(n), h) }

// number is the inverse of numbered.
func number(tb testing.TB, path string) int {
	tb.Helper()
	n, err := strconv.Atoi(path[1:])
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// numbers returns 0 to n-1.
func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// collect takes n answers and returns their numbers; each must be a success.
func (a answers) collect(tb testing.TB, n int) []int {
	tb.Helper()
	got := make([]int, 0, n)
	for range n {
		r := receive(tb, a)
		if r.Err != nil {
			tb.Fatalf("%s: %v", r.Path, r.Err)
		}
		got = append(got, number(tb, r.Path))
	}
	return got
}

func TestOrderOfSubmissionIsOrderOnTheWireAndOfCompletion(t *testing.T) {
	const goroutines, each = 8, 1250
	s := newServer(t)
	var arrived recorder[int]
	s.serve = func(_ *peer, r *request) bool {
		if r.Xid >= wire.FirstXid {
			arrived.add(number(t, r.path()))
		}
		return false
	}
	c, _ := connect(t, s)
	done := newAnswers()

	var mu sync.Mutex // makes the order of Submit known
	var next int
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				mu.Lock()
				err := c.Submit(numbered(next, done), (g+i)%3 == 0)
				next++
				mu.Unlock()
				if err != nil {
					t.Errorf("submit: %v", err)
				}
			}
		})
	}
	wg.Wait()

	want := numbers(goroutines * each)
	if diff := cmp.Diff(want, done.collect(t, len(want))); diff != "" {
		t.Errorf("completion (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, arrived.all()); diff != "" {
		t.Errorf("wire (-want +got):\n%s", diff)
	}
}

func TestGoroutinesThatDoNotWaitForEachOtherKeepTheirOwnOrder(t *testing.T) {
	const goroutines, each = 8, 1250
	c, _ := connect(t, newServer(t))
	done := newAnswers()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				if err := c.Submit(numbered(g*each+i, done), i%2 == 0); err != nil {
					t.Errorf("submit: %v", err)
				}
			}
		})
	}
	wg.Wait()
	var last [goroutines]int
	for _, n := range done.collect(t, goroutines*each) {
		if g := n / each; n%each != last[g] {
			t.Fatalf("goroutine %d: answer %d, want %d", g, n%each, last[g])
		} else {
			last[g]++
		}
	}
}

// firstWindow is how many requests of a kind are in flight before the first is answered, with the session timeout of
// the tests.
const firstWindow = int(30 * time.Second / wire.SlowRequest)

func TestRequestsBeyondTheLimitOfFlightWaitInOrder(t *testing.T) {
	const total = 10_000
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		held := make(chan *request, total)
		s.serve = func(_ *peer, r *request) bool {
			held <- r
			return r.Xid >= wire.FirstXid
		}
		c, p := connectPiped(t, s)
		done := newAnswers()
		for n := range total {
			if err := c.Submit(numbered(n, done), n%2 == 0); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := len(held); got != firstWindow {
			t.Errorf("%d requests are in flight, want %d", got, firstWindow)
		}
		want := wire.Load{Server: "a:1", InFlight: firstWindow, Queued: total - firstWindow}
		if diff := cmp.Diff(want, c.Load()); diff != "" {
			t.Errorf("load (-want +got):\n%s", diff)
		}
		for range total {
			p.yes(receive(t, held))
		}
		if diff := cmp.Diff(numbers(total), done.collect(t, total)); diff != "" {
			t.Errorf("completion (-want +got):\n%s", diff)
		}
	})
}

func TestWhatWaitsCanBeWithdrawn(t *testing.T) {
	const total = firstWindow + 10
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		held := make(chan *request, total)
		s.serve = func(_ *peer, r *request) bool {
			held <- r
			return r.Xid >= wire.FirstXid
		}
		c, p := connectPiped(t, s)
		done := newAnswers()
		requests := make([]*wire.Request, total)
		for n := range requests {
			requests[n] = numbered(n, done)
			c.submit(t, requests[n])
		}
		synctest.Wait()
		var want []int
		for n, r := range requests {
			switch withdrawn := c.Withdraw(r); {
			case n < firstWindow && withdrawn:
				t.Fatalf("request %d is on its way, and was withdrawn", n)
			case n >= firstWindow && !withdrawn:
				t.Errorf("request %d waits, and was not withdrawn", n)
			}
			if n < firstWindow {
				want = append(want, n)
			}
			if n == total-4 {
				break
			}
		}
		want = append(want, total-3, total-2, total-1)
		for range want {
			p.yes(receive(t, held))
		}
		if diff := cmp.Diff(want, done.collect(t, len(want))); diff != "" {
			t.Errorf("answered (-want +got):\n%s", diff)
		}
		synctest.Wait()
		empty(t, done)
		empty(t, held)
	})
}

func TestBytesBeyondTheLimitWaitInOrder(t *testing.T) {
	const total, size = 64, 100 << 10
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		release := make(chan struct{})
		s.serve = func(*peer, *request) bool {
			<-release
			return false
		}
		c, _ := connectPiped(t, s)
		done := newAnswers()
		data := make([]byte, size)
		for n := range total {
			r := numbered(n, done)
			r.Op, r.Data = jute.OpSetData, data
			c.submit(t, r)
		}
		synctest.Wait()
		load := c.Load()
		if unsent := c.Unsent(); unsent > wire.MaxUnsent+size+100 {
			t.Errorf("%d bytes are encoded ahead, want about %d", unsent, wire.MaxUnsent)
		}
		if load.Queued == 0 || load.InFlight+load.Queued != total {
			t.Errorf("load %+v, want some waiting of %d", load, total)
		}
		close(release)
		if diff := cmp.Diff(numbers(total), done.collect(t, total)); diff != "" {
			t.Errorf("completion (-want +got):\n%s", diff)
		}
	})
}

// gatedConn counts writes and holds them back while the gate is closed.
type gatedConn struct {
	net.Conn
	writes *atomic.Int64
	gate   *sync.RWMutex
}

func (g gatedConn) Write(b []byte) (int, error) {
	g.writes.Add(1)
	g.gate.RLock()
	defer g.gate.RUnlock()
	return g.Conn.Write(b)
}

// gated returns a configuration for s over TCP whose writes are counted and can be held back.
func gated(tb testing.TB, s *server) (cfg wire.Config, writes *atomic.Int64, gate *sync.RWMutex) {
	tb.Helper()
	writes, gate = new(atomic.Int64), new(sync.RWMutex)
	cfg.Servers = []string{s.listen(tb)}
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, address)
		return gatedConn{nc, writes, gate}, err
	}
	return cfg, writes, gate
}

func TestWhatIsSubmittedDuringAWriteIsWrittenAtOnce(t *testing.T) {
	const total = firstWindow
	s := newServer(t)
	cfg, writes, gate := gated(t, s)
	c := open(t, cfg)
	c.await(t, wire.Connected)

	before := writes.Load()
	gate.Lock()
	done := newAnswers()
	for n := range total {
		c.submit(t, numbered(n, done))
	}
	gate.Unlock()
	if diff := cmp.Diff(numbers(total), done.collect(t, total)); diff != "" {
		t.Errorf("completion (-want +got):\n%s", diff)
	}
	// One that was held, at most, and the rest.
	if got := writes.Load() - before; got > 3 {
		t.Errorf("%d writes for %d requests", got, total)
	}
}

func TestCallerThatWaitsWritesItself(t *testing.T) {
	s := newServer(t)
	cfg, writes, _ := gated(t, s)
	c := open(t, cfg)
	c.await(t, wire.Connected)
	done := newAnswers()
	for n := range 100 {
		before := writes.Load()
		if err := c.Submit(numbered(n, done), true); err != nil {
			t.Fatal(err)
		}
		if got := writes.Load() - before; got != 1 {
			t.Errorf("%d writes when Submit returned, want 1", got)
		}
		done.collect(t, 1)
	}
}

func TestFloodWithoutAWindowLosesNothing(t *testing.T) {
	const total = 200_000
	c, _ := connect(t, newServer(t))
	var next, failed int // of the reader
	finished := make(chan struct{})
	h := handlerFunc(func(r *wire.Request) {
		if r.Err != nil || r.Version != int32(next) {
			failed++
		}
		if next++; next == total {
			close(finished)
		}
	})
	for n := range total {
		r := get("/flood", h)
		r.Version = int32(n) // getData has none: room for our number
		c.submit(t, r)
	}
	wait(t, finished)
	if failed > 0 {
		t.Errorf("%d of %d failed or came out of order", failed, total)
	}
}

func TestCallerThatWaitsDoesNotWriteForOthersWithoutEnd(t *testing.T) {
	s := newServer(t)
	var c *client
	var busy atomic.Bool
	turns := make(chan struct{}, 2) // two others, each of which waits for its answer before it submits again
	turns <- struct{}{}
	turns <- struct{}{}
	others := handlerFunc(func(*wire.Request) { turns <- struct{}{} })
	cfg := wire.Config{Servers: []string{s.listen(t)}}
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, address)
		return hookedConn{nc, func() {
			if busy.Load() { // they do so while a write is under way
				<-turns
				_ = c.Submit(get("/others", others), false)
			}
		}}, err
	}
	c = open(t, cfg)
	c.await(t, wire.Connected)
	busy.Store(true)
	defer busy.Store(false)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_ = c.Submit(get("/mine", discard), true)
	}()
	wait(t, returned)
}

// hookedConn calls a function ahead of each write.
type hookedConn struct {
	net.Conn
	before func()
}

func (h hookedConn) Write(b []byte) (int, error) {
	h.before()
	return h.Conn.Write(b)
}

// discard takes answers and drops them.
var discard = handlerFunc(func(*wire.Request) {})

func TestCallerThatWaitsIsNotHeldUpByAServerThatDoesNotRead(t *testing.T) {
	s := newServer(t)
	stop := make(chan struct{})
	defer close(stop)
	s.serve = func(*peer, *request) bool {
		<-stop
		return true
	}
	c := open(t, wire.Config{Servers: []string{s.listen(t)}, SessionTimeout: 3 * patience, CloseWait: 1})
	c.await(t, wire.Connected)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for range 500 { // more than the buffers of the two sockets take
			r := get("/a", discard)
			r.Op, r.Data = jute.OpSetData, make([]byte, wire.MaxInlineWrite-100)
			if err := c.Submit(r, true); err != nil {
				t.Errorf("submit: %v", err)
			}
		}
	}()
	wait(t, returned)
}

func TestRequestNumbersWrapWithinTheirRange(t *testing.T) {
	s := newServer(t)
	var xids recorder[int32]
	s.serve = func(_ *peer, r *request) bool {
		xids.add(r.Xid)
		return false
	}
	c, _ := connect(t, s)
	c.SetXids(1<<30 - 2)
	for range 4 {
		if r := c.ask(t, get("/a", nil)); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	want := []int32{1<<31 - 2, 1<<31 - 1, wire.FirstXid, wire.FirstXid + 1}
	if diff := cmp.Diff(want, xids.all()); diff != "" {
		t.Errorf("xids (-want +got):\n%s", diff)
	}
}
