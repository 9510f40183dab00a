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

// cutOff is an elector whose server is cut off from the others at some moment of an election. The server goes on
// answering pings and reads, while the others end the session and the next elector leads.
type cutOff struct {
	t          *testing.T
	ensemble   *testenv.Ensemble
	server     testenv.Place // that is cut off
	path       string
	majority   *framework.Client // of a server on the other side
	newElector newElector
	own, next  *elector
	grants     *testenv.Grants
}

// elector is a latch or a selector.
type elector struct {
	participant
	led chan struct{} // receives each beginning of leadership
}

// participant is what a latch and a selector have in common.
type participant interface {
	Start() error
	Close() error
	Participants(ctx context.Context) ([]leader.Participant, error)
}

type newElector func(c *cutOff, who string, client *framework.Client) *elector

const cutOffSession = time.Second

// cutOffMoments are when the server is cut off. Each starts both electors.
var cutOffMoments = map[string]func(c *cutOff){
	"before the create": func(c *cutOff) {
		cut := c.when(c.path+"/**", "create", "create2")
		must(c.t, c.own.Start())
		cut()
		must(c.t, c.next.Start())
	},
	"between create and list": func(c *cutOff) {
		cut := c.when(c.path, "getChildren", "getChildren2")
		must(c.t, c.own.Start())
		cut()
		must(c.t, c.next.Start())
	},
	"between list and watch": func(c *cutOff) {
		cut := c.when(c.path+"/**", "getData", "exists", "addWatch")
		must(c.t, c.own.Start())
		cut()
		must(c.t, c.next.Start())
	},
	"while it waits": func(c *cutOff) {
		first := c.first()
		must(c.t, c.own.Start())
		c.awaitLine(2)
		c.ensemble.CutOff(c.server)
		must(c.t, c.next.Start())
		must(c.t, first.Close())
	},
	"while it is elected": func(c *cutOff) {
		first := c.first()
		must(c.t, c.own.Start())
		c.awaitLine(2)
		must(c.t, c.next.Start())
		c.awaitLine(3)
		cut := c.when(c.path, "getChildren", "getChildren2")
		must(c.t, first.Close())
		cut()
	},
	"just elected": func(c *cutOff) {
		must(c.t, c.own.Start())
		c.await(c.own)
		c.ensemble.CutOff(c.server)
		must(c.t, c.next.Start())
	},
	"while it leads": func(c *cutOff) {
		must(c.t, c.own.Start())
		c.await(c.own)
		must(c.t, c.next.Start())
		c.awaitLine(2)
		time.Sleep(3 * cutOffSession / 4)
		c.ensemble.CutOff(c.server)
	},
	"while it closes": func(c *cutOff) {
		must(c.t, c.own.Start())
		c.await(c.own)
		must(c.t, c.next.Start())
		c.awaitLine(2)
		cut := c.when(c.path+"/**", "delete")
		c.grants.Go(func() { _ = c.own.Close() }) // no server answers
		cut()
	},
}

// first starts an elector on the side of the next one, and waits until it leads.
func (c *cutOff) first() *elector {
	c.t.Helper()
	first := c.elector("first", c.majority)
	must(c.t, first.Start())
	c.await(first)
	return first
}

// elector returns an elector that is closed at the end of the test.
func (c *cutOff) elector(who string, client *framework.Client) *elector {
	x := c.newElector(c, who, client)
	c.t.Cleanup(func() { must(c.t, x.Close()) })
	return x
}

// led records a leadership until ctx ends.
func (c *cutOff) led(ctx context.Context, who string, led chan<- struct{}) {
	c.grants.Add(ctx, who)
	led <- struct{}{}
}

func newCutOffLatch(c *cutOff, who string, client *framework.Client) *elector {
	led := make(chan struct{}, 100)
	latch := leader.NewLeaderLatch(client, c.path, leader.WithID(who))
	latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
		if ev.IsLeader {
			c.led(ev.Leadership.Context(), who, led)
		}
	})
	return &elector{latch, led}
}

func newCutOffSelector(c *cutOff, who string, client *framework.Client) *elector {
	led := make(chan struct{}, 100)
	selector := leader.NewLeaderSelector(client, c.path, func(ctx context.Context) error {
		c.led(ctx, who, led)
		<-ctx.Done()
		return nil
	}, leader.WithID(who))
	return &elector{selector, led}
}

// await waits until an elector leads.
func (c *cutOff) await(x *elector) {
	c.t.Helper()
	select {
	case <-x.led:
	case <-testenv.Context(c.t).Done():
		c.t.Fatal("it does not lead")
	}
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

// TestLeaderServerPartitionedLosesLeadershipInTime cuts off a follower, and the leader of the ensemble, at every moment
// of an election. The leadership of a latch or a selector ends before the next one leads.
func TestLeaderServerPartitionedLosesLeadershipInTime(t *testing.T) {
	t.Parallel()
	standard, session := framework.StandardErrorPolicy{}, framework.SessionErrorPolicy{}
	for i, tt := range []struct {
		name     string
		policy   framework.ErrorPolicy
		isLeader bool // of the ensemble
		new      newElector
	}{
		{"latch, follower, standard policy", standard, false, newCutOffLatch},
		{"selector, follower, session policy", session, false, newCutOffSelector},
		{"selector, leader, standard policy", standard, true, newCutOffSelector},
		{"latch, leader, session policy", session, true, newCutOffLatch},
		{"latch, follower, session policy", session, false, newCutOffLatch},
		{"latch, leader, standard policy", standard, true, newCutOffLatch},
	} {
		if i >= testenv.Size(6, 2, 6) { // in real time they take minutes
			break
		}
		t.Run(tt.name, func(t *testing.T) {
			testenv.EachOnEnsemble(t, slices.Sorted(maps.Keys(cutOffMoments)),
				func(t *testing.T, e *testenv.Ensemble, moment string) {
					cut, other := e.Followers[0], e.Leader
					if tt.isLeader {
						cut, other = other, cut
					}
					testCutOff(t, e, cut, other, tt.policy, tt.new, cutOffMoments[moment])
				})
		})
	}
}

func testCutOff(
	t *testing.T, e *testenv.Ensemble, cut, other testenv.Place, policy framework.ErrorPolicy, newElector newElector,
	moment func(*cutOff),
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
		majority: connect(other), newElector: newElector, grants: testenv.NewGrants(),
	}
	client := connect(cut)
	_, err := c.majority.Create().CreatingParentsIfNeeded().Idempotent().ForPath(t.Context(), c.path, nil)
	must(t, err)
	must(t, client.Sync().ForPath(t.Context(), c.path))
	c.own, c.next = c.elector("own", client), c.elector("next", c.majority)
	moment(c)
	c.await(c.next)
	time.Sleep(time.Second) // while it leads
	c.grants.End()
	c.grants.Check(t, missed)
}
