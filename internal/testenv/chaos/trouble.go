package chaos

import (
	"context"
	"math/rand/v2"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
)

// Trouble disturbs a client and the server at addr until end is called.
type Trouble func(v *Victim, addr string, random *rand.Rand) (end func())

// Troubles are the ways in which an operation of a client may fail, by name.
var Troubles = map[string]Trouble{
	"no trouble": func(*Victim, string, *rand.Rand) (end func()) { return func() {} },
	"refusals": often(curatortest.Rule{
		Ops: []string{"create2", "createContainer", "getChildren2", "getData"}, Chance: 0.2,
		Action: curatortest.ReplyError, Err: zk.ErrNoAuth, MayMiss: true,
	}),
	"cuts before a request": often(curatortest.Rule{Chance: 0.05, Action: curatortest.CutBefore, MayMiss: true}),
	"cuts after a request":  often(curatortest.Rule{Chance: 0.05, Action: curatortest.CutAfter, MayMiss: true}),
	"no connection": func(v *Victim, _ string, _ *rand.Rand) (end func()) {
		end = v.Proxy.Faults().RefuseConnects()
		v.Proxy.Faults().CutAll()
		return end
	},
	"no session": func(v *Victim, addr string, _ *rand.Rand) (end func()) {
		ctx, cancel := context.WithTimeout(context.Background(), expireLimit)
		defer cancel()
		_ = curatortest.ExpireSession(ctx, addr, v.Session()) // if it is not over already
		return func() {}
	},
}

// often returns the trouble of a rule.
func often(rule curatortest.Rule) Trouble {
	return func(v *Victim, _ string, random *rand.Rand) (end func()) {
		rule := rule
		rule.Seed = random.Uint64()
		return v.Proxy.Faults().Add(rule).Remove
	}
}
