package locks_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/locks"
)

// cutOff is a client whose server is cut off from the others at some moment of what the client does with a lock. The
// server goes on answering pings and reads, while the others end the session and give the lock to the next client.
type cutOff struct {
	t            *testing.T
	ensemble     *testenv.Ensemble
	server       testenv.Place // that is cut off
	path         string
	client, next *framework.Client
	grants       *testenv.Grants
	phase        time.Duration // how long after the other cases: pings and heartbeats come at another time
}

const (
	cutOffSession = time.Second
	// keepLock is for how long the next client holds the lock at least.
	keepLock = time.Second
)

// cutOffMoments are when the server is cut off. Each acquires the lock with the client and then with the next one, and
// returns what that one is granted.
var cutOffMoments = map[string]func(c *cutOff) (next <-chan *locks.Hold){
	"before the create": func(c *cutOff) <-chan *locks.Hold {
		cut := c.when(c.path+"/**", "create", "create2")
		c.acquire("client", c.client)
		cut()
		return c.acquire("next", c.next)
	},
	"between create and list": func(c *cutOff) <-chan *locks.Hold {
		cut := c.when(c.path, "getChildren", "getChildren2")
		c.acquire("client", c.client)
		cut()
		return c.acquire("next", c.next)
	},
	"while it waits": func(c *cutOff) <-chan *locks.Hold {
		first := c.await(c.acquire("first", c.next))
		c.acquire("client", c.client)
		c.awaitLine(2)
		c.ensemble.CutOff(c.server)
		next := c.acquire("next", c.next)
		release(c.t, first)
		return next
	},
	"while it waits, and is granted the lock": func(c *cutOff) <-chan *locks.Hold {
		first := c.await(c.acquire("first", c.next))
		c.acquire("client", c.client)
		c.awaitLine(2)
		next := c.acquire("next", c.next)
		c.awaitLine(3)
		cut := c.when(c.path, "getChildren", "getChildren2")
		release(c.t, first)
		cut()
		return next
	},
	"just granted": func(c *cutOff) <-chan *locks.Hold {
		c.await(c.acquire("client", c.client))
		c.ensemble.CutOff(c.server)
		return c.acquire("next", c.next)
	},
	"while it holds": func(c *cutOff) <-chan *locks.Hold {
		c.await(c.acquire("client", c.client))
		next := c.acquire("next", c.next)
		c.awaitLine(2)
		time.Sleep(3*cutOffSession/4 + c.phase)
		c.ensemble.CutOff(c.server)
		return next
	},
	"while it releases": func(c *cutOff) <-chan *locks.Hold {
		hold := c.await(c.acquire("client", c.client))
		next := c.acquire("next", c.next)
		c.awaitLine(2)
		cut := c.when(c.path+"/**", "delete")
		c.grants.Go(func() { _ = hold.Release(c.grants.Context()) }) // no server answers
		cut()
		return next
	},
}

// when has the server cut off when a request reaches it, which it gets behind the cut.
func (c *cutOff) when(path string, ops ...string) (cut func()) {
	c.t.Helper()
	held := c.server.Faults().Add(curatortest.Rule{Ops: ops, Path: path, Count: 1, Action: curatortest.HoldRequest})
	if err := held.Err(); err != nil {
		c.t.Fatal(err)
	}
	return func() {
		c.t.Helper()
		if err := held.Wait(testenv.Context(c.t)); err != nil {
			c.t.Fatal(err)
		}
		c.ensemble.CutOff(c.server)
		held.Release()
	}
}

// acquire acquires the lock in the background, until the end of the test.
func (c *cutOff) acquire(who string, client *framework.Client) <-chan *locks.Hold {
	granted := make(chan *locks.Hold, 1)
	c.grants.Go(func() {
		hold, err := locks.NewInterProcessMutex(client, c.path).Acquire(c.grants.Context())
		if err != nil {
			return // the test is over
		}
		c.grants.Add(hold.Context(), who)
		granted <- hold
	})
	return granted
}

func (c *cutOff) await(granted <-chan *locks.Hold) *locks.Hold {
	c.t.Helper()
	select {
	case hold := <-granted:
		return hold
	case <-testenv.Context(c.t).Done():
		c.t.Fatal("the lock is not granted")
		return nil
	}
}

// awaitLine waits until so many stand in line, as the server knows that is not cut off.
func (c *cutOff) awaitLine(want int) {
	c.t.Helper()
	mu := locks.NewInterProcessMutex(c.next, c.path)
	testenv.Eventually(c.t, func() bool {
		nodes, err := mu.ParticipantNodes(testenv.Context(c.t))
		return err == nil && len(nodes) == want
	}, "contenders in line")
}

// cutOffPhases are how much later a case may begin. In real time there is one.
func cutOffPhases() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		const phases = 7
		for i := range time.Duration(phases) {
			if !yield(i*testenv.EnsembleTick/phases) || testenv.Real() {
				return
			}
		}
	}
}

