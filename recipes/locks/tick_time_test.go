package locks_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
)

// TestHoldTickAsLongAsSessionEndsBeforeNextGrant has servers with a small minSessionTimeout, whose tick is as long as a
// session, and clients that know the tick. A follower is cut off at each moment of a tick.
func TestHoldTickAsLongAsSessionEndsBeforeNextGrant(t *testing.T) {
	const session, tick = time.Second, 1020 * time.Millisecond
	for phase := time.Duration(0); phase < tick; phase += tick / 50 {
		synctest.Test(t, func(t *testing.T) {
			cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort(), curatortest.WithTickTime(tick),
				curatortest.WithSessionTimeouts(session/2, time.Minute), curatortest.WithSyncLimit(25))
			leader, err := cluster.Leader()
			if err != nil {
				t.Fatal(err)
			}
			servers := cluster.Servers()
			at := slices.IndexFunc(servers, func(s *curatortest.Server) bool { return s != leader })
			follower, others := servers[at], slices.Delete(slices.Clone(servers), at, at+1)
			connect := func(s *curatortest.Server) *framework.Client {
				client, err := framework.New(s.Addr(), framework.WithDialer(s.DialContext),
					framework.WithSessionTimeout(session), framework.WithTickTime(tick))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = client.Close() })
				if err := client.Start(); err != nil {
					t.Fatal(err)
				}
				return client
			}
			first, err := locks.NewInterProcessMutex(connect(follower), "/lock").Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan time.Time, 1)
			context.AfterFunc(first.Context(), func() { ended <- time.Now() })
			next := locks.NewInterProcessMutex(connect(leader), "/lock")
			granted := make(chan time.Time, 1)
			go func() {
				if hold, err := next.Acquire(t.Context()); err == nil {
					granted <- time.Now()
					<-t.Context().Done()
					_ = hold.Release(context.WithoutCancel(t.Context()))
				}
			}()
			<-time.After(3*tick + phase)
			select {
			case <-ended:
				t.Fatal("the hold did not last")
			default:
			}
			heal := cluster.Partition(others)
			defer heal()
			end, begin := receiveTime(t, "the hold does not end", ended),
				receiveTime(t, "the next is not granted the lock", granted)
			if end.After(begin) {
				t.Errorf("two hold for %v, cut off %v after a tick", end.Sub(begin), phase)
			}
		})
	}
}

func receiveTime(t *testing.T, what string, c <-chan time.Time) (at time.Time) {
	t.Helper()
	select {
	case at = <-c:
	case <-time.After(time.Minute):
		t.Fatal(what)
	}
	return at
}
