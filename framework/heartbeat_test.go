package framework_test

import (
	"cmp"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// countHeartbeats returns how many heartbeats a server was sent.
func countHeartbeats(server *curatortest.Server) (n int) {
	for _, e := range server.Trace() {
		if e.Op == "heartbeat" && !e.Reply {
			n++
		}
	}
	return n
}

func TestHeartbeatsAreSentWhileRequested(t *testing.T) {
	const timeout = 20 * time.Second
	never := []framework.Option{framework.WithoutQuorumHeartbeats()}
	for name, tt := range map[string]struct {
		opts                  []framework.Option
		before, during, after bool
	}{
		"on demand": {nil, false, true, false},
		"never":     {never, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				client := connectClient(t, server.ConnectString(), append(tt.opts,
					framework.WithDialer(server.DialContext), framework.WithSessionTimeout(timeout))...)
				check := func(when string, want bool) {
					t.Helper()
					synctest.Wait() // one may be on its way
					server.Faults().ResetTrace()
					time.Sleep(10 * timeout)
					synctest.Wait()
					n, least, most := countHeartbeats(server), 0, 0
					if want {
						least, most = 90, 105
					}
					if n < least || n > most {
						t.Errorf("%s: %d heartbeats in 10 session timeouts, want %d to %d", when, n, least, most)
					}
				}
				check("before", tt.before)
				one, other := client.QuorumHeartbeats(), client.QuorumHeartbeats()
				check("while two rely on it", tt.during)
				one()
				one()
				check("while one relies on it", tt.during)
				other()
				check("after", tt.after)
			})
		})
	}
}

// A server that answers reads and pings, and no writes, keeps the session of a client that nothing relies on.
func TestHeartbeatsEndSessionWithoutQuorum(t *testing.T) {
	const timeout = 20 * time.Second
	for name, again := range map[string]time.Duration{
		"not relied on": 0, "relied on": 10 * timeout, "relied on again and again": timeout / 30,
	} {
		relies := again > 0
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				client := connectClient(t, server.ConnectString(),
					framework.WithDialer(server.DialContext), framework.WithSessionTimeout(timeout))
				session := client.Session()
				if relies {
					defer client.QuorumHeartbeats()()
				}
				if _, err := client.Create().ForPath(t.Context(), "/a", nil); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				server.Faults().Add(curatortest.Rule{
					Ops: []string{"heartbeat"}, Action: curatortest.DropReply, MayMiss: !relies,
				})
				refuse := server.Faults().Add(curatortest.Rule{
					Ops: []string{"connect"}, Action: curatortest.CutBefore, MayMiss: !relies,
				})
				for session.Context().Err() == nil && time.Since(began) < 10*timeout {
					select {
					case <-session.Context().Done():
					case <-time.After(cmp.Or(again, 10*timeout)):
						if relies {
							defer client.QuorumHeartbeats()()
						}
					}
				}
				switch lasted := time.Since(began); {
				case relies && lasted > timeout:
					t.Errorf("the session lasted for %v", lasted)
				case !relies && lasted < 10*timeout:
					t.Errorf("the session was lost after %v", lasted)
				}
				refuse.Remove()
			})
		})
	}
}

func TestTickTimeInvalidFails(t *testing.T) {
	if _, err := framework.New("a:1", framework.WithTickTime(-time.Second)); err == nil {
		t.Error("no error")
	}
}

// A write long before the quorum heartbeats begin proves nothing.
func TestHeartbeatsRequestedAgainLateKeepSession(t *testing.T) {
	const timeout = 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client := connectClient(t, server.ConnectString(),
			framework.WithDialer(server.DialContext), framework.WithSessionTimeout(timeout))
		session := client.Session()
		for range 3 {
			stop := client.QuorumHeartbeats()
			if _, err := client.Create().Idempotent().ForPath(t.Context(), "/a", nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(timeout)
			stop()
			time.Sleep(10 * timeout)
		}
		if err := session.Context().Err(); err != nil {
			t.Error(err)
		}
	})
}

// A connection may come back when the next heartbeat in turn would be too late.
func TestHeartbeatsAreSentAtOnceOnNextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client := connectClient(t, server.ConnectString(),
			framework.WithDialer(server.DialContext), framework.WithSessionTimeout(20*time.Second))
		defer client.QuorumHeartbeats()()
		time.Sleep(time.Minute)
		seen := record(client)
		connect := server.Faults().RefuseConnects()
		server.Faults().CutAll()
		seen.want(t, framework.Suspended)
		server.Faults().ResetTrace()
		connect()
		seen.want(t, framework.Reconnected)
		synctest.Wait()
		if n := countHeartbeats(server); n != 1 {
			t.Errorf("%d heartbeats", n)
		}
	})
}

// A program may write again and again and be refused each time: what is refused proves nothing, and must not stand in
// for the heartbeats.
func TestHeartbeatsKeepSessionWhileWritesAreRefused(t *testing.T) {
	const timeout = 4 * time.Second
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, connect string, dial framework.Option) {
		client := connectClient(t, connect, dial, framework.WithSessionTimeout(timeout))
		session := client.Session()
		defer client.QuorumHeartbeats()()
		if _, err := client.Create().ForPath(t.Context(), "/there", nil); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < 2*timeout; {
			if err := client.Delete().ForPath(t.Context(), "/none"); !errors.Is(err, zk.ErrNoNode) {
				t.Fatal(err)
			}
			select {
			case <-session.Context().Done():
				t.Fatalf("the session was lost after %v", time.Since(began))
			case <-time.After(timeout / 20):
			}
		}
	})
}