// TestHoldServerPartitionedIsLostInTime cuts off a follower, and the leader, at every moment of an acquire, a hold and
// a release. The context of the client's hold ends before the next client is granted the lock.
func TestHoldServerPartitionedIsLostInTime(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"follower", "leader"} {
		t.Run(server, func(t *testing.T) {
			var cases []string
			moments, phases := map[string]string{}, map[string]time.Duration{}
			for _, moment := range slices.Sorted(maps.Keys(cutOffMoments)) {
				for phase := range cutOffPhases() {
					name := fmt.Sprintf("%s, %v later", moment, phase.Truncate(time.Millisecond))
					cases, moments[name], phases[name] = append(cases, name), moment, phase
				}
			}
			testenv.EachOnEnsemble(t, cases, func(t *testing.T, e *testenv.Ensemble, name string) {
				cut, other := e.Followers[0], e.Leader
				if server == "leader" {
					cut, other = other, cut
				}
				testCutOff(t, e, cut, other, cutOffMoments[moments[name]], phases[name])
			})
		})
	}
}

func testCutOff(
	t *testing.T, e *testenv.Ensemble, cut, other testenv.Place, moment func(*cutOff) <-chan *locks.Hold,
	phase time.Duration,
) {
	t.Helper()
	connect := func(place testenv.Place) *framework.Client {
		return newClient(t, place.Addr(),
			framework.WithSessionTimeout(cutOffSession), framework.WithDialer(place.DialContext))
	}
	missed := func(_, _ time.Time) time.Duration { return 0 } // time is that of a bubble
	if testenv.Real() {
		pulse := chaos.NewPulse()
		defer pulse.Stop()
		missed = pulse.Missed
	}
	c := &cutOff{
		t: t, ensemble: e, server: cut, path: lockPath + "-" + strings.ReplaceAll(t.Name(), "/", "-"),
		client: connect(cut), next: connect(other),
		grants: testenv.NewGrants(), phase: phase,
	}
	line := c.next.Create().CreatingParentsIfNeeded().Idempotent() // its answer may be lost on a busy machine
	if _, err := line.ForPath(t.Context(), c.path, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Sync().ForPath(t.Context(), c.path); err != nil {
		t.Fatal(err)
	}
	time.Sleep(phase)
	hold := c.await(moment(c))
	select {
	case <-time.After(keepLock):
	case <-hold.Context().Done():
	}
	c.grants.End()
	c.grants.Check(t, missed)
}

// Writes that the servers refuse keep no heartbeat from being sent: a process that tries something again and again
// keeps its lock.
func TestHoldWritesRefusedLasts(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		const timeout = 10 * time.Second
		client := newClient(t, place.Addr()+chroot,
			framework.WithSessionTimeout(timeout), framework.WithDialer(place.DialContext))
		hold := acquire(t, testenv.Context(t), locks.NewInterProcessMutex(client, lockPath))
		for end := time.After(2 * timeout); ; {
			if _, err := client.Create().ForPath(testenv.Context(t), lockPath, nil); !errors.Is(err, zk.ErrNodeExists) {
				t.Fatalf("create: %v", err)
			}
			select {
			case <-time.After(timeout / 40):
			case <-hold.Context().Done():
				t.Fatal(context.Cause(hold.Context()))
			case <-end:
				release(t, hold)
				return
			}
		}
	})
}

// A client whose holds have ended, however they did, sends no heartbeats.
func TestQuorumHeartbeatsEndWithHold(t *testing.T) {
	t.Parallel()
	for kind, take := range kindsOfHold() {
		for end, given := range map[string]bool{"released": true, "lost": false} {
			t.Run(kind+", "+end, func(t *testing.T) {
				t.Parallel()
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					const timeout = 4 * time.Second
					client := newClient(t, place.Addr()+chroot,
						framework.WithSessionTimeout(timeout), framework.WithDialer(place.DialContext))
					ctx := testenv.Context(t)
					hold, err := take(ctx, client)
					if err != nil {
						t.Fatal(err)
					}
					if !given {
						deleteNode(t, client, hold.Path())
						wantLost(t, hold)
					} else if err := hold.giveBack(ctx); err != nil {
						t.Fatal(err)
					}
					if !given && kind == "multi lock" { // its other parts are held until it is released
						return
					}
					wantHeartbeats(t, place, timeout, 0)
				})
			})
		}
	}
}

// wantHeartbeats fails unless so many heartbeats come in a session timeout.
func wantHeartbeats(tb testing.TB, place testenv.Place, timeout time.Duration, want int) {
	tb.Helper()
	place.Faults().ResetTrace()
	<-time.After(timeout)
	n := 0
	for _, e := range place.Faults().Trace() {
		if e.Op == "heartbeat" && !e.Reply {
			n++
		}
	}
	if n != want {
		tb.Errorf("%d heartbeats in a session timeout, want %d", n, want)
	}
}
