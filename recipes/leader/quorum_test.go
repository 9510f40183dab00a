package leader_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/leader"
)

// cutOff is a latch whose server is cut off from the others at some moment of an election. The server goes on answering
// pings and reads, while the others end the session and the next latch leads.
type cutOff struct {
	t           *testing.T
	ensemble    *testenv.Ensemble
	server      testenv.Place // that is cut off
	path        string
	majority    *framework.Client // of a server on the other side
	latch, next *leader.LeaderLatch
	tenures     *testenv.Tenures
}

const cutOffSession = time.Second

// cutOffMoments are when the server is cut off. Each starts both latches.
var cutOffMoments = map[string]func(c *cutOff){
	"before the create": func(c *cutOff) {
		cut := c.when(c.path+"/**", "create", "create2")
		must(c.t, c.latch.Start())
		cut()
		must(c.t, c.next.Start())
	},
	"between create and list": func(c *cutOff) {
		cut := c.when(c.path, "getChildren", "getChildren2")
		must(c.t, c.latch.Start())
		cut()
		must(c.t, c.next.Start())
	},
	"between list and watch": func(c *cutOff) {
		cut := c.when(c.path+"/**", "getData", "exists", "addWatch")
		must(c.t, c.latch.Start())
		cut()
		must(c.t, c.next.Start())
	},
	"while it waits": func(c *cutOff) {
		first := c.first()
		must(c.t, c.latch.Start())
		c.awaitLine(2)
		c.ensemble.CutOff(c.server)
		must(c.t, c.next.Start())
		must(c.t, first.Close())
	},
	"while it is elected": func(c *cutOff) {
		first := c.first()
		must(c.t, c.latch.Start())
		c.awaitLine(2)
		must(c.t, c.next.Start())
		c.awaitLine(3)
		cut := c.when(c.path, "getChildren", "getChildren2")
		must(c.t, first.Close())
		cut()
	},
	"just elected": func(c *cutOff) {
		must(c.t, c.latch.Start())
		await(c.t, c.latch)
		c.ensemble.CutOff(c.server)
		must(c.t, c.next.Start())
	},
	"while it leads": func(c *cutOff) {
		must(c.t, c.latch.Start())
		await(c.t, c.latch)
		must(c.t, c.next.Start())
		c.awaitLine(2)
		time.Sleep(3 * cutOffSession / 4)
		c.ensemble.CutOff(c.server)
	},
	"while it closes": func(c *cutOff) {
		must(c.t, c.latch.Start())
		await(c.t, c.latch)
		must(c.t, c.next.Start())
		c.awaitLine(2)
		cut := c.when(c.path+"/**", "delete")
		c.tenures.Go(func() { _ = c.latch.Close() }) // no server answers
		cut()
	},
}

// first starts a latch on the side of the next one, and waits until it leads.
func (c *cutOff) first() *leader.LeaderLatch {
	c.t.Helper()
	first := c.newLatch("first", c.majority)
	must(c.t, first.Start())
	await(c.t, first)
	return first
}

// newLatch returns a latch whose leaderships are noted.
func (c *cutOff) newLatch(who string, client *framework.Client) *leader.LeaderLatch {
	latch := leader.NewLeaderLatch(client, c.path, leader.WithID(who))
	latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
		if ev.IsLeader {
			c.tenures.Add(ev.Leadership.Context(), who)
		}
	})
	c.t.Cleanup(func() { must(c.t, latch.Close()) })
	return latch
}

// when has the server cut off when a request reaches it, which it gets behind the cut.
func (c *cutOff) when(path string, ops ...string) (cut func()) {
	c.t.Helper()
	held := c.server.Faults().Add(curatortest.Rule{Ops: ops, Path: path, Count: 1, Action: curatortest.HoldRequest})
	must(c.t, held.Err())
	return func() {
		c.t.Helper()
		must(c.t, held.Wait(testenv.Context(c.t)))
		c.ensemble.CutOff(c.server)
		held.Release()
	}
}

// awaitLine waits until so many take part, as the server knows that is not cut off.
func (c *cutOff) awaitLine(want int) {
	c.t.Helper()
	awaitParticipants(c.t, c.next, want)
}

// TestLatchServerPartitionedLosesLeadershipInTime cuts off a follower, and the leader of the ensemble, at every moment
// of an election. The leadership of the latch ends before the next one leads.
func TestLatchServerPartitionedLosesLeadershipInTime(t *testing.T) {
	t.Parallel()
	standard, session := framework.StandardErrorPolicy{}, framework.SessionErrorPolicy{}
	for i, tt := range []struct {
		name     string
		policy   framework.ErrorPolicy
		isLeader bool // of the ensemble
	}{
		{"follower, standard policy", standard, false},
		{"leader, session policy", session, true},
		{"follower, session policy", session, false},
		{"leader, standard policy", standard, true},
	} {
		if i >= testenv.Size(4, 2, 4) { // in real time they take minutes
			break
		}
		t.Run(tt.name, func(t *testing.T) {
			testenv.EachOnEnsemble(t, slices.Sorted(maps.Keys(cutOffMoments)),
				func(t *testing.T, e *testenv.Ensemble, moment string) {
					cut, other := e.Followers[0], e.Leader
					if tt.isLeader {
						cut, other = other, cut
					}
					testCutOff(t, e, cut, other, tt.policy, cutOffMoments[moment])
				})
		})
	}
}

func testCutOff(
	t *testing.T, e *testenv.Ensemble, cut, other testenv.Place, policy framework.ErrorPolicy, moment func(*cutOff),
) {
	t.Helper()
	connect := func(place testenv.Place) *framework.Client {
		return newClient(t, place.Addr(), framework.WithSessionTimeout(cutOffSession),
			framework.WithDialer(place.DialContext), framework.WithConnectionStateErrorPolicy(policy))
	}
	missed := func(_, _ time.Time) time.Duration { return 0 } // time is that of a bubble
	if testenv.Real() {
		pulse := chaos.NewPulse()
		defer pulse.Stop()
		missed = pulse.Missed
	}
	c := &cutOff{
		t: t, ensemble: e, server: cut, path: electionPath + "-" + strings.NewReplacer("/", "-").Replace(t.Name()),
		majority: connect(other), tenures: testenv.NewTenures(),
	}
	client := connect(cut)
	_, err := c.majority.Create().CreatingParentsIfNeeded().ForPath(t.Context(), c.path, nil)
	must(t, err)
	must(t, client.Sync().ForPath(t.Context(), c.path))
	c.latch, c.next = c.newLatch("latch", client), c.newLatch("next", c.majority)
	moment(c)
	await(t, c.next)
	time.Sleep(time.Second) // while it leads
	c.tenures.End()
	c.tenures.Check(t, missed)
}
