package wire_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/wire"
)

// The tests of this file check what only Apache ZooKeeper can show: how a server keeps watches, and that our
// frames are to its taste.

func connectReal(t *testing.T) *client {
	t.Helper()
	c := open(t, wire.Config{Servers: []string{testenv.Addr(t)}, Chroot: testenv.Chroot(t)})
	c.await(t, wire.Connected)
	return c
}

// do asks, and fails if the answer is an error.
func (c *client) do(t *testing.T, r jute.Request) {
	t.Helper()
	if answer := c.ask(t, &wire.Request{Request: r}); answer.Err != nil {
		t.Fatalf("%s %s: %v", r.Op, r.Path, answer.Err)
	}
}

func (c *client) create(t *testing.T, path string) {
	t.Helper()
	c.do(t, jute.Request{Op: jute.OpCreate, Path: path, Data: []byte{}, ACL: zk.WorldACL(zk.PermAll)})
}

func (c *client) set(t *testing.T, path string) {
	t.Helper()
	c.do(t, jute.Request{Op: jute.OpSetData, Path: path, Data: []byte("x"), Version: -1})
}

func (c *client) remove(t *testing.T, path string) {
	t.Helper()
	c.do(t, jute.Request{Op: jute.OpDelete, Path: path, Version: -1})
}

func TestRealServerKeepsTheOrder(t *testing.T) {
	const total = 10_000
	c := connectReal(t)
	c.create(t, "/n")
	done := newAnswers()
	for n := range total {
		r := get("/n", done)
		if n%2 == 0 {
			r.Op, r.Data, r.Request.Version = jute.OpSetData, []byte(fmt.Sprint(n)), -1
		}
		if err := c.Submit(r, n%3 == 0); err != nil {
			t.Fatal(err)
		}
	}
	for n := range total {
		r := receive(t, done)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if want := fmt.Sprint(n - 1); r.Op == jute.OpGetData && string(r.Reply.Data) != want {
			t.Fatalf("answer %d is %s, want what was written right before, %s", n, r.Reply.Data, want)
		}
	}
}

// reported returns what w gets while the node and a child of it change.
func reported(t *testing.T, c *client, w watcher) []string {
	t.Helper()
	for len(w) > 0 {
		<-w
	}
	c.set(t, "/n")
	c.create(t, "/n/c")
	c.remove(t, "/n/c") // the events come before the answer
	var got []string
	for len(w) > 0 {
		if ev := <-w; ev.Type != zk.EventSession {
			got = append(got, fmt.Sprint(ev.Type, " ", ev.Path))
		}
	}
	return got
}

// What the registry decides to send must leave the watches of others whole.
func TestRealServerLeavesTheWatchesOfOthers(t *testing.T) {
	persistent := []string{
		"EventNodeDataChanged /n", "EventNodeChildrenChanged /n", "EventNodeChildrenChanged /n",
	}
	recursive := []string{"EventNodeDataChanged /n", "EventNodeCreated /n/c", "EventNodeDeleted /n/c"}
	modes := []struct {
		name string
		mode int32
		want []string
	}{{"persistent", wire.Persistent, persistent}, {"recursive", wire.PersistentRecursive, recursive}}
	for _, m := range modes {
		for _, op := range []jute.Op{jute.OpGetData, jute.OpExists, jute.OpGetChildren, jute.OpGetChildren2} {
			t.Run(m.name+" beside "+op.String(), func(t *testing.T) {
				c := connectReal(t)
				c.create(t, "/n")
				v, w := newWatcher(), newWatcher()
				if r := c.ask(t, addWatch(m.mode, "/n", w, nil)); r.Err != nil {
					t.Fatal(r.Err)
				}
				for _, happens := range []struct {
					name string
					f    func()
				}{
					{"a one-shot watch is set", func() { c.ask(t, watch(op, "/n", v, nil)) }},
					{"it has fired", func() {
						if ev := v.nodeEvent(t); ev.Path != "/n" {
							t.Errorf("got %+v", ev)
						}
						empty(t, v)
					}},
					{"it is set again, and removed", func() {
						c.ask(t, watch(op, "/n", v, nil))
						if r := c.ask(t, removal(wire.WatchAny, "/n", v)); r.Err != nil {
							t.Error(r.Err)
						}
					}},
					{"it is set, and both are set again on another connection", func() {
						c.ask(t, watch(op, "/n", v, nil))
						c.CutForTest()
						c.await(t, wire.Disconnected)
						c.await(t, wire.Connected)
					}},
				} {
					happens.f()
					if diff := cmp.Diff(m.want, reported(t, c, w)); diff != "" {
						t.Errorf("when %s (-want +got):\n%s", happens.name, diff)
					}
				}
				v.nodeEvent(t)
				if got := reported(t, c, v); len(got) > 0 {
					t.Errorf("a one-shot watch reports %v", got)
				}
				// The one-shot watch outlives the persistent one.
				c.ask(t, watch(op, "/n", v, nil))
				if r := c.ask(t, removal(wire.WatchAny, "/n", w)); r.Err != nil {
					t.Error(r.Err)
				}
				if got := reported(t, c, v); len(got) != 1 {
					t.Errorf("a one-shot watch reports %v", got)
				}
				if got := reported(t, c, w); len(got) > 0 {
					t.Errorf("a removed watcher gets %v", got)
				}
			})
		}
	}
}

