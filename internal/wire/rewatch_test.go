package wire_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// trace records what arrives at a server, but for pings.
func trace(s *server) *recorder[string] {
	var seen recorder[string]
	serve := s.serve
	s.serve = func(p *peer, r *request) bool {
		seen.add(describe(r))
		return serve != nil && serve(p, r)
	}
	return &seen
}

func describe(r *request) string {
	switch r.Op {
	case jute.OpAuth:
		a, _ := jute.DecodeAuth(r.body)
		return fmt.Sprintf("auth %s %s", a.Scheme, a.Auth)
	case jute.OpSetWatches:
		w, err := jute.DecodeSetWatches(r.body)
		return fmt.Sprintln("setWatches", w.RelativeZxid, w.Data, w.Exist, w.Child, err)
	case jute.OpSetWatches2:
		w, err := jute.DecodeSetWatches2(r.body)
		return fmt.Sprintln("setWatches2", w.RelativeZxid, w.Data, w.Exist, w.Child, w.Persistent, w.Recursive, err)
	case jute.OpCheckWatches, jute.OpRemoveWatches, jute.OpAddWatch:
		req, _ := jute.DecodeRequest(r.Op, r.body)
		return fmt.Sprintf("%s %s %d", r.Op, req.Path, req.Flags)
	case jute.OpExists, jute.OpGetData, jute.OpGetChildren, jute.OpGetChildren2:
		req, _ := jute.DecodeRequest(r.Op, r.body)
		if req.Watch {
			return fmt.Sprintf("%s %s watch", r.Op, req.Path)
		}
	case jute.OpCloseSession:
		return "goodbye"
	}
	return fmt.Sprintf("%s %s", r.Op, r.path())
}

func TestNewConnectionBeginsWithCredentialsThenWatchesThenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		seen := trace(s)
		cfg := dialTo(network{"a:1": s})
		cfg.Auth = []jute.Auth{{Scheme: "digest", Auth: []byte("u:p")}, {Scheme: "ip"}}
		var c *client
		opened := make(chan struct{})
		cfg.OnState = func(state wire.State) {
			if <-opened; state == wire.Connected { // the first request of all
				if err := c.Submit(get("/first", discard), false); err != nil {
					t.Errorf("submit: %v", err)
				}
			}
		}
		c = open(t, cfg)
		close(opened)
		c.want(t, wire.Connected)
		w := newWatcher()
		c.ask(t, watch(jute.OpGetData, "/data", w, nil))
		c.ask(t, watch(jute.OpGetChildren2, "/child", w, nil))
		c.ask(t, addWatch(wire.PersistentRecursive, "/recursive", w, nil))
		last := c.ask(t, watch(jute.OpExists, "/exist", w, nil)).Zxid
		s.next(t).cut()
		c.await(t, wire.Connected)
		synctest.Wait()
		want := []string{
			"auth digest u:p", "auth ip ", "getData /first",
			"getData /data watch", "getChildren2 /child watch", "addWatch /recursive 1", "exists /exist watch",
			"auth digest u:p", "auth ip ",
			fmt.Sprintln("setWatches2", last, "[/data /exist] [] [/child] [] [/recursive]", nil),
			"getData /first",
		}
		got := seen.all()
		if len(got) > 9 && got[9] != want[9] { // the order of paths is random
			want[9] = fmt.Sprintln("setWatches2", last, "[/exist /data] [] [/child] [] [/recursive]", nil)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("on the wire (-want +got):\n%s", diff)
		}
	})
}

