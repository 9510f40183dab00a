package testenv

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// The times of an [Ensemble].
const (
	EnsembleTick      = 500 * time.Millisecond
	EnsembleSyncLimit = 5 // ticks
	// EnsembleLinger is the time for which a server continues without its leader.
	EnsembleLinger = EnsembleSyncLimit * EnsembleTick
)

// Ensemble is three servers that can be separated from each other, with a way to each. A server that is cut off from
// its leader continues for EnsembleLinger: it answers pings and reads.
type Ensemble struct {
	Leader    Place
	Followers []Place
	cutOff    func(Place) (heal func())
}

// CutOff separates a server from the two others, not from its clients.
func (e *Ensemble) CutOff(server Place) (heal func()) { return e.cutOff(server) }

// OnEnsemble runs a test on an ensemble of its own: in memory and in a bubble of testing/synctest. With Apache
// ZooKeeper it runs in real time.
func OnEnsemble(t *testing.T, test func(t *testing.T, e *Ensemble)) {
	t.Helper()
	if Real() {
		test(t, startRealEnsemble(t).ensemble(t))
		return
	}
	synctest.Test(t, func(t *testing.T) { test(t, newMemoryEnsemble(t)) })
}

// EachOnEnsemble is [OnEnsemble] for many tests. In real time they run one after the other on one ensemble, which keeps
// their nodes. Each begins without a partition.
func EachOnEnsemble(t *testing.T, names []string, test func(t *testing.T, e *Ensemble, name string)) {
	t.Helper()
	if !Real() {
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, newMemoryEnsemble(t), name) })
			})
		}
		return
	}
	servers := startRealEnsemble(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) { test(t, servers.ensemble(t), name) })
	}
}

func newMemoryEnsemble(t *testing.T) *Ensemble {
	t.Helper()
	cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort(),
		curatortest.WithTickTime(EnsembleTick), curatortest.WithSyncLimit(EnsembleSyncLimit))
	leader, err := cluster.Leader()
	if err != nil {
		t.Fatal(err)
	}
	return ensembleOf(cluster.Servers(), leader, func(s *curatortest.Server) Place { return s },
		func(others []*curatortest.Server) (heal func()) { return cluster.Partition(others) })
}

// realEnsemble is the servers of several ensembles, one after the other.
type realEnsemble struct{ *curatortest.RealCluster }

func startRealEnsemble(t *testing.T) realEnsemble {
	t.Helper()
	cluster, err := curatortest.NewRealCluster(3, curatortest.WithPartitions(),
		curatortest.WithTickTime(EnsembleTick), curatortest.WithSyncLimit(EnsembleSyncLimit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	return realEnsemble{cluster}
}

// ensemble waits until all servers serve. A partition ends with the test.
func (r realEnsemble) ensemble(t *testing.T) *Ensemble {
	t.Helper()
	ctx := Context(t)
	if err := r.AwaitQuorum(ctx); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Servers() {
		if err := s.AwaitServing(ctx); err != nil {
			t.Fatal(err)
		}
	}
	leader, err := r.Leader()
	if err != nil {
		t.Fatal(err)
	}
	return ensembleOf(r.Servers(), leader,
		func(s *curatortest.RealServer) Place { return newProxyPlace(t, s.Addr()) },
		func(others []*curatortest.RealServer) (heal func()) {
			heal, err := r.Partition(others)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(heal)
			return heal
		})
}

// ensembleOf returns an ensemble of servers of either kind. part separates some of them from the rest.
func ensembleOf[S comparable](servers []S, leader S, place func(S) Place, part func([]S) (heal func())) *Ensemble {
	e := &Ensemble{}
	byPlace := map[Place]S{}
	for _, s := range servers {
		p := place(s)
		byPlace[p] = s
		if s == leader {
			e.Leader = p
		} else {
			e.Followers = append(e.Followers, p)
		}
	}
	e.cutOff = func(server Place) (heal func()) {
		var others []S
		for _, s := range servers {
			if s != byPlace[server] {
				others = append(others, s)
			}
		}
		return part(others)
	}
	return e
}
