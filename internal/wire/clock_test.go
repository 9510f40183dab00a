package wire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

func TestSessionClockMovesWithAnswersAndPingsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = 30 * time.Second // a ping each 10 s
		c := open(t, cfg)
		c.want(t, wire.Connected)
		p := s.next(t)
		w := newWatcher()
		c.ask(t, addWatch(wire.Persistent, "/a", w, nil))

		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		check := func(what string, want time.Time) {
			t.Helper()
			if got := c.LastAnswer(); !got.Equal(want) {
				t.Errorf("%s: last answer %s from what it should be", what, got.Sub(want))
			}
		}
		start := time.Now()
		check("after the handshake", start)
		pass(time.Second)
		c.ask(t, get("/a", nil))
		answered := time.Now()
		check("after an answer", answered)
		pass(time.Second)
		p.event(zk.EventNodeDataChanged, "/a")
		w.nodeEvent(t)
		check("after an event", answered)
		s.serve = nil
		pass(8*time.Second + time.Millisecond)
		check("after a ping", start.Add(10*time.Second))
		s.mutePings.Store(true)
		pass(5 * time.Second)

		// It stands still while there is no connection, and moves with the next handshake.
		s.mutePings.Store(false)
		var greeted time.Time
		s.greet = func(p *peer, _ jute.ConnectRequest) bool {
			greeted = time.Now() // the server takes its time: that is not time that it gives us
			pass(700 * time.Millisecond)
			return false
		}
		last := c.LastAnswer()
		p.cut()
		c.want(t, wire.Disconnected)
		pass(500 * time.Millisecond)
		check("without a connection", last)
		c.want(t, wire.Connected)
		check("after the next handshake", greeted)
	})
}

func TestDeadPeerIsNoticedInTwoThirdsOfTheSessionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(*peer, *request) bool { return true }
		s.mutePings.Store(true)
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = 15 * time.Second
		c := open(t, cfg)
		c.want(t, wire.Connected)
		start := time.Now()
		done := newAnswers()
		c.submit(t, get("/a", done))
		if r := receive(t, done); r.Err != jute.ErrConnectionLoss {
			t.Errorf("got %v, want connection loss", r.Err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("noticed after %s", d)
		}
		s.mutePings.Store(false)
		c.await(t, wire.Connected)
	})
}

func TestQuietConnectionLivesOnPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		c, _ := connectPiped(t, s)
		<-time.After(24 * time.Hour)
		empty(t, c.states)
		if d := time.Since(c.LastAnswer()); d > c.SessionTimeout()/3 {
			t.Errorf("the last answer was %s ago", d)
		}
	})
}

// A large answer that comes slowly is progress.
func TestSlowAnswerIsNoDeadPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.Op != jute.OpGetData {
				return false
			}
			body := jute.AppendReply(nil, r.Op, &jute.Reply{Data: make([]byte, 1<<20)})
			b := framed(append(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: r.Xid, Zxid: 1}), body...))
			s.mutePings.Store(true) // nothing may come between
			s.wg.Go(func() {
				for len(b) > 0 {
					n := min(len(b), 8<<10)
					p.raw(b[:n])
					b = b[n:]
					<-time.After(time.Second)
				}
				s.mutePings.Store(false)
			})
			return true
		}
		c, _ := connectPiped(t, s)
		done := newAnswers()
		start := time.Now()
		c.submit(t, get("/a", done))
		<-time.After(3 * time.Minute)
		r := receive(t, done)
		if r.Err != nil || len(r.Reply.Data) != 1<<20 || time.Since(start) < time.Minute {
			t.Errorf("after %s: %v, %d bytes", time.Since(start), r.Err, len(r.Reply.Data))
		}
		empty(t, c.states)
	})
}
