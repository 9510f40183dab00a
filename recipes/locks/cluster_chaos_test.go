package locks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
)

// ensemble is three servers that a chaos test kills.
type ensemble interface {
	ConnectString() string
	// kill kills one of the servers; revive starts it again, and returns when the ensemble serves.
	kill(i int) (name string)
	revive(i int) error
	// others are the faults beside those.
	others() []chaos.Fault
}

// TestMutexChaosOnEnsemble has clients contend for locks while servers die, stand still, and are too few to serve.
func TestMutexChaosOnEnsemble(t *testing.T) {
	t.Parallel()
	var e ensemble
	if testenv.Real() {
		e = newRealEnsemble(t)
	} else {
		e = newMemoryEnsemble(t)
	}
	s := newEmptyScene(t, e.ConnectString(), 2*time.Second)
	for range 12 {
		s.client(e.ConnectString())
	}
	kills, losses := 0, 0
	killOne := func(d *chaos.Disturbance) string {
		kills++
		return s.outage(d, e, d.Random.Perm(servers)[:1])
	}
	loseQuorum := func(d *chaos.Disturbance) string {
		kills, losses = kills+2, losses+1
		return s.outage(d, e, d.Random.Perm(servers)[:2])
	}
	try := s.mutexes(8)
	s.rage(testenv.Size(
		size{duration: 3 * time.Second, faults: 6, grants: 30},
		size{duration: 6 * time.Second, faults: 2, grants: 30},
		size{duration: 5 * time.Minute, faults: 80, grants: 5000},
	), chaos.Pace{Least: 50 * time.Millisecond, Most: 400 * time.Millisecond}, try,
		append(e.others(), killOne, killOne, loseQuorum)...)
	t.Logf("%d kills, %d losses of quorum", kills, losses)
	if testenv.Long() && (kills < 60 || losses < 5) {
		s.Errorf("%d kills and %d losses of quorum are too few", kills, losses)
	}
}

const servers = 3

// downtime is how long a fault of a server lasts.
func downtime(random *rand.Rand) time.Duration {
	return time.Duration(100+random.IntN(400)) * time.Millisecond
}

// outage kills servers and starts them again. When they have served for two session timeouts, every client is
// connected.
func (s *scene) outage(d *chaos.Disturbance, e ensemble, which []int) string {
	var names []string
	for _, i := range which {
		names = append(names, e.kill(i))
	}
	s.Note("killed %v", names)
	d.Wait(downtime(d.Random))
	for _, i := range which {
		if err := e.revive(i); err != nil {
			s.Errorf("%v", err)
			return ""
		}
	}
	start, limit := time.Now(), 2*s.session
	ctx, cancel := context.WithTimeout(context.Background(), 10*limit)
	defer cancel()
	for i, client := range s.clients {
		if err := client.BlockUntilConnected(ctx); err != nil {
			s.Errorf("client %d: %v", i+1, err)
		}
	}
	now := time.Now()
	if took := now.Sub(start) - s.pulse.Missed(start, now); took > limit {
		s.Errorf("all clients were connected again after %v only", took)
	}
	return fmt.Sprintf("revived %v", names)
}

// memoryEnsemble is the ensemble in this process.
type memoryEnsemble struct{ *curatortest.Cluster }

func newMemoryEnsemble(t *testing.T) ensemble {
	t.Helper()
	return memoryEnsemble{curatortest.NewClusterT(t, servers)}
}

func (e memoryEnsemble) kill(i int) string {
	_ = e.KillServer(e.Servers()[i])
	return fmt.Sprint("server ", i+1)
}

func (e memoryEnsemble) revive(i int) error { return e.RestartServer(e.Servers()[i]) }

func (e memoryEnsemble) others() []chaos.Fault {
	one := func(random *rand.Rand) (name string, server *curatortest.Server, rest []*curatortest.Server) {
		order := random.Perm(servers)
		for _, i := range order[1:] {
			rest = append(rest, e.Servers()[i])
		}
		return fmt.Sprint("server ", order[0]+1), e.Servers()[order[0]], rest
	}
	return []chaos.Fault{
		func(d *chaos.Disturbance) string {
			name, server, _ := one(d.Random)
			_ = server.Freeze()
			d.Wait(3 * downtime(d.Random))
			_ = server.Thaw()
			return "thawed " + name
		},
		func(d *chaos.Disturbance) string {
			name, server, rest := one(d.Random)
			heal := e.Partition(rest, []*curatortest.Server{server})
			d.Wait(downtime(d.Random))
			heal()
			return "ended the partition of " + name
		},
		func(d *chaos.Disturbance) string {
			name, server, _ := one(d.Random)
			e.SetLag(server, 50*time.Millisecond)
			d.After(downtime(d.Random), name+" is up to date", func() { e.SetLag(server, 0) })
			return name + " lags"
		},
	}
}

// realEnsemble is one of Apache ZooKeeper.
type realEnsemble struct{ *curatortest.RealCluster }

func newRealEnsemble(t *testing.T) ensemble {
	t.Helper()
	cluster, err := curatortest.NewRealCluster(servers)
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

func (e realEnsemble) kill(i int) string {
	_ = e.Servers()[i].Kill()
	return fmt.Sprint("server ", i+1)
}

func (e realEnsemble) revive(i int) error {
	if err := e.Servers()[i].Launch(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return e.AwaitQuorum(ctx)
}

func (e realEnsemble) others() []chaos.Fault {
	return []chaos.Fault{func(d *chaos.Disturbance) string {
		i := d.Random.IntN(servers)
		server := e.Servers()[i]
		if server.Freeze() != nil {
			return ""
		}
		d.Wait(5 * downtime(d.Random))
		_ = server.Thaw()
		return fmt.Sprint("thawed server ", i+1)
	}}
}
