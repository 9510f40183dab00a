package simulation_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/gocurator/curator/curatortest"
)

// holderFaults cut a holder off for longer than a session lasts.
var holderFaults = []fault{
	{name: "holder is parted from all servers", long: true, strike: func(w *world, random *rand.Rand) (string, func()) {
		p := w.judge.holder(random)
		if p == nil {
			return "", nil
		}
		return w.part(random, p, p.links, "all servers")
	}},
	{name: "server of a holder is parted", long: true, strike: func(w *world, random *rand.Rand) (string, func()) {
		p := w.judge.holder(random)
		if p == nil {
			return "", nil
		}
		server, err := w.cluster.FindConnectionInstance(p.client.SessionID())
		if err != nil {
			return "", nil
		}
		var others []*curatortest.Server
		number := 0
		for i, s := range w.cluster.Servers() {
			if s == server {
				number = i + 1
			} else {
				others = append(others, s)
			}
		}
		return fmt.Sprintf("server %d, with %s", number, p.name), w.cluster.Partition(others)
	}},
}
