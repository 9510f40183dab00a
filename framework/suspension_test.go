package framework_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

// suspend suspends a machine for some time: the wall clock goes on, timers and the monotonic clock do not.
type suspend struct{ ahead atomic.Int64 }

func (s *suspend) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

func (s *suspend) step(d time.Duration) { s.ahead.Add(int64(d)) }

func TestSessionEndsAtOnceAfterASuspension(t *testing.T) {
	const timeout = 30 * time.Second
	tests := map[string]struct {
		suspended time.Duration
		lost      bool
	}{
		"longer than the session timeout":  {time.Hour, true},
		"shorter than the session timeout": {timeout / 2, false},
		"a step of the clock":              {5 * time.Millisecond, false},
		"a clock that is set back":         {-time.Hour, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.InMemory())
				var machine suspend
				client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
					framework.WithSessionTimeout(timeout), framework.WithWallClock(machine.now))
				recorded := record(client)
				start(t, client)
				recorded.want(t, connected)
				session := client.Session()
				<-time.After(5 * time.Second)
				machine.step(tt.suspended)
				<-time.After(timeout / 20)
				synctest.Wait()
				if lost := session.Context().Err() != nil; lost != tt.lost {
					t.Errorf("the session is lost: %v", lost)
				}
				if tt.lost {
					recorded.want(t, suspended, lost, reconnected)
				}
				<-time.After(10 * timeout)
				recorded.end(t, client)
			})
		})
	}
}

// No session that is over is reported, also before the clock is looked at.
func TestSessionIsNotReportedAliveAfterASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.InMemory())
		var machine suspend
		client := connectClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
			framework.WithWallClock(machine.now))
		machine.step(time.Hour)
		if client.Session().Context().Err() == nil {
			t.Error("the session lives")
		}
	})
}