func TestWatchOnAMissingNodeIsSetAgainAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.Op == jute.OpExists {
				p.no(r, jute.CodeNoNode)
			}
			return r.Op == jute.OpExists
		}
		seen := trace(s)
		c, p := connectPiped(t, s)
		w := newWatcher()
		last := c.ask(t, watch(jute.OpExists, "/a", w, nil)).Zxid
		p.cut()
		c.await(t, wire.Connected)
		want := fmt.Sprintln("setWatches", last, "[] [/a] []", nil)
		synctest.Wait()
		if got := seen.all(); len(got) != 2 || got[1] != want {
			t.Errorf("on the wire %q, want %q", got, want)
		}
		s.next(t).event(zk.EventNodeCreated, "/a")
		if ev := w.nodeEvent(t); ev.Type != zk.EventNodeCreated || ev.Path != "/a" {
			t.Errorf("got %+v", ev)
		}
		if n := c.WatchCount(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

// The frames of the watches alone are more than may be unsent.
func TestRequestsFollowManyWatches(t *testing.T) {
	const watches = 12_000
	s := newServer(t)
	var paths atomic.Int64
	s.serve = func(_ *peer, r *request) bool {
		if r.Op == jute.OpSetWatches {
			frame, err := jute.DecodeSetWatches(r.body)
			if err != nil {
				t.Error(err)
			}
			paths.Add(int64(len(frame.Data)))
		}
		return false
	}
	var c *client
	opened := make(chan struct{})
	done := newAnswers()
	cfg := wire.Config{Servers: []string{s.listen(t)}}
	cfg.OnState = func(state wire.State) {
		if <-opened; state == wire.Connected {
			if err := c.Submit(get("/first", done), false); err != nil {
				t.Errorf("submit: %v", err)
			}
		}
	}
	c = open(t, cfg)
	close(opened)
	if r := receive(t, done); r.Err != nil {
		t.Fatal(r.Err)
	}
	w := newWatcher()
	set := newAnswers()
	for n := range watches {
		c.submit(t, watch(jute.OpGetData, fmt.Sprintf("/%0100d", n), w, set))
	}
	for range watches {
		receive(t, set)
	}
	c.await(t, wire.Connected)
	s.peerOf(t, c).cut()
	if r := receive(t, done); r.Err != nil {
		t.Error(r.Err)
	}
	if got := paths.Load(); got != watches {
		t.Errorf("%d watches were set ahead of the request, want %d", got, watches)
	}
}

func TestWithoutWatchesNoneAreSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		seen := trace(s)
		c, p := connectPiped(t, s)
		p.cut()
		c.await(t, wire.Connected)
		synctest.Wait()
		if got := seen.all(); len(got) != 0 {
			t.Errorf("on the wire %q", got)
		}
	})
}

// A server that does not set the watches again would leave the watchers waiting for ever.
func TestConnectionOnWhichWatchesCannotBeSetIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var refusals int
		s.serve = func(p *peer, r *request) bool {
			if r.Op == jute.OpSetWatches && refusals < 3 {
				refusals++
				p.no(r, jute.CodeThrottledOp)
				return true
			}
			return false
		}
		c, p := connectPiped(t, s)
		w := newWatcher()
		c.ask(t, watch(jute.OpGetData, "/a", w, nil))
		p.cut()
		for range 4 {
			c.await(t, wire.Connected)
			p = s.next(t)
		}
		p.event(zk.EventNodeDataChanged, "/a")
		if ev := w.nodeEvent(t); ev.Type != zk.EventNodeDataChanged {
			t.Errorf("got %+v", ev)
		}
	})
}

// A server before 3.6 does not know setWatches2, and closes the connection on a request that it does not know.
func TestServerWithoutPersistentWatchesSetsOneShotWatchesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.Op != jute.OpSetWatches2 {
				return false
			}
			p.no(r, jute.CodeUnimplemented)
			p.cut()
			return true
		}
		seen := trace(s)
		c, p := connectPiped(t, s)
		oneShot, persistent := newWatcher(), newWatcher()
		c.ask(t, addWatch(wire.Persistent, "/a", persistent, nil))
		c.ask(t, addWatch(wire.PersistentRecursive, "/a", persistent, nil))
		c.ask(t, addWatch(wire.PersistentRecursive, "/b", persistent, nil))
		c.ask(t, watch(jute.OpGetData, "/a", oneShot, nil)) // covered by the persistent watch
		last := c.ask(t, watch(jute.OpGetChildren, "/c", oneShot, nil)).Zxid
		p.cut()
		for range 2 {
			c.await(t, wire.Connected)
			p = s.next(t)
		}
		gone := []string{persistent.nodeEvent(t).Path, persistent.nodeEvent(t).Path}
		slices.Sort(gone)
		if diff := cmp.Diff([]string{"/a", "/b"}, gone); diff != "" {
			t.Errorf("persistent watches that are gone (-want +got):\n%s", diff)
		}
		synctest.Wait()
		want := []string{fmt.Sprintln("setWatches", last, "[/a] [] [/c]", nil)}
		if got := seen.all()[6:]; !slices.Equal(got, want) {
			t.Errorf("on the wire %q, want %q", got, want)
		}
		p.event(zk.EventNodeDataChanged, "/a")
		if ev := oneShot.nodeEvent(t); ev.Type != zk.EventNodeDataChanged || ev.Path != "/a" {
			t.Errorf("got %+v", ev)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if got := len(s.peers); got != 0 {
			t.Errorf("%d more connections", got)
		}
		if n := c.WatchCount(); n != 1 {
			t.Errorf("%d watches, want that of /c", n)
		}
	})
}

