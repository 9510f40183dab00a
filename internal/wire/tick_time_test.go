package wire_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// Servers with a small minSessionTimeout have sessions that are shorter than two ticks. Their leader hears of a session
// up to half a tick late all the same.
func TestQuorumClockBelievesATickTimeOfMoreThanHalfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tick = quorumTimeout * 4 / 5
		s := newServer(t)
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout, cfg.TickTime = quorumTimeout, tick
		c := open(t, cfg)
		pass(time.Second)
		c.ask(t, get("/a", nil))
		requested := time.Now()
		pass(tick/2 - time.Second)
		c.ask(t, write("/a"))
		if got, least := c.QuorumSilence(), time.Since(requested)+1; got < least {
			t.Errorf("proved %v ago, by a read that may reach the leader %v from now", got, tick/2-time.Since(requested))
		}
	})
}
