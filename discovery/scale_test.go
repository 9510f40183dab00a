package discovery_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// A pick that fails, the note of its error and the next choice look at a few instances, of however many.
func TestPickThatFailsLooksAtFewOfManyInstances(t *testing.T) {
	t.Parallel()
	const count, picks = 2000, 100
	synctest.Test(t, func(t *testing.T) {
		d := manyInstances(t, count)
		for name, strategy := range map[string]discovery.Strategy[string]{
			"round robin": discovery.RoundRobin[string](), "random": discovery.Random[string](),
			"fewest": discovery.FewestInFlight[string](), "sticky": discovery.Sticky(discovery.RoundRobin[string]()),
			"weighted": discovery.Weighted(func(order) float64 { return 1 }),
		} {
			counted := &discovery.Counted[string]{Strategy: strategy}
			p := d.Provider("orders", discovery.WithStrategy[string](counted),
				discovery.WithDownInstancePolicy[string](time.Hour, 1))
			testclient.Must(t, p.Start(t.Context()))
			first, err := p.Pick(t.Context()) // makes the list
			testclient.Must(t, err)
			p.NoteError(first.Instance)
			list := p.Choice()
			counted.Asks = 0
			for n := range picks {
				pick, err := p.Pick(t.Context())
				testclient.Must(t, err)
				if n%2 == 0 {
					p.NoteError(pick.Instance)
					pick.Done(nil)
				} else {
					pick.Done(errors.New("refused"))
				}
			}
			if p.Choice() != list {
				t.Errorf("%s: there is another list of %d instances", name, count)
			}
			if counted.Asks > 2*picks {
				t.Errorf("%s: the strategy is asked %d times for %d picks", name, counted.Asks, picks)
			}
			if n := len(p.AllInstances()); n != count-picks-1 {
				t.Errorf("%s: %d instances are up", name, n)
			}
			testclient.Must(t, p.Close())
		}
		testclient.Must(t, d.Close(t.Context()))
	})
}

// An instance that is up again is put behind the list, which is not made again.
func TestInstancesThatAreUpAgainMakeNoNewLists(t *testing.T) {
	t.Parallel()
	const count, picks = 1000, 200
	synctest.Test(t, func(t *testing.T) {
		d := manyInstances(t, count)
		p := d.Provider("orders", discovery.WithDownInstancePolicy[string](time.Hour, 1))
		testclient.Must(t, p.Start(t.Context()))
		for _, i := range p.AllInstances() {
			p.NoteError(i)
			time.Sleep(time.Millisecond) // virtual: they are up again one by one
		}
		if _, err := p.Instance(); err == nil {
			t.Error("all are down, and one is chosen")
		}
		pick, err := p.Pick(t.Context()) // waits for the first that is up
		testclient.Must(t, err)
		pick.Done(nil)
		lists := make(map[*discovery.Candidate[string]]bool)
		copies, before := 0, p.Candidates()
		for range picks {
			time.Sleep(time.Millisecond)
			_, err := p.Instance()
			testclient.Must(t, err)
			now := p.Candidates()
			if &now[0] != &before[0] {
				copies++
			}
			lists[now[len(now)-1]], before = true, now
		}
		if len(lists) != picks || copies > 12 { // a list that grows doubles its memory
			t.Errorf("%d instances are up again one by one, with %d copies of the list", len(lists), copies)
		}
		testclient.Must(t, d.Close(t.Context()))
	})
}

// The services of a process that are missing at first, one instance each, travel together: neither a missing parent
// nor an instance costs a transaction of its own.
func TestRequestsOfManyServices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const count = 900
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client := testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		d := discovery.New[string](client, base)
		testclient.Must(t, d.Start())
		server.Faults().ResetTrace()
		done := make(chan error, count)
		for n := range count {
			go func() {
				done <- d.Register(t.Context(), discovery.NewServiceInstance[string](fmt.Sprintf("s%06d", n), "10.0.0.7", 8080))
			}()
		}
		for range count {
			testclient.Must(t, <-done)
		}
		counts := make(map[string]int)
		for _, e := range server.Faults().Trace() {
			if !e.Reply {
				counts[e.Op]++
			}
		}
		if counts["multi"] > count/10 {
			t.Errorf("%d services cost %v", count, counts)
		}
		t.Logf("%d services cost %v", count, counts)
		testclient.Must(t, d.Close(t.Context()))
	})
}

// manyInstances registers instances of the service "orders".
func manyInstances(t *testing.T, count int) *services {
	t.Helper()
	server := curatortest.NewServerT(t, curatortest.WithoutPort())
	client := testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext))
	d := discovery.New[string](client, base)
	testclient.Must(t, d.Start())
	done := make(chan error, count)
	for n := range count {
		go func() { done <- d.Register(t.Context(), orders(fmt.Sprintf("i%06d", n), "")) }()
	}
	for range count {
		testclient.Must(t, <-done)
	}
	return d
}
