package wire_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// The tests of this file end in time only if what they do is linear in the number of watchers: with anything quadratic
// they run into the limit of go test.

// counted is one of many watchers that share a counter.
type counted struct {
	events *int // of the goroutine that reads the connection
	n      int
}

func (c counted) Notify(ev zk.Event) {
	if ev.Type != zk.EventSession {
		*c.events++
	}
}

// setMany has n watchers set on one path and returns when the server has answered. Behind returns when the client has
// handled what the server had sent before.
func setMany(t *testing.T, c *client, n int) (events *int, behind func()) {
	t.Helper()
	events = new(int)
	done := newAnswers()
	for i := range n {
		c.submit(t, watch(jute.OpGetData, "/n", counted{events, i}, done))
	}
	for range n {
		if r := receive(t, done); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	return events, func() { c.ask(t, get("/behind", nil)) }
}

// removalTo is a removal of all watches of w on the path of setMany.
func removalTo(w wire.Watcher, a wire.Handler) *wire.Request {
	r := removal(wire.WatchAny, "/n", w)
	r.Handler = a
	return r
}

func TestManyWatchersOfOnePathFire(t *testing.T) {
	const n = 30_000
	c, p := connect(t, newServer(t))
	events, behind := setMany(t, c, n)
	p.event(zk.EventNodeDataChanged, "/n")
	behind()
	if *events != n {
		t.Errorf("%d watchers got the event, want %d", *events, n)
	}
	if got := c.WatchCount(); got != 0 {
		t.Errorf("%d watches are left", got)
	}
}

func TestManyWatchersOfOnePathAreRemoved(t *testing.T) {
	const n = 30_000
	c, p := connect(t, newServer(t))
	events, behind := setMany(t, c, n)
	done := newAnswers()
	for i := range n {
		c.submit(t, removalTo(counted{events, i}, done))
	}
	for range n {
		if r := receive(t, done); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if got := c.WatchCount(); got != 0 {
		t.Errorf("%d watches are left", got)
	}
	p.event(zk.EventNodeDataChanged, "/n")
	behind()
	if *events != 0 {
		t.Errorf("%d watchers got an event", *events)
	}
}

func TestManyWatchersAreRemovedWhileTheyAreSet(t *testing.T) {
	const n = 20_000
	s := newServer(t)
	c, p := connect(t, s)
	events := new(int)
	done := newAnswers()
	for i := range n {
		c.submit(t, watch(jute.OpGetData, "/n", counted{events, i}, done))
	}
	for i := range n {
		if !c.Watches(wire.WatchAny, "/n", counted{events, i}) {
			t.Fatalf("watcher %d is neither set nor being set", i)
		}
		c.submit(t, removalTo(counted{events, i}, done))
	}
	for range 2 * n {
		if r := receive(t, done); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if got := c.WatchCount(); got != 0 {
		t.Errorf("%d watches are left", got)
	}
	p.event(zk.EventNodeDataChanged, "/n")
	c.ask(t, get("/behind", nil))
	if *events != 0 {
		t.Errorf("%d watchers got an event", *events)
	}
}

func TestManyWatchesOfDistinctPathsOutliveAConnection(t *testing.T) {
	const n = 30_000
	s := newServer(t)
	c, p := connect(t, s)
	events := new(int)
	done := newAnswers()
	for i := range n {
		c.submit(t, watch(jute.OpGetData, "/n"+strconv.Itoa(i), counted{events, 0}, done))
	}
	for range n {
		if r := receive(t, done); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	p.cut()
	c.want(t, wire.Disconnected)
	c.want(t, wire.Connected)
	next := s.peerOf(t, c)
	for i := range n {
		next.event(zk.EventNodeDataChanged, "/n"+strconv.Itoa(i))
	}
	c.ask(t, get("/behind", nil))
	if *events != n {
		t.Errorf("%d events arrived, want %d", *events, n)
	}
}

// What is counted of the requests under way does not outlive them.
func TestTrafficEndsWithItsRequests(t *testing.T) {
	s := newServer(t)
	var mute atomic.Bool // until it cuts
	s.serve = func(p *peer, r *request) bool {
		if r.path() == "/cut" {
			mute.Store(false)
			p.cut()
			return true
		}
		return mute.Load() && r.path() == "/a"
	}
	c, _ := connect(t, s)
	w, v := newWatcher(), newWatcher()
	for range 3 {
		c.ask(t, watch(jute.OpGetData, "/a", w, nil))
		c.ask(t, watch(jute.OpGetChildren, "/a", v, nil))
		c.ask(t, removal(wire.WatchAny, "/a", w))
		mute.Store(true)
		done := newAnswers()
		c.submit(t, watch(jute.OpGetData, "/a", w, done))
		r := removal(wire.WatchAny, "/a", v)
		r.Handler = done
		c.submit(t, r)
		c.submit(t, get("/cut", done))
		for range 3 {
			if r := receive(t, done); r.Err != jute.ErrConnectionLoss {
				t.Fatal(r.Err)
			}
		}
		c.want(t, wire.Disconnected)
		c.want(t, wire.Connected)
		s.next(t)
		if paths, watchers := c.Traffic(); paths+watchers != 0 {
			t.Fatalf("traffic of %d paths and %d watchers", paths, watchers)
		}
		// v was not removed, so it keeps the server's watch.
		if !c.Watches(wire.WatchChildren, "/a", v) || c.Watches(wire.WatchData, "/a", w) {
			t.Fatal("a request that was lost has changed the registry")
		}
		c.ask(t, removal(wire.WatchAny, "/a", v))
	}
}