func TestRealServerTakesALastWatchOff(t *testing.T) {
	c := connectReal(t)
	c.create(t, "/n")
	v, w := newWatcher(), newWatcher()
	c.ask(t, addWatch(wire.Persistent, "/n", v, nil))
	c.ask(t, addWatch(wire.Persistent, "/n", w, nil))
	for _, who := range []watcher{v, w} {
		if r := c.ask(t, removal(wire.WatchAny, "/n", who)); r.Err != nil {
			t.Error(r.Err)
		}
	}
	if got := append(reported(t, c, v), reported(t, c, w)...); len(got) > 0 {
		t.Errorf("still got %v", got)
	}
	if r := c.ask(t, removal(wire.WatchAny, "/n", nil)); r.Err != jute.ErrNoWatcher {
		t.Errorf("the server still has a watch: %v", r.Err)
	}
}

func TestRealServerSetsAllKindsOfWatchesAgain(t *testing.T) {
	c := connectReal(t)
	c.create(t, "/n")
	data, exist, child, recursive := newWatcher(), newWatcher(), newWatcher(), newWatcher()
	c.ask(t, watch(jute.OpGetData, "/n", data, nil))
	c.ask(t, watch(jute.OpExists, "/missing", exist, nil))
	c.ask(t, watch(jute.OpGetChildren, "/n", child, nil))
	if r := c.ask(t, addWatch(wire.PersistentRecursive, "/", recursive, nil)); r.Err != nil {
		t.Fatal(r.Err)
	}
	id := c.SessionID()
	c.CutForTest()
	c.want(t, wire.Disconnected)
	c.want(t, wire.Connected)
	if c.SessionID() != id {
		t.Errorf("session %#x, want %#x", c.SessionID(), id)
	}
	c.set(t, "/n")
	c.create(t, "/n/c")
	c.create(t, "/missing")
	for _, want := range []struct {
		w  watcher
		ev string
	}{
		{data, "EventNodeDataChanged /n"},
		{child, "EventNodeChildrenChanged /n"},
		{exist, "EventNodeCreated /missing"},
		{recursive, "EventNodeDataChanged /n"},
		{recursive, "EventNodeCreated /n/c"},
		{recursive, "EventNodeCreated /missing"},
	} {
		ev := want.w.nodeEvent(t)
		if got := fmt.Sprint(ev.Type, " ", ev.Path); got != want.ev {
			t.Errorf("got %s, want %s", got, want.ev)
		}
	}
}

