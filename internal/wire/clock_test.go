package wire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// The session clock shows when what was answered last was sent: no later than the server has heard of us.
func TestSessionClockMovesWithAnswersAndPingsOnly(t *testing.T) {
	const delay = 300 * time.Millisecond // of the handshake and of each answer
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.greet = func(*peer, jute.ConnectRequest) bool {
			<-time.After(delay)
			return false
		}
		s.serve = func(*peer, *request) bool {
			<-time.After(delay)
			return false
		}
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = 30 * time.Second // a ping each 10 s
		start := time.Now()
		c := open(t, cfg)
		c.want(t, wire.Connected)
		p := s.next(t)

		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		check := func(what string, want time.Time) {
			t.Helper()
			if got := c.LastAnswer(); !got.Equal(want) {
				t.Errorf("%s: %s from what it should be", what, got.Sub(want))
			}
		}
		check("after the handshake", start)
		w := newWatcher()
		requested := time.Now()
		c.ask(t, addWatch(wire.Persistent, "/a", w, nil))
		check("after an answer", requested)

		pass(time.Second)
		p.event(zk.EventNodeDataChanged, "/a")
		w.nodeEvent(t)
		check("after an event", requested)

		requested = time.Now()
		done := newAnswers()
		c.submit(t, get("/first", done))
		pass(delay / 3)
		second := time.Now()
		c.submit(t, get("/second", done))
		receive(t, done)
		check("after the first of two answers", requested)
		receive(t, done)
		check("after the second", second)
		c.ask(t, get("/refused", nil))

		ping := start.Add(delay + 10*time.Second)
		pass(time.Until(ping) + time.Millisecond)
		check("after a ping", ping)

		// It stands still without answers, and moves with the next handshake.
		s.mutePings.Store(true)
		pass(15 * time.Second)
		check("of a mute server", ping)
		s.mutePings.Store(false)
		p.cut()
		c.want(t, wire.Disconnected)
		check("without a connection", ping)
		greeted := time.Now()
		c.want(t, wire.Connected)
		if got := c.LastAnswer(); got.Before(greeted) || got.After(time.Now().Add(-delay)) {
			t.Errorf("after the next handshake: %s after the cut", got.Sub(greeted))
		}
	})
}

func TestSessionClockIsNeverAhead(t *testing.T) {
	const total, delay = 2 * wire.MaxInFlight, time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(*peer, *request) bool {
			<-time.After(delay)
			return false
		}
		c, _ := connectPiped(t, s)
		done := newAnswers()
		for n := range total {
			c.submit(t, numbered(n, done))
			if n%100 == 0 {
				<-time.After(10 * delay)
			}
		}
		for n := range total {
			receive(t, done)
			if d := time.Since(c.LastAnswer()); d < delay {
				t.Fatalf("answer %d: the clock shows %s ago, and a way takes %s", n, d, delay)
			}
		}
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

// Nor is a server that takes its time to read: what is written is more than it reads in two thirds of the
// session timeout, but it answers all the time.
func TestSlowReaderIsNoDeadPeer(t *testing.T) {
	const total = 100
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			<-time.After(time.Second)
			p.yes(r)
			p.cork(false) // whatever else is at hand
			return true
		}
		c, _ := connectPiped(t, s)
		done := newAnswers()
		for n := range total {
			r := numbered(n, done)
			r.Op, r.Data = jute.OpSetData, make([]byte, 32<<10)
			c.submit(t, r)
		}
		<-time.After(total * time.Second)
		done.collect(t, total)
		empty(t, c.states)
	})
}
