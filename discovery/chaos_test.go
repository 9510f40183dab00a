package discovery_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
)

// At full length a thousand instances of fifty services go through cuts of the connection, ends of the session, in
// three ways, and stops of all servers that last longer than the session. After each of them every instance is there
// once, in the session of its client, and a cache has the newest data of all. A cut is seen by nobody. After Close
// nothing is left.
func TestRegistrationChaos(t *testing.T) {
	t.Parallel()
	const each = 20
	names, cuts := testenv.Size(10, 1, 50), testenv.Size(50, 5, 200)
	losses, restarts := testenv.Size(12, 3, 50), testenv.Size(3, 1, 10)
	synctest.Test(t, func(t *testing.T) { // in memory: a stop of the servers takes its time
		cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort())
		s := &scene{T: t, ctx: t.Context()}
		start := func() *framework.Client {
			return testclient.Connect(t, cluster.ConnectString(), framework.WithDialer(cluster.DialContext),
				framework.WithSessionTimeout(testenv.SessionTimeout), framework.WithRetryPolicy(retry.Forever(time.Second)))
		}
		s.client, s.reader = start(), start()
		d := discovery.New[string](s.client, base)
		s.must(d.Start())
		var all []order
		for n := range names {
			for i := range each {
				one := orders(fmt.Sprintf("%03d", i), "0")
				one.Name = fmt.Sprintf("service-%02d", n)
				all = append(all, one)
			}
		}
		var registering sync.WaitGroup
		for _, one := range all {
			registering.Go(func() { s.must(d.Register(s.ctx, one)) })
		}
		registering.Wait()

		seen := s.discover(s.reader)
		caches := make([]*discovery.ServiceCache[string], names)
		var gone atomic.Int64
		for n := range caches {
			caches[n] = seen.Cache(fmt.Sprintf("service-%02d", n))
			s.must(caches[n].Start(s.ctx))
			caches[n].AddListener(func(_ context.Context, change discovery.Change[string]) {
				if change.Gone {
					gone.Add(1)
				}
			})
		}
		session, round := int64(0), 0
		check := func(what string) {
			t.Helper()
			testenv.Eventually(t, func() bool {
				leader, err := cluster.Leader()
				if err != nil || s.client.SessionID() == session {
					return false
				}
				for _, one := range all {
					node, ok := leader.Node(pathOf(one))
					if !ok || node.Stat.EphemeralOwner != s.client.SessionID() {
						return false
					}
				}
				for n, c := range caches {
					instances := c.Instances()
					if len(instances) != each {
						return false
					}
					for i, got := range instances {
						if got.Payload != all[n*each+i].Payload {
							return false
						}
					}
				}
				return true
			}, what)
			session = s.client.SessionID()
		}
		// update changes one instance of each service while the client is cut off or has lost its session.
		update := func() {
			round++
			for n := range names {
				one := &all[n*each+round%each]
				one.Payload = fmt.Sprint(round)
				ended, cancel := context.WithCancel(s.ctx)
				cancel()
				_ = d.Update(ended, *one) // it is written as soon as possible
			}
		}
		check("start")
		for range cuts {
			for _, server := range cluster.Servers() {
				server.Faults().Cut(s.client.SessionID())
			}
			<-time.After(100 * time.Millisecond)
		}
		session = 0
		check("cuts")
		if n := gone.Load(); n > 0 {
			t.Errorf("the cache has seen %d instances go while only connections were lost", n)
		}
		for i := range losses {
			what := fmt.Sprintf("loss %d", i)
			switch i % 3 {
			case 0:
				s.must(cluster.ExpireSession(s.client.SessionID()))
			case 1:
				s.must(s.client.Reset()) // the nodes stay for a session timeout
			default: // the client finds its session expired, and the servers keep it until its timeout
				s.must(cluster.KillSession(s.client.SessionID()))
			}
			update()
			check(what)
		}
		for i := range restarts {
			for _, server := range cluster.Servers() {
				s.must(cluster.KillServer(server))
			}
			update()
			<-time.After(3 * testenv.SessionTimeout)
			for _, server := range cluster.Servers() {
				s.must(cluster.RestartServer(server))
			}
			check(fmt.Sprintf("restart %d", i))
		}
		s.must(d.Close(s.ctx))
		leader, err := cluster.Leader()
		s.must(err)
		for _, one := range all {
			if _, ok := leader.Node(pathOf(one)); ok {
				t.Errorf("%s is left", pathOf(one))
			}
		}
	})
}
