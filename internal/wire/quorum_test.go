package wire_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// quorumTimeout is the session timeout of these tests. The leader hears of a session a quarter of it late at most, and
// a part in fifty is added to that.
const (
	quorumTimeout = 10 * time.Second
	leaderDelay   = quorumTimeout/4 + quorumTimeout/50
)

// write is a request that goes through a majority.
func write(path string) *wire.Request {
	return &wire.Request{Request: jute.Request{Op: jute.OpSetData, Path: path, Flags: -1}}
}

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// The leader has heard of what was answered some time before a write was sent.
func TestQuorumClockMovesToWhatWasAnsweredWellBeforeAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 100 * time.Millisecond
		s := newServer(t)
		s.serve = func(*peer, *request) bool { <-time.After(delay); return false }
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = quorumTimeout
		start := time.Now()
		c := open(t, cfg)
		c.want(t, wire.Connected)

		check := func(what string, since time.Time) {
			t.Helper()
			if got, want := c.QuorumSilence(), time.Since(since); got != want {
				t.Errorf("%s: proved %v ago, want %v", what, got, want)
			}
		}
		check("after the handshake, before any write", start)
		pass(time.Second)
		first := time.Now()
		c.ask(t, get("/a", nil))
		check("after a read, before any write", first)
		c.ask(t, write("/a"))
		check("after a write right behind it", start) // of the handshake the leader has heard at once

		pass(leaderDelay - time.Since(first.Add(delay)) - time.Millisecond)
		c.ask(t, write("/a"))
		check("after a write a little too early", start)
		pass(time.Second)
		c.ask(t, get("/a", nil))
		check("after another read", start)
		written := time.Now()
		c.ask(t, write("/a"))
		if got, least := c.QuorumSilence(), time.Since(written)+leaderDelay; got < least {
			t.Errorf("after a write: proved %v ago, want %v at least", got, least)
		} else if got > least+2*time.Second {
			t.Errorf("after a write: proved %v ago, want little more than %v", got, least)
		}
	})
}

// A write that is refused, or lost, proves nothing.
func TestQuorumClockStandsStillWithoutAnAnsweredWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			switch r.path() {
			case "/refused":
				p.no(r, jute.CodeNotReadOnly)
			case "/lost":
				p.cut()
			default:
				return false
			}
			return true
		}
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.ask(t, write("/a"))
		proved := time.Now()
		pass(quorumTimeout) // with pings that an answer could prove
		c.ask(t, write("/refused"))
		c.ask(t, write("/lost"))
		c.await(t, wire.Connected)
		c.ask(t, get("/a", nil))
		if got, want := c.QuorumSilence(), time.Since(proved); got != want {
			t.Errorf("proved %v ago, want %v", got, want)
		}
		// What the last connection has answered may have died with its server.
		greeted := time.Now()
		c.ask(t, write("/a"))
		if got, want := c.QuorumSilence(), time.Since(greeted)+time.Second; got > want {
			t.Errorf("after a write on the next connection: proved %v ago, want %v at most", got, want)
		}
	})
}

// Silence from before RequireQuorum does not count.
func TestQuorumClockBeginsWithTheFirstWriteAfterRely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.ask(t, write("/a"))
		pass(10 * quorumTimeout) // pings go on
		if got := c.QuorumSilence(); got < 10*quorumTimeout {
			t.Errorf("without a write: proved %v ago", got)
		}
		c.RequireQuorum()
		if got, want := c.QuorumSilence(), c.Silence(); got != want {
			t.Errorf("before a write: %v, want %v", got, want)
		}
		c.ask(t, get("/a", nil))
		if got := c.QuorumSilence(); got != 0 {
			t.Errorf("after a read: %v, want 0", got)
		}
		c.ask(t, write("/a"))
		if got := c.QuorumSilence(); got < leaderDelay || got > quorumTimeout {
			t.Errorf("after a write: proved %v ago, want %v at least, by a ping", got, leaderDelay)
		}
	})
}