func TestRealServerSendsMissedEvents(t *testing.T) {
	c := connectReal(t)
	c.create(t, "/n")
	other := open(t, wire.Config{Servers: []string{testenv.Addr(t)}, Chroot: c.Chroot()})
	other.await(t, wire.Connected)
	for round := range 50 {
		w := newWatcher()
		if r := c.ask(t, watch(jute.OpGetData, "/n", w, nil)); r.Err != nil {
			t.Fatal(r.Err)
		}
		seen := make(chan bool, 1)
		c.CutForTest()
		other.set(t, "/n")
		c.await(t, wire.Connected)
		c.submit(t, get("/n", handlerFunc(func(*wire.Request) { // newer data, on the goroutine that reads
			missed := false
			for len(w) > 0 {
				missed = missed || (<-w).Type == zk.EventNodeDataChanged
			}
			seen <- missed
		})))
		if !receive(t, seen) {
			t.Fatalf("round %d: newer data is seen before the event", round)
		}
	}
}

func TestRealServerEndsASession(t *testing.T) {
	c := open(t, wire.Config{Servers: []string{testenv.Addr(t)}, SessionTimeout: 10 * time.Second})
	c.await(t, wire.Connected)
	root := testenv.Chroot(t)
	c.do(t, jute.Request{
		Op: jute.OpCreate, Path: root + "/e", Data: []byte{}, ACL: zk.WorldACL(zk.PermAll), Flags: 1,
	})
	c.Close()
	if ok, _, err := testenv.Raw(t).Exists(root + "/e"); ok || err != nil {
		t.Errorf("the ephemeral node has outlived the goodbye: %t, %v", ok, err)
	}
}

func TestRealServerRefusesCredentials(t *testing.T) {
	c := open(t, wire.Config{
		Servers: []string{testenv.Addr(t)}, Auth: []jute.Auth{{Scheme: "nonsense", Auth: []byte("x")}},
	})
	c.await(t, wire.AuthFailed)
	if err := c.Submit(get("/", discard), false); err != zk.ErrAuthFailed {
		t.Errorf("submit: %v, want zk.ErrAuthFailed", err)
	}
}

// TestRealServerKeepsPersistentWatchWhenAnotherBecomesOneShot sets a one-shot watch right behind the removal of a
// persistent one, which another watcher has too.
func TestRealServerKeepsPersistentWatchWhenAnotherBecomesOneShot(t *testing.T) {
	for _, mode := range []int32{wire.Persistent, wire.PersistentRecursive} {
		t.Run(fmt.Sprint("mode ", mode), func(t *testing.T) {
			c := connectReal(t)
			c.create(t, "/n")
			v, w := newWatcher(), newWatcher()
			c.ask(t, addWatch(mode, "/n", v, nil))
			c.ask(t, addWatch(mode, "/n", w, nil))
			before := reported(t, c, w)
			r := removal(wire.WatchAny, "/n", v)
			r.Handler = discard
			c.submit(t, r)
			c.ask(t, watch(jute.OpExists, "/n", v, nil))
			for range 2 {
				if diff := cmp.Diff(before, reported(t, c, w)); diff != "" {
					t.Errorf("got other events (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestRealServerKeepsPersistentWatchThatIsBeingSet sets a one-shot watch right behind the request for a persistent one.
func TestRealServerKeepsPersistentWatchThatIsBeingSet(t *testing.T) {
	for _, mode := range []int32{wire.Persistent, wire.PersistentRecursive} {
		for _, op := range []jute.Op{jute.OpExists, jute.OpGetData, jute.OpGetChildren, jute.OpGetChildren2} {
			t.Run(fmt.Sprint("mode ", mode, " ", op), func(t *testing.T) {
				c := connectReal(t)
				c.create(t, "/n")
				v, w := newWatcher(), newWatcher()
				c.submit(t, addWatch(mode, "/n", w, discard))
				c.ask(t, watch(op, "/n", v, nil))
				before := reported(t, c, w)
				if len(before) != 3 {
					t.Errorf("a persistent watch reports %v", before)
				}
				if diff := cmp.Diff(before, reported(t, c, w)); diff != "" {
					t.Errorf("got other events (-want +got):\n%s", diff)
				}
				if ev := v.nodeEvent(t); ev.Path != "/n" {
					t.Errorf("a one-shot watch reports %+v", ev)
				}
				empty(t, v)
			})
		}
	}
}
