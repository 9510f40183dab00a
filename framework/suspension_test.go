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

func TestSuspensionEndsSessionAtOnce(t *testing.T) {
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
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				var machine suspend
				client, recorded := connectRecorded(t, server.ConnectString(), framework.WithDialer(server.DialContext),
					framework.WithSessionTimeout(timeout), framework.WithWallClock(machine.now))
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

// No session that is over is reported alive, also before the clock is looked at.
func TestSuspensionSessionIsNotReportedAlive(t *testing.T) {
	for name, of := range map[string]func(client *framework.Client, before *framework.Session) *framework.Session{
		"asked for":  func(client *framework.Client, _ *framework.Session) *framework.Session { return client.Session() },
		"remembered": func(_ *framework.Client, before *framework.Session) *framework.Session { return before },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				var machine suspend
				client := connectClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
					framework.WithWallClock(machine.now))
				before := client.Session()
				machine.step(time.Hour)
				if of(client, before).Context().Err() == nil {
					t.Error("the session lives")
				}
			})
		})
	}
}
