package wire_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// queued is a client whose server holds what it is requested until the test answers it.
func queued(t *testing.T) (c *client, p *peer, held chan *request) {
	t.Helper()
	s := newServer(t)
	held = make(chan *request, 1000)
	s.serve = func(_ *peer, r *request) bool {
		if r.Xid >= wire.FirstXid {
			held <- r
		}
		return r.Xid >= wire.FirstXid
	}
	c, p = connectPiped(t, s)
	return c, p, held
}

// What is counted of the requests under way is right again when they are answered, whatever passes each other.
func TestTrafficThatPassesEachOtherAddsUp(t *testing.T) {
	w, v := newWatcher(), newWatcher()
	set := func(w wire.Watcher) *wire.Request { return watch(jute.OpGetData, "/n", w, discard) }
	remove := func(w wire.Watcher) *wire.Request {
		r := removal(wire.WatchAny, "/n", w)
		r.Handler = discard
		return r
	}
	tests := map[string]func() []*wire.Request{
		"set, removed":           func() []*wire.Request { return []*wire.Request{set(w), remove(w)} },
		"removed, set":           func() []*wire.Request { return []*wire.Request{remove(w), set(w)} },
		"set, removed twice":     func() []*wire.Request { return []*wire.Request{set(w), remove(w), remove(w)} },
		"set, removed, set":      func() []*wire.Request { return []*wire.Request{set(w), remove(w), set(w)} },
		"set, another removed":   func() []*wire.Request { return []*wire.Request{set(w), remove(v)} },
		"both set, both removed": func() []*wire.Request { return []*wire.Request{set(w), set(v), remove(w), remove(v)} },
		"set, all removed":       func() []*wire.Request { return []*wire.Request{set(w), set(v), remove(nil)} },
		"set, removed, all, again": func() []*wire.Request {
			return []*wire.Request{set(w), remove(w), remove(nil), set(v), remove(v)}
		},
	}
	for name, requests := range tests {
		for _, code := range []jute.Code{jute.CodeOK, jute.CodeNoNode} {
			t.Run(fmt.Sprintf("%s, answered %d", name, code), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, p, held := queued(t)
					all := requests()
					for _, r := range all {
						c.submit(t, r)
					}
					synctest.Wait()
					for range all {
						if code == jute.CodeOK {
							p.yes(receive(t, held))
						} else {
							p.answer(receive(t, held).Xid, 1, code, nil)
						}
					}
					synctest.Wait()
					for len(held) > 0 { // the removal of a watch that is not registered
						p.yes(receive(t, held))
						synctest.Wait()
					}
					p.event(zk.EventNodeDeleted, "/n") // there is no watch then
					synctest.Wait()
					if paths, watchers := c.Traffic(); paths+watchers != 0 {
						t.Errorf("traffic of %d paths and %d watchers", paths, watchers)
					}
				})
			})
		}
	}
}

// A removal does not take the watch of the server that is being set for another watcher, however often the first has
// come and gone meanwhile.
func TestRemovalLeavesTheWatchThatIsBeingSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p, held := queued(t)
		w, v := newWatcher(), newWatcher()
		remove := func() *wire.Request {
			r := removal(wire.WatchAny, "/n", w)
			r.Handler = discard
			return r
		}
		c.submit(t, watch(jute.OpGetData, "/n", w, discard))
		c.submit(t, remove())
		synctest.Wait()
		p.yes(receive(t, held)) // what is removed is answered before the removal is
		synctest.Wait()
		c.submit(t, watch(jute.OpGetData, "/n", v, discard))
		c.submit(t, remove())
		synctest.Wait()
		var ops []jute.Op
		for range 3 {
			r := receive(t, held)
			ops = append(ops, r.Op)
			p.yes(r)
		}
		if ops[2] != jute.OpCheckWatches {
			t.Errorf("the server gets %v", ops)
		}
		synctest.Wait()
		p.event(zk.EventNodeDataChanged, "/n")
		synctest.Wait()
		if len(v) != 1 || len(w) != 0 {
			t.Errorf("%d and %d events", len(v), len(w))
		}
	})
}

// A withdrawn request that sets a watch leaves nothing behind.
func TestWithdrawnWatchIsNotBeingSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p, held := queued(t)
		for range firstWindow {
			c.submit(t, get("/n", discard))
		}
		w := newWatcher()
		r := watch(jute.OpGetData, "/n", w, discard)
		c.submit(t, r)
		if !c.Watches(wire.WatchAny, "/n", w) {
			t.Error("not being set")
		}
		if !c.Withdraw(r) {
			t.Fatal("not withdrawn")
		}
		if c.Watches(wire.WatchAny, "/n", w) {
			t.Error("still being set")
		}
		for range firstWindow {
			p.yes(receive(t, held))
		}
	})
}