// The watcher of a persistent watch that is gone gets one event that says so.
func TestPersistentWatcherIsToldThatItsWatchIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.Op == jute.OpSetWatches2 {
				p.no(r, jute.CodeUnimplemented)
				return true
			}
			return false
		}
		cfg := dialTo(network{"a:1": s})
		cfg.Chroot = "/base"
		c := open(t, cfg)
		c.want(t, wire.Connected)
		p := s.next(t)
		w := newWatcher()
		c.ask(t, addWatch(wire.PersistentRecursive, "/a", w, nil))
		p.cut()
		c.await(t, wire.Connected)
		want := zk.Event{Type: zk.EventNotWatching, State: zk.StateDisconnected, Path: "/a", Err: jute.ErrUnimplemented}
		if diff := cmp.Diff(want, w.nodeEvent(t), cmpopts.EquateErrors()); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
		c.await(t, wire.Connected)
		synctest.Wait()
		if len(w) != 0 || c.WatchCount() != 0 {
			t.Errorf("%d more events, %d watches", len(w), c.WatchCount())
		}
	})
}

// oneNode is a server with one node that changes, and watches on its data as a server has them.
type oneNode struct {
	*server
	mu      sync.Mutex
	version int64 // its zxid and its data
	armed   map[*peer]bool
}

func newOneNode(tb testing.TB) *oneNode {
	tb.Helper()
	n := &oneNode{server: newServer(tb), version: 1, armed: make(map[*peer]bool)}
	n.serve = n.answer
	return n
}

func (n *oneNode) answer(p *peer, r *request) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch r.Op {
	case jute.OpGetData:
		if req, err := jute.DecodeRequest(r.Op, r.body); err == nil && req.Watch {
			n.armed[p] = true
		}
		data := strconv.AppendInt(nil, n.version, 10)
		p.answer(r.Xid, n.version, jute.CodeOK, jute.AppendReply(nil, r.Op, &jute.Reply{Data: data}))
		return true
	case jute.OpSetWatches:
		if w, err := jute.DecodeSetWatches(r.body); err != nil || w.RelativeZxid < n.version {
			p.event(zk.EventNodeDataChanged, "/n")
		} else {
			n.armed[p] = true
		}
	}
	return false
}

// change changes the node, before or after all connections are lost: the event is sent or not, and may not
// arrive.
func (n *oneNode) change(after bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if after {
		n.cutAll()
		clear(n.armed)
	}
	n.version++
	for p := range n.armed {
		p.event(zk.EventNodeDataChanged, "/n")
	}
	if !after {
		n.cutAll()
		clear(n.armed)
	}
}

func TestMissedWatchEventIsSeenBeforeNewerData(t *testing.T) {
	const rounds = 1000
	synctest.Test(t, func(t *testing.T) {
		n := newOneNode(t)
		var c *client
		opened := make(chan struct{})
		var changes int64 // of the reader: events so far
		results := make(chan int64, 100)
		reader := handlerFunc(func(r *wire.Request) {
			version, err := strconv.ParseInt(string(r.Reply.Data), 10, 64)
			if r.Err != nil || err != nil {
				t.Errorf("got %q, %v, %v", r.Reply.Data, r.Err, err)
			}
			if version != changes+1 {
				t.Errorf("version %d is seen after %d changes", version, changes)
			}
			results <- version
		})
		w := notifyFunc{func(ev zk.Event) {
			if ev.Type == zk.EventNodeDataChanged {
				changes++
			}
		}}
		cfg := dialTo(network{"a:1": n.server})
		cfg.OnState = func(s wire.State) {
			if <-opened; s == wire.Connected { // the first in line
				_ = c.Submit(get("/n", reader), false)
			}
		}
		c = open(t, cfg)
		close(opened)
		for round := range int64(rounds) {
			if got := receive(t, results); got != round+1 {
				t.Fatalf("round %d: version %d", round, got)
			}
			if r := c.ask(t, watch(jute.OpGetData, "/n", &w, nil)); r.Err != nil {
				t.Fatal(r.Err)
			}
			n.change(round%2 == 0)
		}
	})
}

