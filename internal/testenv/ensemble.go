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
	// EnsembleLinger is for how long a server goes on that is cut off from its leader.
	EnsembleLinger = EnsembleSyncLimit * EnsembleTick
)

// Ensemble is three servers that can be parted from each other, with a way to each. A server that is cut off from its
// leader goes on for EnsembleLinger: it answers pings and reads.
type Ensemble struct {
	Leader    Place
	Followers []Place
	cutOff    func(Place) (heal func())
}

// CutOff parts a server from the two others, not from its clients.
func (e *Ensemble) CutOff(server Place) (heal func()) { return e.cutOff(server) }

// OnEnsemble runs a test on an ensemble of its own: in memory and in a bubble of testing/synctest, or where the tests run
// on Apache ZooKeeper, on that and in real time.
func OnEnsemble(t *testing.T, test func(t *testing.T, e *Ensemble)) {
	t.Helper()
	if Real() {
		test(t, newRealEnsemble(t))
		return
	}
	synctest.Test(t, func(t *testing.T) {
		cluster := curatortest.NewClusterT(t, 3, curatortest.InMemory(),
			curatortest.WithTickTime(EnsembleTick), curatortest.WithSyncLimit(EnsembleSyncLimit))
		servers := cluster.Servers()
		leader, err := cluster.Leader()
		if err != nil {
			t.Fatal(err)
		}
		test(t, ensembleOf(servers, leader, func(s *curatortest.Server) Place { return s },
			func(others []*curatortest.Server) (heal func()) { return cluster.Partition(others) }))
	})
}

func newRealEnsemble(t *testing.T) *Ensemble {
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
	if err := cluster.AwaitQuorum(Context(t)); err != nil {
		t.Fatal(err)
	}
	leader, err := cluster.Leader()
	if err != nil {
		t.Fatal(err)
	}
	return ensembleOf(cluster.Servers(), leader,
		func(s *curatortest.RealServer) Place { return newProxyPlace(t, s.Addr()) },
		func(others []*curatortest.RealServer) (heal func()) {
			heal, err := cluster.Partition(others)
			if err != nil {
				t.Fatal(err)
			}
			return heal
		})
}

// ensembleOf makes an ensemble of servers of either kind. part parts some of them from the rest.
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