// Heartbeats keep the session proved, and a program that writes anyway needs none.
func TestHeartbeatsAreSentWithoutWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		beats := 0
		s.serve = func(p *peer, r *request) bool {
			if r.Op == jute.OpMulti {
				beats++
			}
			return false
		}
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.RequireQuorum()
		for range 1000 {
			c.Heartbeat()
			pass(quorumTimeout / 20)
			if got := c.QuorumSilence(); got > quorumTimeout/2 {
				t.Fatalf("proved %v ago", got)
			}
		}
		if beats < 450 || beats > 500 { // one in a second
			t.Errorf("%d heartbeats in 500 s", beats)
		}
		beats = 0
		for range 1000 {
			c.ask(t, write("/a"))
			c.Heartbeat()
			pass(quorumTimeout / 20)
			if got := c.QuorumSilence(); got > quorumTimeout/2 {
				t.Fatalf("proved %v ago", got)
			}
		}
		if beats > 0 {
			t.Errorf("%d heartbeats beside writes", beats)
		}
	})
}

// A failed write of the program proves nothing, so it does not stand in for heartbeats.
func TestHeartbeatsAreSentBesideWritesThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		beats := 0
		s.serve = func(p *peer, r *request) bool {
			switch {
			case r.Op == jute.OpMulti:
				beats++
			case r.path() == "/refused":
				p.no(r, jute.CodeBadVersion)
				return true
			}
			return false
		}
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.RequireQuorum()
		c.ask(t, write("/a"))
		for range 1000 {
			c.ask(t, write("/refused"))
			c.Heartbeat()
			pass(quorumTimeout / 20)
			if got := c.QuorumSilence(); got > quorumTimeout/2 {
				t.Fatalf("proved %v ago", got)
			}
		}
		if beats > 510 { // one in a second
			t.Errorf("%d heartbeats in 500 s", beats)
		}
	})
}

// A large answer that arrives piece by piece ends no connection.
func TestHeartbeatWaitsBehindALargeAnswerThatArrives(t *testing.T) {
	const pieces = 60 // each a hundredth of the session timeout later
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.Op != jute.OpGetData {
				return false
			}
			answer := jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: r.Xid, Zxid: p.s.zxid.Add(1)})
			answer = framed(jute.AppendReply(answer, r.Op, &jute.Reply{Data: make([]byte, 1<<20)}))
			for piece := range slices.Chunk(answer, len(answer)/pieces+1) {
				p.raw(piece)
				p.cork(false)
				<-time.After(quorumTimeout / 100)
			}
			return true
		}
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.RequireQuorum()
		done := newAnswers()
		c.submit(t, get("/a", done))
		for range 20 {
			c.Heartbeat()
			pass(quorumTimeout / 20)
		}
		if r := receive(t, done); r.Err != nil {
			t.Error(r.Err)
		}
		empty(t, c.states)
	})
}

// A server that has lost its leader answers what came before the heartbeat, and nothing from then on.
func TestHeartbeatThatIsNotAnsweredEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lone, other := newServer(t), newServer(t)
		lone.serve = func(p *peer, r *request) bool {
			if r.Op == jute.OpMulti {
				lone.mutePings.Store(true)
			}
			return lone.mutePings.Load()
		}
		cfg := dialTo(network{"a:1": lone})
		servers := network{"a:1": lone}
		cfg.Dial = servers.dial
		cfg.SessionTimeout = quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.RequireQuorum()
		servers["a:1"] = other
		start := time.Now()
		for range 20 {
			c.Heartbeat()
			pass(quorumTimeout / 20)
		}
		c.want(t, wire.Disconnected)
		c.want(t, wire.Connected)
		p := other.next(t)
		if p.greeting.SessionID == 0 {
			t.Error("the session was given up")
		}
		if got := c.QuorumSilence(); got > time.Since(start)/2 {
			t.Errorf("proved %v ago, by the server before", got)
		}
	})
}

// A slow server is left alone as long as it answers.
func TestHeartbeatWaitsForAServerThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			<-time.After(quorumTimeout / 10)
			p.cork(false)
			return false
		}
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.RequireQuorum()
		done := newAnswers()
		for range 100 {
			c.submit(t, get("/a", done))
			c.Heartbeat()
			pass(quorumTimeout / 20)
		}
		for range 100 {
			if r := receive(t, done); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	})
}

