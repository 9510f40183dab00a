package simulation_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/gocurator/curator/curatortest"
)

// networkFaults affect the network between processes and servers.
var networkFaults = []fault{
	{name: "connection is cut", strike: func(w *world, random *rand.Rand) (string, func()) {
		p := w.pickProcess(random)
		if p == nil {
			return "", nil
		}
		n := 0
		for _, l := range p.links {
			n += l.reset()
		}
		if n == 0 {
			return "", nil
		}
		return p.name, nil
	}},
	{name: "process is parted from a server", strike: func(w *world, random *rand.Rand) (string, func()) {
		p, i := w.pickProcess(random), random.IntN(len(w.cluster.Servers()))
		if p == nil {
			return "", nil
		}
		return w.part(random, p, p.links[i:i+1], fmt.Sprintf("server %d", i+1))
	}},
	{name: "process is parted from all servers", strike: func(w *world, random *rand.Rand) (string, func()) {
		p := w.pickProcess(random)
		if p == nil {
			return "", nil
		}
		return w.part(random, p, p.links, "all servers")
	}},
}

// part blocks links in one direction or both. After that the connections continue, or are reset.
func (w *world) part(random *rand.Rand, p *process, links []*link, from string) (what string, undo func()) {
	direction := pick(random, []curatortest.Direction{
		curatortest.Both, curatortest.Both, curatortest.ToServer, curatortest.ToClient,
	})
	var unblock []func()
	for _, l := range links {
		unblock = append(unblock, l.block(direction))
	}
	breaks := random.IntN(2) == 0
	return fmt.Sprintf("%s from %s, %v", p.name, from, direction), func() {
		for i, l := range links {
			if breaks {
				l.reset()
			}
			unblock[i]()
		}
	}
}
