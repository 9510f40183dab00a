package wire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// Only what a majority has to accept proves that the leader keeps the session. A sync passes through the leader alone.
func TestQuorumClockMovesWithEveryKindOfWriteAndWithNothingElse(t *testing.T) {
	for op, proves := range map[jute.Op]bool{
		jute.OpCreate: true, jute.OpCreate2: true, jute.OpCreateContainer: true, jute.OpCreateTTL: true,
		jute.OpDelete: true, jute.OpSetData: true, jute.OpSetACL: true, jute.OpMulti: true, jute.OpReconfig: true,
		jute.OpExists: false, jute.OpGetData: false, jute.OpGetACL: false, jute.OpGetChildren2: false, jute.OpSync: false,
	} {
		t.Run(op.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				cfg := dialTo(network{"a:1": s})
				cfg.SessionTimeout = quorumTimeout
				c := open(t, cfg)
				c.want(t, wire.Connected)
				c.RequireQuorum()
				c.ask(t, get("/a", nil))
				pass(leaderDelay)
				if r := c.ask(t, &wire.Request{Request: jute.Request{Op: op, Path: "/a"}}); r.Err != nil {
					t.Fatal(r.Err)
				}
				if got := c.QuorumSilence() == leaderDelay; got != proves {
					t.Errorf("it proves %t, want %t", got, proves)
				}
			})
		})
	}
}

// A server that is slow has heard of a client when the request was sent, at the earliest.
func TestQuorumClockMovesToWhenARequestWasSentNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.serve = func(*peer, *request) bool { <-time.After(time.Second); return false }
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		pass(time.Second / 2)
		sent := time.Now()
		c.ask(t, get("/a", nil))
		pass(leaderDelay)
		c.ask(t, write("/a"))
		if got, want := c.QuorumSilence(), time.Since(sent); got != want {
			t.Errorf("proved %v ago, want %v", got, want)
		}
	})
}

// A read-only server has no leader to ask.
func TestHeartbeatsAreNotSentToAReadOnlyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answering(t, "ro")
		s.greet = readOnly
		beats := 0
		s.serve = func(_ *peer, r *request) bool {
			if r.Op == jute.OpMulti {
				beats++
			}
			return false
		}
		cfg := dialTo(network{"a:1": s})
		cfg.ReadOnly, cfg.SessionTimeout = true, quorumTimeout
		c := open(t, cfg)
		c.want(t, wire.ConnectedReadOnly)
		c.RequireQuorum()
		for range 20 {
			c.Heartbeat()
			pass(quorumTimeout / 20)
		}
		if beats > 0 {
			t.Errorf("%d heartbeats", beats)
		}
	})
}
