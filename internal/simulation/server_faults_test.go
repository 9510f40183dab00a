package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// serverFaults affect the servers and the network between them.
var serverFaults = []fault{
	{name: "server crashes", strike: func(w *world, random *rand.Rand) (string, func()) {
		return w.crashServers(random, 1)
	}},
	{name: "quorum crashes", strike: func(w *world, random *rand.Rand) (string, func()) {
		return w.crashServers(random, len(w.cluster.Servers())/2+1)
	}},
	{name: "server stands still", strike: func(w *world, random *rand.Rand) (string, func()) {
		i, s := w.server(random)
		_ = s.Freeze()
		return fmt.Sprintf("server %d", i), func() { _ = s.Thaw() }
	}},
	{name: "servers are parted", strike: func(w *world, random *rand.Rand) (string, func()) {
		servers := w.cluster.Servers()
		groups := make([][]*curatortest.Server, 1+random.IntN(3)) // a server in no group is alone
		var sides []int
		for _, s := range servers {
			side := random.IntN(len(groups) + 1)
			sides = append(sides, side)
			if side < len(groups) {
				groups[side] = append(groups[side], s)
			}
		}
		return fmt.Sprint(sides), w.cluster.Partition(groups...)
	}},
	{name: "server lags", strike: func(w *world, random *rand.Rand) (string, func()) {
		i, s := w.server(random)
		lag := time.Duration(random.ExpFloat64() * float64(time.Second))
		if random.IntN(4) == 0 {
			lag = -1 // it gets no writes of others at all
		}
		w.cluster.SetLag(s, lag)
		return fmt.Sprintf("server %d by %v", i, lag), func() { w.cluster.SetLag(s, 0) }
	}},
}

// server picks a server, with its number.
func (w *world) server(random *rand.Rand) (number int, s *curatortest.Server) {
	i := random.IntN(len(w.cluster.Servers()))
	return i + 1, w.cluster.Servers()[i]
}

// crashServers crashes some servers and starts them again.
func (w *world) crashServers(random *rand.Rand, n int) (what string, undo func()) {
	chosen := random.Perm(len(w.cluster.Servers()))[:n]
	for _, i := range chosen {
		_ = w.cluster.KillServer(w.cluster.Servers()[i])
		what += fmt.Sprintf("server %d ", i+1)
	}
	return what, func() {
		for _, i := range chosen {
			if err := w.cluster.RestartServer(w.cluster.Servers()[i]); err != nil {
				w.violate("server %d does not start: %v", i+1, err)
			}
		}
	}
}
