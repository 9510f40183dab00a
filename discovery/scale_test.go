//go:build unix

package discovery_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// A pick that fails costs the same among any number of instances: the pick, the note of the error, and the next choice.
// With anything that looks at all of them, it costs a hundred times as much among 20 times as many.
func TestPickThatFailsCostsTheSameAmongManyInstances(t *testing.T) { //nolint:paralleltest // it measures the CPU time
	few, many := costOfFailures(t, 250), costOfFailures(t, 5000)
	for name, cost := range many {
		t.Logf("%s: %v among 250 instances, %v among 5,000", name, few[name], cost)
		if cost > 5*max(few[name], 10*time.Microsecond) {
			t.Errorf("%s: %v among 250 instances, %v among 5,000", name, few[name], cost)
		}
	}
}

// So does an instance that is up again.
func TestInstanceThatIsUpAgainCostsTheSameAmongMany(t *testing.T) { //nolint:paralleltest // it measures the CPU time
	var costs []time.Duration
	for _, count := range []int{250, 5000} {
		synctest.Test(t, func(t *testing.T) {
			d := manyInstances(t, count)
			p := d.Provider("orders", discovery.WithDownInstancePolicy[string](time.Hour, 1))
			testclient.Must(t, p.Start(t.Context()))
			for _, i := range p.AllInstances() {
				p.NoteError(i)
				time.Sleep(time.Millisecond)
			}
			if _, err := p.Instance(); err == nil {
				t.Error("all are down, and one is chosen")
			}
			pick, err := p.Pick(t.Context()) // of the first that is up
			testclient.Must(t, err)
			pick.Done(nil)
			const picks = 200
			before := cpuTime(t)
			for range picks {
				time.Sleep(time.Millisecond)
				_, err := p.Instance()
				testclient.Must(t, err)
			}
			costs = append(costs, (cpuTime(t)-before)/picks)
			if n := len(p.AllInstances()); n != picks+1 {
				t.Errorf("%d instances are up", n)
			}
			testclient.Must(t, d.Close(t.Context()))
		})
	}
	t.Logf("%v among 250 instances, %v among 5,000", costs[0], costs[1])
	if costs[1] > 4*max(costs[0], 5*time.Microsecond) {
		t.Errorf("%v among 250 instances, %v among 5,000", costs[0], costs[1])
	}
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

func costOfFailures(t *testing.T, count int) map[string]time.Duration {
	t.Helper()
	d := manyInstances(t, count)
	const picks = 200
	costs := make(map[string]time.Duration)
	for name, strategy := range map[string]discovery.Strategy[string]{
		"round robin": discovery.RoundRobin[string](), "random": discovery.Random[string](),
		"fewest": discovery.FewestInFlight[string](), "sticky": discovery.Sticky(discovery.RoundRobin[string]()),
		"weighted": discovery.Weighted(func(order) float64 { return 1 }),
	} {
		p := d.Provider("orders", discovery.WithStrategy(strategy), discovery.WithDownInstancePolicy[string](time.Hour, 1))
		testclient.Must(t, p.Start(t.Context()))
		first, err := p.Pick(t.Context()) // sorts out the candidates
		testclient.Must(t, err)
		p.NoteError(first.Instance)
		for way, fail := range map[string]func(pick discovery.Pick[string]){
			"Done": func(pick discovery.Pick[string]) { pick.Done(errors.New("refused")) },
			"NoteError": func(pick discovery.Pick[string]) {
				p.NoteError(pick.Instance)
				pick.Done(nil)
			},
		} {
			before := cpuTime(t)
			for range picks / 2 {
				pick, err := p.Pick(t.Context())
				testclient.Must(t, err)
				fail(pick)
			}
			costs[name+", "+way] = (cpuTime(t) - before) / (picks / 2)
		}
	}
	testclient.Must(t, d.Close(t.Context()))
	return costs
}

// cpuTime returns how long this process has worked. What a busy machine makes it wait is not counted.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	testclient.Must(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
