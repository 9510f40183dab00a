package wire_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/wire"
)

// wallClock is a wall clock that a test sets.
type wallClock struct{ ahead atomic.Int64 }

func (w *wallClock) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func (w *wallClock) step(d time.Duration) { w.ahead.Add(int64(d)) }

func TestSilenceCountsTheTimeOfASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wall wallClock
		cfg := dialTo(network{"a:1": newServer(t)})
		cfg.Wall = wall.now
		c := open(t, cfg)
		c.want(t, wire.Connected)
		check := func(what string, want time.Duration) {
			t.Helper()
			if got := c.Silence(); got < want || got > want+time.Millisecond {
				t.Errorf("%s: silence of %s, want %s", what, got, want)
			}
		}
		c.ask(t, get("/a", nil))
		check("after an answer", 0)
		<-time.After(time.Second)
		check("a second later", time.Second)
		wall.step(time.Hour)
		check("after a suspension of an hour", time.Hour+time.Second)
		c.ask(t, get("/a", nil))
		check("after the next answer", 0)
		wall.step(-30 * time.Minute)
		check("after the clock was set back", 0)
		<-time.After(time.Second)
		check("a second later", time.Second)
		wall.step(10 * time.Second)
		check("after another suspension", 11*time.Second)
	})
}

// What was sent before a suspension is no sign of life after it.
func TestAnswerToWhatWasSentBeforeASuspensionIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wall wallClock
		s := newServer(t)
		s.serve = func(*peer, *request) bool {
			<-time.After(time.Second)
			return false
		}
		cfg := dialTo(network{"a:1": s})
		cfg.Wall = wall.now
		c := open(t, cfg)
		c.want(t, wire.Connected)
		done := newAnswers()
		c.submit(t, get("/a", done))
		synctest.Wait()
		wall.step(time.Hour)
		receive(t, done)
		if got := c.Silence(); got < time.Hour {
			t.Errorf("silence of %s", got)
		}
		c.ask(t, get("/a", nil))
		if got := c.Silence(); got > 2*time.Second {
			t.Errorf("silence of %s", got)
		}
	})
}
