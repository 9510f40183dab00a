package simulation_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/gocurator/curator/curatortest"
)

// holderFaults cut a holder off for longer than a session lasts. It does not release meanwhile.
var holderFaults = []fault{
	{name: "holder is parted from all servers", long: true, strike: func(w *world, random *rand.Rand) (string, func()) {
		c, release := w.judge.keep(random)
		if c == nil {
			return "", nil
		}
		what, undo := w.part(random, c.process, c.process.links, "all servers")
		return what, func() { undo(); release() }
	}},
	{name: "server of a holder is parted", long: true, strike: func(w *world, random *rand.Rand) (string, func()) {
		c, release := w.judge.keep(random)
		if c == nil {
			return "", nil
		}
		server, err := w.cluster.FindConnectionInstance(c.client.SessionID())
		if err != nil {
			release()
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
		heal := w.cluster.Partition(others)
		return fmt.Sprintf("server %d, with %v", number, c), func() { heal(); release() }
	}},
}
