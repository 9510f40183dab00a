package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
)

// answerFaults affect single requests and their answers.
var answerFaults = []fault{
	ruleFault("requests are lost", curatortest.Rule{Action: curatortest.CutBefore, Chance: 0.1}),
	ruleFault("answers are lost", curatortest.Rule{Action: curatortest.CutAfter, Chance: 0.1}),
	ruleFault("answers are truncated", curatortest.Rule{Action: curatortest.TruncateReply, Chance: 0.1}),
	ruleFault("answer to a write is lost", curatortest.Rule{
		Ops: []string{"create2", "createContainer", "delete", "multi"}, Action: curatortest.CutAfter, Count: 1,
	}),
	ruleFault("answer to a read is lost", curatortest.Rule{
		Ops: []string{"getChildren2", "getData", "exists"}, Action: curatortest.CutAfter, Count: 1,
	}),
	ruleFault("answers are slow", curatortest.Rule{
		Action: curatortest.DelayReply, Chance: 0.2, Delay: 700 * time.Millisecond,
	}),
	ruleFault("requests are slow", curatortest.Rule{
		Action: curatortest.DelayRequest, Chance: 0.2, Delay: 900 * time.Millisecond,
	}),
	ruleFault("answer never comes", curatortest.Rule{Action: curatortest.DropReply, Count: 1}),
	{name: hangUps, counts: true, strike: func(w *world, random *rand.Rand) (string, func()) {
		kind := pick(random, hangUpKinds)
		rule := curatortest.Rule{Ops: []string{kind}, Action: curatortest.CutBefore}
		what, undo := ruleFault(hangUps, rule).strike(w, random)
		over := w.hangUp()
		return kind + " " + what, func() {
			undo()
			over()
		}
	}},
	ruleFault("answer is held", curatortest.Rule{Action: curatortest.HoldReply, Count: 1}),
	ruleFault("request is held", curatortest.Rule{Action: curatortest.HoldRequest, Count: 1}),
	ruleFault("watch events are slow", curatortest.Rule{
		Ops: []string{"notification"}, Action: curatortest.DelayReply, Delay: 1500 * time.Millisecond,
	}),
	ruleFault("watch event is held", curatortest.Rule{
		Ops: []string{"notification"}, Action: curatortest.HoldReply, Count: 1,
	}),
	ruleFault("watch events come twice", curatortest.Rule{
		Ops: []string{"notification"}, Action: curatortest.DuplicateReply,
	}),
	ruleFault("requests are refused", curatortest.Rule{
		Ops: []string{"create2", "getData"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth, Chance: 0.3,
	}),
	ruleFault("handshakes fail", curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.CutAfter, Count: 2}),
}

const hangUps = "servers hang up at one kind of request"

// hangUpKinds are the kinds of requests at which servers hang up: those that servers may lack, and some that all have.
var hangUpKinds = []string{
	"addWatch", "createContainer", "multiRead", "setWatches2", "create2", "delete", "getChildren2", "setData",
}

// ruleFault is a rule for some of the servers. It skips a few requests, so that it affects any step of a recipe. The
// fault counts if the rule has hit a request.
func ruleFault(name string, rule curatortest.Rule) fault {
	return fault{name: name, counts: true, strike: func(w *world, random *rand.Rand) (string, func()) {
		rule := rule
		rule.Seed, rule.MayMiss = random.Uint64(), true
		if !slices.Contains(rule.Ops, "connect") { // there are few such requests
			rule.Skip = random.IntN(6)
		}
		var injections []*curatortest.Injection
		servers := w.cluster.Servers()
		which := random.Perm(len(servers))[:1+random.IntN(len(servers))]
		for _, i := range which {
			injections = append(injections, servers[i].Faults().Add(rule))
		}
		if slices.Contains(rule.Ops, "connect") { // this makes one
			if p := w.pickProcess(random); p != nil {
				for _, l := range p.links {
					l.reset()
				}
			}
		}
		over := func() {}
		if rule.Action == curatortest.ReplyError {
			over = w.refuse()
		}
		return fmt.Sprintf("of servers %d, after %d", which, rule.Skip), func() {
			defer over()
			hits := 0
			for _, in := range injections {
				in.Remove()
				hits += in.Hits()
				if err := in.Err(); err != nil {
					w.violate("%s: %v", name, err)
				}
			}
			if hits > 0 {
				w.report.hit(name)
			}
		}
	}}
}
