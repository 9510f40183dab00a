package simulation_test

import (
	"context"
	"testing"
	"time"
)

func TestJudgeOfRevocation(t *testing.T) {
	for name, tt := range map[string]struct {
		plain     bool // the lock is not revocable
		before    bool // the request comes before the grant
		requested bool
		fails     bool // the request, with an unknown outcome
		received  int
		ends      bool // the hold
		lostLock  bool
		want      string
	}{
		"received":                     {requested: true, received: 1},
		"requested before the grant":   {requested: true, received: 1, before: true},
		"received twice":               {requested: true, received: 2, want: "asked to release again"},
		"received without a request":   {received: 1, want: "asked to release by nobody"},
		"not received":                 {requested: true, want: "not asked to release in 1m0s"},
		"not received after the grant": {requested: true, before: true, want: "not asked to release in 1m0s"},
		"not received in time":         {requested: true, ends: true},
		"not received, node deleted":   {requested: true, lostLock: true},
		"lost":                         {requested: true, fails: true},
		"lost, and received":           {requested: true, fails: true, received: 1},
		"no requests wanted":           {requested: true, plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := newResource("/r")
				if err := createNode(w, "/r/a"); err != nil {
					t.Fatal(err)
				}
				c := &claim{
					resource: r, process: &process{world: w}, path: "/r/a", context: ctx, revocable: !tt.plain,
				}
				request := func() {
					if tt.requested {
						w.judge.requesting(r, c.path)
					}
					if tt.requested && !tt.fails {
						w.judge.requested(r, c.path)
					}
				}
				if tt.before {
					request()
				}
				w.judge.granted(c)
				if !tt.before {
					request()
				}
				for range tt.received {
					w.judge.receivedRequest(r, c.path)
				}
				if tt.lostLock {
					w.judge.taken(r, c.path, c.process, 0)
				}
				if tt.ends {
					cancel()
				}
				<-time.After(2 * revocationLimit)
				checkViolation(t, w, tt.want)
			})
		})
	}
}
