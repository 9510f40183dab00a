package locks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// waiters is a line of waiters of one client behind a hold of another.
const waiters = 100

// inLine runs a test with a client whose connection can fail and on which waiters wait for a mutex, and with the hold
// of another client.
func inLine(t *testing.T, test func(t *testing.T, place testenv.Place, hold *locks.Hold, got <-chan *locks.Hold)) {
	t.Helper()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		ctx := testenv.Context(t)
		holder := newClient(t, two.Addr()+chroot, framework.WithDialer(two.DialContext))
		client := newClient(t, one.Addr()+chroot, framework.WithDialer(one.DialContext))
		hold := acquire(t, ctx, locks.NewInterProcessMutex(holder, lockPath))
		got := make(chan *locks.Hold, waiters)
		for range waiters {
			mu := locks.NewInterProcessMutex(client, lockPath)
			go func() {
				h, err := mu.Acquire(ctx)
				if err != nil {
					t.Error(err)
				}
				got <- h
			}()
		}
		testenv.Eventually(t, func() bool { return framesOf(one.Faults(), true, "getData") == waiters }, "all wait")
		if _, err := client.CheckExists().ForPath(ctx, "/"); err != nil { // behind those answers: they have come
			t.Fatal(err)
		}
		test(t, one, hold, got)
	})
}

// framesOf returns the number of requests of these operations, or of their answers.
func framesOf(faults *curatortest.Faults, answers bool, ops ...string) (n int) {
	for _, e := range faults.Trace() {
		for _, op := range ops {
			if e.Op == op && e.Reply == answers {
				n++
			}
		}
	}
	return n
}

// The server sets the watches of all waiters again, and says what they have missed.
func TestWaitersShortOutageSendNoRequest(t *testing.T) {
	t.Parallel()
	inLine(t, func(t *testing.T, place testenv.Place, hold *locks.Hold, got <-chan *locks.Hold) {
		faults := place.Faults()
		faults.ResetTrace()
		const cuts = 3
		for n := range cuts {
			faults.CutAll()
			testenv.Eventually(t, func() bool {
				return framesOf(faults, true, "setWatches") == n+1
			}, "the watches are set again")
			<-time.After(time.Second) // for the requests of waiters that should not come
		}
		requests := map[string]int{}
		for _, e := range faults.Trace() {
			if !e.Reply && e.Op != "ping" && e.Op != "heartbeat" {
				requests[e.Op]++
			}
		}
		want := map[string]int{"connect": cuts, "setWatches": cuts}
		if fmt.Sprint(requests) != fmt.Sprint(want) {
			t.Errorf("%d waiters have sent %v, want %v", waiters, requests, want)
		}
		release(t, hold)
		for range waiters {
			release(t, <-got)
		}
	})
}

// The turn comes while the waiters have no connection.
func TestWaitersTurnInShortOutageAreGranted(t *testing.T) {
	t.Parallel()
	inLine(t, func(t *testing.T, place testenv.Place, hold *locks.Hold, got <-chan *locks.Hold) {
		faults := place.Faults()
		restore := faults.RefuseConnects()
		faults.CutAll()
		release(t, hold)
		faults.ResetTrace()
		restore()
		for range waiters {
			release(t, <-got)
		}
		if n := framesOf(faults, false, "getChildren2"); n != waiters {
			t.Errorf("%d lists for %d grants", n, waiters)
		}
	})
}

// Half of the events get lost with their connection, and come again after the next.
func TestWaitersConnectionCutAtEventsAreGranted(t *testing.T) {
	t.Parallel()
	inLine(t, func(t *testing.T, place testenv.Place, hold *locks.Hold, got <-chan *locks.Hold) {
		place.Faults().Add(curatortest.Rule{
			Ops: []string{"notification"}, Action: curatortest.CutAfter, Chance: 0.5, Seed: 1,
		})
		release(t, hold)
		for range waiters {
			_ = (<-got).Release(testenv.Context(t)) // after too many cuts it goes on in the background
		}
	})
}