// notifyFunc is a function as a Watcher; use its address, for a function does not compare.
type notifyFunc struct{ fn func(ev zk.Event) }

func (n *notifyFunc) Notify(ev zk.Event) { n.fn(ev) }

func TestEventsAndAnswersComeInTheOrderOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.Op == jute.OpSetData {
				p.event(zk.EventNodeDataChanged, "/a") // a server reports the watches before the writer
			}
			return false
		}
		c, _ := connectPiped(t, s)
		var order recorder[string]
		w := &notifyFunc{func(ev zk.Event) { order.add(ev.Path) }}
		done := make(chan struct{})
		answered := handlerFunc(func(r *wire.Request) {
			order.add("answer " + r.Path)
			if r.Path == "/end" {
				close(done)
			}
		})
		c.submit(t, addWatch(wire.Persistent, "/a", w, answered))
		for range 2 {
			r := get("/a", answered)
			r.Op = jute.OpSetData
			c.submit(t, r)
		}
		c.submit(t, get("/end", answered))
		wait(t, done)
		want := []string{"answer /a", "/a", "answer /a", "/a", "answer /a", "answer /end"}
		if diff := cmp.Diff(want, order.all()); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestWatchersGetSessionEventsAndKeepWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		c, p := connectPiped(t, s)
		w := newWatcher()
		c.ask(t, watch(jute.OpGetData, "/a", w, nil))
		c.ask(t, watch(jute.OpGetChildren, "/a", w, nil))
		p.cut()
		c.await(t, wire.Connected)
		synctest.Wait()
		if n := c.WatchCount(); n != 2 {
			t.Errorf("%d watches, want 2", n)
		}
		c.Close()
		var got []zk.State
		var last zk.Event
		for len(w) > 0 {
			if last = <-w; last.Type != zk.EventSession {
				t.Errorf("got %+v", last)
			}
			got = append(got, last.State)
		}
		want := []zk.State{zk.StateDisconnected, zk.StateHasSession, zk.StateExpired}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		if last.Err != zk.ErrClosing || c.WatchCount() != 0 {
			t.Errorf("at last %v, %d watches", last.Err, c.WatchCount())
		}
	})
}

func TestForgottenWatchesGoFromTheServerAndAreNotSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		seen := trace(s)
		c, p := connectPiped(t, s)
		v, w := newWatcher(), newWatcher()
		c.ask(t, watch(jute.OpGetData, "/a", v, nil))
		c.ask(t, watch(jute.OpGetData, "/a", w, nil))
		c.ask(t, watch(jute.OpGetData, "/b", w, nil))
		c.Forget(removal(wire.WatchAny, "/b", nil))
		c.Forget(removal(wire.WatchAny, "/a", w))
		if !c.Watches(wire.WatchData, "/a", nil) || !c.Watches(wire.WatchData, "/a", v) ||
			c.Watches(wire.WatchData, "/a", w) || c.Watches(wire.WatchAny, "/b", nil) {
			t.Error("the wrong ones are forgotten")
		}
		synctest.Wait()
		p.cut()
		c.await(t, wire.Connected)
		synctest.Wait()
		got := seen.all()[3:]
		want := []string{"removeWatches /b 3", "checkWatches /a 3", fmt.Sprintln("setWatches", 5, "[/a] [] []", nil)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("on the wire (-want +got):\n%s", diff)
		}
	})
}