// A read-only server takes a client's word for a session that the others may have expired.
func TestReadOnlyServerDoesNotKeepTheSessionOfAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answering(t, "ro")
		cfg := dialTo(network{"a:1": s})
		cfg.ReadOnly, cfg.SessionTimeout = true, quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.ask(t, get("/a", nil))
		answered := time.Now()
		s.greet = readOnly
		s.cutAll()
		c.want(t, wire.Disconnected)
		c.want(t, wire.ConnectedReadOnly)
		c.ask(t, get("/a", nil))
		pass(quorumTimeout) // pings, too
		if got, want := c.Silence(), time.Since(answered); got != want {
			t.Errorf("answered %v ago, want %v", got, want)
		}
		s.greet = nil
		s.cutAll()
		c.await(t, wire.Connected)
		if got := c.Silence(); got > time.Second {
			t.Errorf("answered %v ago, after a server with a quorum", got)
		}
	})
}

// A server that takes a fifth of the session timeout for each write keeps the session, with time to spare.
func TestHeartbeatsProveTheSessionToAServerThatWritesSlowly(t *testing.T) {
	for _, percent := range []time.Duration{1, 5, 10, 15, 17, 20, 22} {
		t.Run(fmt.Sprintf("%d percent", percent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.serve = func(p *peer, r *request) bool { // a stall of the disk ends for all that waits
					if r.Op == jute.OpMulti {
						sent := time.Now()
						go func() {
							<-time.After(quorumTimeout*percent/100 - time.Since(sent))
							p.yes(r)
						}()
					}
					return r.Op == jute.OpMulti
				}
				cfg := dialTo(network{"a:1": s})
				cfg.SessionTimeout = quorumTimeout
				c := open(t, cfg)
				c.want(t, wire.Connected)
				c.RequireQuorum()
				for range 1000 {
					c.Heartbeat()
					pass(quorumTimeout / 20)
					if got := c.QuorumSilence(); got > quorumTimeout*85/100 {
						t.Fatalf("proved %v ago", got)
					}
				}
				<-time.After(quorumTimeout)
				empty(t, c.states)
			})
		})
	}
}

// A client that asks without a pause is proved as one that asks rarely.
func TestQuorumClockMovesUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.RequireQuorum()
		c.ask(t, write("/a"))
		for range 100 {
			c.Heartbeat()
			for range 200 {
				c.ask(t, get("/a", nil))
				pass(quorumTimeout / 20 / 200)
			}
			if got := c.QuorumSilence(); got > quorumTimeout/2 {
				t.Fatalf("proved %v ago", got)
			}
		}
	})
}

// A write that was under way when the quorum heartbeats began does not end the time without proof.
func TestQuorumClockDoesNotBeginWithAWriteFromBeforeRely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(*peer, *request) bool { <-time.After(time.Second); return false }
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		pass(quorumTimeout)
		done := newAnswers()
		before := write("/a")
		before.Handler = done
		c.submit(t, before)
		pass(time.Second / 2)
		c.RequireQuorum()
		receive(t, done)
		if got, want := c.QuorumSilence(), c.Silence(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// A large answer over a slow network takes longer than a mute server is given, and bytes of it arrive all the time.
func TestHeartbeatWaitsBehindALargeAnswerThatArrivesSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parts = 10
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.path() != "/large" {
				return false
			}
			answer := framed(append(jute.AppendReplyHeader(nil, jute.ReplyHeader{Xid: r.Xid, Zxid: s.zxid.Add(1)}),
				jute.AppendReply(nil, r.Op, &jute.Reply{Data: make([]byte, 100_000)})...))
			for n := len(answer) / parts; len(answer) > 0; answer = answer[min(n, len(answer)):] {
				<-time.After(quorumTimeout / 2 / parts)
				p.raw(answer[:min(n, len(answer))])
			}
			return true
		}
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		c.RequireQuorum()
		c.ask(t, write("/a"))
		done := newAnswers()
		c.submit(t, get("/large", done))
		for range 30 {
			c.Heartbeat()
			pass(quorumTimeout / 20)
		}
		if r := receive(t, done); r.Err != nil {
			t.Error(r.Err)
		}
	})
}
