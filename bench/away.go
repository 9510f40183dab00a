package main

import (
	"time"

	"github.com/gocurator/curator/curatortest"
)

// awayName is the name of nodes that do not exist. The proxy of an away server cuts the connection of a client that
// asks for one.
const awayName = "away"

// awayTime is how long a client of an away server waits for its session after a cut.
const awayTime = 200 * time.Millisecond

// startAway starts a proxy that sends clients away. Other clients change the tree meanwhile.
func startAway(server string) (*curatortest.Proxy, error) {
	p, err := curatortest.NewProxy(server)
	if err != nil {
		return nil, err
	}
	p.Faults().Add(curatortest.Rule{
		Ops: []string{"exists"}, Path: "/**/" + awayName, Action: curatortest.CutBefore, MayMiss: true,
	})
	p.Faults().Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.DelayRequest, Delay: awayTime})
	return p, nil
}