func TestRemovalOnTheWire(t *testing.T) {
	v, w := newWatcher(), newWatcher()
	tests := []struct {
		name   string
		script []*wire.Request // submitted at once: none is answered before all are on the wire
		wire   []string
		left   string // who is registered then: of v and w
		behind string // what is sent then without a watcher
	}{
		{
			"the last watcher takes the server's watch with it",
			[]*wire.Request{watch(jute.OpGetData, "/a", w, nil), nil, removal(wire.WatchData, "/a", w)},
			[]string{"getData /a watch", "removeWatches /a 2"},
			"",
			"",
		},
		{
			"another watcher keeps it",
			[]*wire.Request{
				watch(jute.OpGetData, "/a", w, nil), watch(jute.OpGetData, "/a", v, nil), nil,
				removal(wire.WatchData, "/a", w),
			},
			[]string{"getData /a watch", "getData /a watch", "checkWatches /a 2"},
			"v",
			"",
		},
		{
			"so does another that is being registered",
			[]*wire.Request{
				watch(jute.OpGetData, "/a", w, nil), nil, watch(jute.OpGetData, "/a", v, nil),
				removal(wire.WatchData, "/a", w),
			},
			[]string{"getData /a watch", "getData /a watch", "checkWatches /a 2"},
			"v",
			"",
		},
		{
			"but not one that is registered behind it",
			[]*wire.Request{
				watch(jute.OpGetData, "/a", w, nil), nil, removal(wire.WatchData, "/a", w),
				watch(jute.OpGetData, "/a", v, nil),
			},
			[]string{"getData /a watch", "removeWatches /a 2", "getData /a watch"},
			"v",
			"",
		},
		{
			"nor one on another node",
			[]*wire.Request{
				watch(jute.OpGetData, "/a", w, nil), nil, watch(jute.OpGetData, "/b", v, nil),
				removal(wire.WatchData, "/a", w),
			},
			[]string{"getData /a watch", "getData /b watch", "removeWatches /a 2"},
			"",
			"",
		},
		{
			"one's own that is being registered goes too",
			[]*wire.Request{watch(jute.OpGetData, "/a", w, nil), removal(wire.WatchData, "/a", w)},
			[]string{"getData /a watch", "removeWatches /a 2"},
			"",
			"",
		},
		{
			"one's own that is being registered stays if it is not meant",
			[]*wire.Request{
				watch(jute.OpGetData, "/a", w, nil), nil,
				addWatch(wire.Persistent, "/a", w, nil), removal(wire.WatchData, "/a", w),
			},
			[]string{"getData /a watch", "addWatch /a 0", "checkWatches /a 2"},
			"w",
			"",
		},
		{
			"of two that go at once the second takes it",
			[]*wire.Request{
				watch(jute.OpGetData, "/a", w, nil), watch(jute.OpGetData, "/a", v, nil), nil,
				removal(wire.WatchAny, "/a", w), removal(wire.WatchAny, "/a", v),
			},
			[]string{"getData /a watch", "getData /a watch", "checkWatches /a 3", "removeWatches /a 3"},
			"",
			"",
		},
		{
			"unless the first comes again",
			[]*wire.Request{
				watch(jute.OpGetData, "/a", w, nil), watch(jute.OpGetData, "/a", v, nil), nil,
				removal(wire.WatchAny, "/a", w), watch(jute.OpGetData, "/a", w, nil),
				removal(wire.WatchAny, "/a", v),
			},
			[]string{
				"getData /a watch", "getData /a watch", "checkWatches /a 3", "getData /a watch", "checkWatches /a 3",
			},
			"w",
			"",
		},
		{
			"everybody's",
			[]*wire.Request{
				watch(jute.OpGetData, "/a", w, nil), watch(jute.OpGetChildren, "/a", v, nil), nil,
				removal(wire.WatchAny, "/a", nil),
			},
			[]string{"getData /a watch", "getChildren /a watch", "removeWatches /a 3"},
			"",
			"",
		},
		{
			"of all, while a watcher is being registered",
			[]*wire.Request{
				watch(jute.OpGetData, "/a", w, nil), nil, watch(jute.OpGetChildren, "/a", v, nil),
				removal(wire.WatchAny, "/a", nil),
			},
			[]string{"getData /a watch", "getChildren /a watch", "checkWatches /a 3"},
			"",
			"removeWatches /a 3",
		},
		{
			"a request beside the chroot is for the same node",
			[]*wire.Request{
				watch(jute.OpGetData, "/a", w, nil), nil, absolute(watch(jute.OpGetData, "/base/a", v, nil)),
				removal(wire.WatchData, "/a", w),
			},
			[]string{"getData /a watch", "getData /a watch", "checkWatches /a 2"},
			"v",
			"",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			held := make(chan *request, 10)
			s.serve = func(_ *peer, r *request) bool {
				held <- r
				return r.Op != jute.OpCloseSession
			}
			c := open(t, wire.Config{Servers: []string{s.listen(t)}, Chroot: "/base"})
			c.await(t, wire.Connected)
			p := s.peerOf(t, c)
			done := newAnswers()
			var onWire []string
			answer := func(n int) { // in order, when all n have arrived
				var batch []*request
				for range n {
					batch = append(batch, receive(t, held))
				}
				for _, r := range batch {
					onWire = append(onWire, describe(r))
					p.yes(r)
					if got := receive(t, done); got.Err != nil {
						t.Fatalf("%s: %v", got.Op, got.Err)
					}
				}
			}
			n := 0
			for _, r := range tt.script {
				if r == nil { // what came before is answered first
					answer(n)
					n = 0
					continue
				}
				again := &wire.Request{Request: r.Request, Absolute: r.Absolute, Watcher: r.Watcher, Handler: done}
				c.submit(t, again)
				n++
			}
			answer(n)
			if tt.behind != "" {
				r := receive(t, held)
				if got, want := describe(r), underChroot(tt.behind); got != want {
					t.Errorf("%q is sent, want %q", got, want)
				}
				p.yes(r)
			}
			want := make([]string, len(tt.wire))
			for i, line := range tt.wire {
				want[i] = underChroot(line)
			}
			if diff := cmp.Diff(want, onWire); diff != "" {
				t.Errorf("on the wire (-want +got):\n%s", diff)
			}
			var left string
			if c.Watches(wire.WatchAny, "/a", v) {
				left += "v"
			}
			if c.Watches(wire.WatchAny, "/a", w) {
				left += "w"
			}
			if left != tt.left {
				t.Errorf("registered are %q, want %q", left, tt.left)
			}
		})
	}
}

