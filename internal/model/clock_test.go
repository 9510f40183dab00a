package model

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	for _, m := range []struct {
		*heartbeat
		broken bool
	}{
		{&heartbeat{halfTick: 2, delay: 0, margin: 2, horizon: 7}, false},
		{&heartbeat{halfTick: 2, delay: 1, margin: 3, horizon: 7}, false},
		{&heartbeat{halfTick: 1, delay: 0, margin: 1, horizon: 6}, false},
		{&heartbeat{halfTick: 2, delay: 1, margin: 2, horizon: 7}, true},
		{&heartbeat{halfTick: 2, delay: 0, margin: 1, horizon: 7}, true},
		{&heartbeat{halfTick: 2, delay: 0, margin: 2, horizon: 7, rule: anyAnswer}, true},
		{&heartbeat{halfTick: 2, delay: 0, margin: 2, horizon: 7, rule: ownSend}, true},
	} {
		t0 := time.Now()
		r := explore(m)
		t.Log(*m.heartbeat, r, time.Since(t0))
		if (r.violation != "") != m.broken {
			t.Error("unexpected")
		}
	}
}
