package wire_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// requested takes the requests that the server holds, and says what they ask.
func requested(t *testing.T, held chan *request) (all []*request, lines []string) {
	t.Helper()
	synctest.Wait()
	for len(held) > 0 {
		r := receive(t, held)
		all, lines = append(all, r), append(lines, describe(r))
	}
	return all, lines
}

// TestOneShotWatchIsSetWhenAddWatchBeforeItIsRefused sets a one-shot watch behind an addWatch that the server refuses,
// as one before 3.6 does.
func TestOneShotWatchIsSetWhenAddWatchBeforeItIsRefused(t *testing.T) {
	for _, op := range []jute.Op{jute.OpExists, jute.OpGetData, jute.OpGetChildren, jute.OpGetChildren2} {
		t.Run(op.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p, held := queued(t)
				v, w, done := newWatcher(), newWatcher(), newAnswers()
				requests := []*wire.Request{
					addWatch(wire.Persistent, "/n", w, done), watch(op, "/n", v, done), get("/n", done),
				}
				for _, r := range requests {
					c.submit(t, r)
				}
				all, lines := requested(t, held)
				if len(all) != 1 || all[0].Op != jute.OpAddWatch {
					t.Fatalf("before addWatch is answered, the server gets %v", lines)
				}
				p.no(all[0], jute.CodeUnimplemented)
				all, lines = requested(t, held)
				if len(all) != 2 || !all[0].decoded(t).Watch || all[1].decoded(t).Watch {
					t.Fatalf("behind a refused addWatch, the server gets %v", lines)
				}
				for _, r := range all {
					p.yes(r)
				}
				for _, want := range requests {
					if got := receive(t, done); got != want {
						t.Errorf("%s is answered, want %s", got.Op, want.Op)
					}
				}
				p.event(zk.EventNodeDeleted, "/n")
				if ev := v.nodeEvent(t); ev.Type != zk.EventNodeDeleted {
					t.Errorf("event %+v", ev)
				}
				synctest.Wait()
				empty(t, v)
				if paths, watchers := c.Traffic(); paths+watchers != 0 {
					t.Errorf("traffic of %d paths and %d watchers", paths, watchers)
				}
			})
		})
	}
}

// TestOneShotWatchBehindAddWatchIsUnsentWhenConnectionIsLost ends the connection before an addWatch is answered.
func TestOneShotWatchBehindAddWatchIsUnsentWhenConnectionIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(_ *peer, r *request) bool { return r.Xid >= wire.FirstXid }
		cfg := dialTo(network{"a:1": s})
		unsent := newAnswers()
		cfg.OnUnsent = func(all []*wire.Request) {
			for _, r := range all {
				unsent <- r
			}
		}
		c := open(t, cfg)
		c.want(t, wire.Connected)
		p, done := s.next(t), newAnswers()
		add := addWatch(wire.PersistentRecursive, "/n", newWatcher(), done)
		behind := watch(jute.OpExists, "/n", newWatcher(), done)
		c.submit(t, add)
		c.submit(t, behind)
		synctest.Wait()
		p.cut()
		if r := receive(t, done); r != add || r.Err != jute.ErrConnectionLoss {
			t.Errorf("%s: %v", r.Op, r.Err)
		}
		if r := receive(t, unsent); r != behind || r.WasSent() {
			t.Errorf("%s is given back, sent %t", r.Op, r.WasSent())
		}
		empty(t, done)
		c.await(t, wire.Connected)
		if paths, watchers := c.Traffic(); paths+watchers != 0 {
			t.Errorf("traffic of %d paths and %d watchers", paths, watchers)
		}
	})
}

// TestWithdrawnOneShotWatchFreesWhatWaitsBehindIt withdraws a watch that waits for the answer to an addWatch.
func TestWithdrawnOneShotWatchFreesWhatWaitsBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p, held := queued(t)
		c.submit(t, addWatch(wire.Persistent, "/n", newWatcher(), discard))
		behind := watch(jute.OpGetData, "/n", newWatcher(), discard)
		c.submit(t, behind)
		c.submit(t, get("/last", discard))
		synctest.Wait() // the addWatch is written
		if !c.Withdraw(behind) {
			t.Fatal("not withdrawn")
		}
		all, _ := requested(t, held)
		p.yes(all[0])
		all, lines := requested(t, held)
		if diff := cmp.Diff([]string{"getData /last"}, lines); diff != "" {
			t.Fatalf("requested (-want +got):\n%s", diff)
		}
		p.yes(all[0])
	})
}

// TestRequestsThatNoAddWatchCoversAreNotHeldBack sends them at once behind an addWatch.
func TestRequestsThatNoAddWatchCoversAreNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p, held := queued(t)
		c.submit(t, addWatch(wire.PersistentRecursive, "/n", newWatcher(), discard))
		c.submit(t, watch(jute.OpGetChildren2, "/n", newWatcher(), discard)) // it has no events of children
		c.submit(t, watch(jute.OpGetData, "/n/c", newWatcher(), discard))
		c.submit(t, get("/n", discard))
		c.submit(t, addWatch(wire.Persistent, "/n", newWatcher(), discard))
		all, lines := requested(t, held)
		if len(all) != 5 {
			t.Errorf("requested %v", lines)
		}
		for _, r := range all {
			p.yes(r)
		}
	})
}