func absolute(r *wire.Request) *wire.Request {
	r.Absolute = true
	return r
}

func underChroot(line string) string {
	var op, path, rest string
	_, _ = fmt.Sscan(line, &op, &path, &rest)
	return op + " /base" + path + " " + rest
}

// A server before 3.9 keeps one mode for each node of a session: beside a persistent watch no other may be
// asked for, nor is it needed.
func TestPersistentWatchCoversOthersOnTheSameNode(t *testing.T) {
	v, w := newWatcher(), newWatcher()
	persistent := addWatch(wire.Persistent, "/a", w, nil)
	recursive := addWatch(wire.PersistentRecursive, "/a", w, nil)
	gone := removal(wire.WatchAny, "/a", w)
	tests := []struct {
		name   string
		first  []*wire.Request // answered
		second []*wire.Request // in flight
		op     jute.Op
		path   string
		asks   bool
	}{
		{"nobody", nil, nil, jute.OpGetData, "/a", true},
		{"persistent, for data", []*wire.Request{persistent}, nil, jute.OpGetData, "/a", false},
		{"persistent, for existence", []*wire.Request{persistent}, nil, jute.OpExists, "/a", false},
		{"persistent, for children", []*wire.Request{persistent}, nil, jute.OpGetChildren2, "/a", false},
		{"recursive, for data", []*wire.Request{recursive}, nil, jute.OpGetData, "/a", false},
		{"recursive, for children", []*wire.Request{recursive}, nil, jute.OpGetChildren, "/a", true},
		{"recursive, for a node below it", []*wire.Request{recursive}, nil, jute.OpGetData, "/a/b", true},
		{"one that is being set", nil, []*wire.Request{persistent}, jute.OpGetData, "/a", false},
		{"one that is being set, for children", nil, []*wire.Request{persistent}, jute.OpGetChildren, "/a", false},
		{"recursive, being set", nil, []*wire.Request{recursive}, jute.OpExists, "/a", false},
		{"one that is being set and removed", nil, []*wire.Request{persistent, gone}, jute.OpGetData, "/a", true},
		{"one on its way out", []*wire.Request{persistent}, []*wire.Request{gone}, jute.OpGetData, "/a", true},
		{"one that is gone", []*wire.Request{persistent, gone}, nil, jute.OpGetData, "/a", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				release := make(chan struct{})
				var asks atomic.Bool
				s.serve = func(_ *peer, r *request) bool {
					if r.Op == tt.op {
						asks.Store(r.decoded(t).Watch)
					}
					<-release
					return false
				}
				c, p := connectPiped(t, s)
				fresh := func(r *wire.Request, h wire.Handler) *wire.Request {
					return &wire.Request{Request: r.Request, Watcher: r.Watcher, Handler: h}
				}
				close(release)
				for _, r := range tt.first {
					if r := c.ask(t, fresh(r, nil)); r.Err != nil {
						t.Fatal(r.Err)
					}
				}
				release = make(chan struct{})
				for _, r := range tt.second {
					c.submit(t, fresh(r, discard))
				}
				done := make(answers, 1)
				c.submit(t, watch(tt.op, tt.path, v, done))
				close(release)
				receive(t, done)
				if got := asks.Load(); got != tt.asks {
					t.Errorf("asks the server for a watch: %t, want %t", got, tt.asks)
				}
				p.event(zk.EventNodeDeleted, tt.path) // it fires either way
				if ev := v.nodeEvent(t); ev.Path != tt.path {
					t.Errorf("got %+v", ev)
				}
			})
		})
	}
}