// A large answer without a request ends the connection before its bytes come.
func TestLargeAnswerOfDetachedRequestIsNotSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p, _ := queued(t)
		start := time.Now()
		b := binary.BigEndian.AppendUint32(nil, 1<<30)
		p.raw(jute.AppendReplyHeader(b, jute.ReplyHeader{Xid: wire.FirstXid + 1000, Zxid: 1}))
		c.want(t, wire.Disconnected)
		if d := time.Since(start); d > 0 {
			t.Errorf("took %s", d)
		}
	})
}

// What waits only because much was encoded goes on its way when that is written, without an answer.
func TestBytesBeyondTheLimitWaitForTheWriteAlone(t *testing.T) {
	const total = firstWindow
	synctest.Test(t, func(t *testing.T) {
		c, p, held := queued(t)
		done := newAnswers()
		data := make([]byte, 200<<10)
		for n := range total {
			r := numbered(n, done)
			r.Op, r.Data = jute.OpSetData, data
			c.submit(t, r)
		}
		synctest.Wait()
		if got := len(held); got != total {
			t.Errorf("%d requests have arrived, want %d", got, total)
		}
		for range total {
			p.yes(receive(t, held))
		}
		done.collect(t, total)
	})
}

// Pings are ahead of what is not written yet: a server that reads slowly keeps the session.
func TestPingOvertakesWhatIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		release := make(chan struct{})
		first := true
		s.serve = func(*peer, *request) bool {
			if first {
				first = false
				<-release
			}
			return false
		}
		c, _ := connectPiped(t, s)
		var at []time.Time // for each answer, when the last was sent of what is answered
		done := make(chan struct{}, 100)
		note := handlerFunc(func(*wire.Request) {
			at = append(at, c.LastAnswer())
			done <- struct{}{}
		})
		large := get("/large", note)
		large.Op, large.Data = jute.OpSetData, make([]byte, 100<<10)
		start := time.Now()
		c.submit(t, get("/first", note)) // the server reads no more
		c.submit(t, large)               // is being written
		synctest.Wait()
		<-time.After(time.Second)
		for range 10 {
			c.submit(t, get("/behind", note))
		}
		<-time.After(10 * time.Second) // a ping is sent after a third of the session timeout
		close(release)
		for range 12 {
			receive(t, done)
		}
		if d := at[2].Sub(start); d < 9*time.Second {
			t.Errorf("with the answer to what was submitted behind, the clock is at %s", d)
		}
	})
}

// sentOp answers the next request and returns what was requested.
func sentOp(t *testing.T, p *peer, held chan *request) jute.Op {
	t.Helper()
	synctest.Wait()
	r := receive(t, held)
	p.yes(r)
	synctest.Wait()
	return r.Op
}

// A removal counts the watchers that stay: not those that leave, however often, and not those that come meanwhile.
func TestRemovalCountsRemainingWatchers(t *testing.T) {
	set := func(c *client, w wire.Watcher) { c.submit(t, watch(jute.OpGetData, "/n", w, discard)) }
	remove := func(c *client, w wire.Watcher) {
		r := removal(wire.WatchAny, "/n", w)
		r.Handler = discard
		c.submit(t, r)
	}
	w, v, x := newWatcher(), newWatcher(), newWatcher()
	check := func(t *testing.T, what string, got, want jute.Op) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	t.Run("leaving twice", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, p, held := queued(t)
			for _, who := range []wire.Watcher{w, v} {
				set(c, who)
				sentOp(t, p, held)
			}
			remove(c, w)
			remove(c, w)
			check(t, "the first", sentOp(t, p, held), jute.OpCheckWatches)
			check(t, "the second", sentOp(t, p, held), jute.OpCheckWatches)
			set(c, x)
			sentOp(t, p, held)
			remove(c, x)
			check(t, "of another", sentOp(t, p, held), jute.OpCheckWatches)
			remove(c, v)
			check(t, "of the last", sentOp(t, p, held), jute.OpRemoveWatches)
		})
	})
	t.Run("coming while leaving", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, p, held := queued(t)
			set(c, v)
			sentOp(t, p, held)
			set(c, w)
			remove(c, w)
			sentOp(t, p, held) // w is registered, and leaves
			remove(c, v)
			check(t, "of the one that leaves", sentOp(t, p, held), jute.OpCheckWatches)
			check(t, "of the last", sentOp(t, p, held), jute.OpRemoveWatches)
		})
	})
}

// Watchers that are gone leave gaps in a long list, which are not visible.
func TestEventPassesOverWatchersThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connectPiped(t, newServer(t))
		events := new(int)
		for i := range 20 {
			c.ask(t, watch(jute.OpGetData, "/n", counted{events, i}, nil))
		}
		for i := range 5 {
			c.ask(t, removal(wire.WatchAny, "/n", counted{events, 2 * i}))
		}
		p.event(zk.EventNodeDataChanged, "/n")
		c.ask(t, get("/behind", nil))
		if *events != 15 {
			t.Errorf("%d events, want 15", *events)
		}
	})
}