func TestWatchThatIsBeingSetIsThereToBeRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(_ *peer, r *request) bool { return r.path() == "/held" }
		c, p := connectPiped(t, s)
		w := newWatcher()
		c.submit(t, watch(jute.OpGetData, "/held", w, discard))
		if !c.Watches(wire.WatchAny, "/held", w) {
			t.Error("a watcher in flight is not known")
		}
		if c.Watches(wire.WatchAny, "/held", newWatcher()) || c.Watches(wire.WatchAny, "/other", w) {
			t.Error("others are")
		}
		p.cut()
		c.await(t, wire.Connected)
		if c.Watches(wire.WatchAny, "/held", w) {
			t.Error("it is still known when its request was lost")
		}
	})
}

func TestRefusedRemovalChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.Op == jute.OpRemoveWatches {
				p.no(r, jute.CodeNoWatcher)
			}
			return r.Op == jute.OpRemoveWatches
		}
		c, _ := connectPiped(t, s)
		w := newWatcher()
		c.ask(t, watch(jute.OpGetData, "/a", w, nil))
		if r := c.ask(t, removal(wire.WatchAny, "/a", w)); r.Err != jute.ErrNoWatcher {
			t.Errorf("got %v, want that there is no such watch", r.Err)
		}
		if !c.Watches(wire.WatchData, "/a", w) {
			t.Error("the watch is gone")
		}
	})
}

func TestRefusedCredentialsEndTheConn(t *testing.T) {
	for name, hangUp := range map[string]bool{"the server hangs up": true, "the server does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.serve = func(p *peer, r *request) bool {
					if r.Op != jute.OpAuth {
						return r.Op != jute.OpCloseSession
					}
					p.answer(r.Xid, 0, jute.CodeAuthFailed, nil)
					if hangUp {
						p.cut()
					}
					return true
				}
				cfg := dialTo(network{"a:1": s})
				cfg.Auth = []jute.Auth{{Scheme: "digest", Auth: []byte("u:p")}, {Scheme: "digest", Auth: []byte("u:q")}}
				c := open(t, cfg)
				c.want(t, wire.Connected)
				c.want(t, wire.AuthFailed)
				if err := c.Submit(get("/a", discard), true); err != zk.ErrAuthFailed {
					t.Errorf("submit: %v, want zk.ErrAuthFailed", err)
				}
				s.next(t)
				<-time.After(time.Hour)
				empty(t, c.states) // it is final
				empty(t, s.peers)
				c.Close()
				empty(t, c.states)
				if err := c.Submit(get("/a", discard), true); err != zk.ErrAuthFailed {
					t.Errorf("submit after Close: %v, want why it ended", err)
				}
			})
		})
	}
}

// The answer to credentials may overtake others.
func TestAnswerToCredentialsMayComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var auth *request
		s.serve = func(p *peer, r *request) bool {
			switch r.Op {
			case jute.OpAuth:
				auth = r
				return true
			case jute.OpGetData:
				p.yes(r)
				p.yes(auth)
				return true
			}
			return false
		}
		cfg := dialTo(network{"a:1": s})
		cfg.Auth = []jute.Auth{{Scheme: "digest", Auth: []byte("u:p")}}
		c := open(t, cfg)
		c.want(t, wire.Connected)
		for range 3 {
			if r := c.ask(t, get("/a", nil)); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		empty(t, c.states)
	})
}
