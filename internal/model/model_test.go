package model

import (
	"strings"
	"testing"
	"time"
)

const anything = cut | expiry | pause | crash | deletion | wipe | giveUp

func TestTry(t *testing.T) {
	for _, m := range []struct {
		*recipe
		want string
	}{
		{&recipe{protocol: mutex{}, members: "ooo", rounds: 1, servers: 2, lag: 2, faults: 1, may: anything}, ""},
		{&recipe{protocol: mutex{}, members: "oo", rounds: 2, servers: 2, lag: 2, faults: 1, may: anything}, ""},
		{&recipe{protocol: mutex{}, members: "oj", rounds: 1, servers: 2, lag: 2, faults: 2, may: anything}, ""},
		{&recipe{protocol: mutex{}, members: "ooo", rounds: 1, servers: 1, lag: 1, faults: 1, may: deletion, flaw: grantsWithoutList}, "hold at once"},
		{&recipe{protocol: mutex{}, members: "ooo", rounds: 1, servers: 2, lag: 2, faults: 1, may: wipe, flaw: grantsWithoutList}, "hold at once"},
		{&recipe{protocol: mutex{}, members: "ooo", rounds: 1, servers: 2, lag: 2, faults: 1, may: wipe, flaw: watchesTwo}, "hold at once"},
		{&recipe{protocol: mutex{}, members: "oo", rounds: 1, servers: 2, lag: 2, faults: 1, may: cut, flaw: findsBehind}, "waits for ever"},
		{&recipe{protocol: mutex{}, members: "oo", rounds: 1, servers: 1, lag: 1, faults: 1, may: cut, flaw: createsTwice}, "waits for ever"},
		{&recipe{protocol: mutex{}, members: "oo", rounds: 1, servers: 1, lag: 1, faults: 1, may: pause, flaw: expiresFirst}, "hold at once"},
		{&recipe{protocol: mutex{}, members: "oo", rounds: 1, servers: 1, lag: 1, faults: 1, may: giveUp, flaw: keepsWatch}, "a watch of"},
		{&recipe{protocol: mutex{}, members: "oo", rounds: 1, servers: 1, lag: 1, faults: 1, may: giveUp, flaw: keepsNode}, "waits for ever"},
		{&recipe{protocol: readWriteLock{}, members: "wr", rounds: 1, servers: 2, lag: 2, faults: 1, may: anything}, ""},
		{&recipe{protocol: readWriteLock{}, members: "wd", rounds: 1, servers: 2, lag: 2, faults: 1, may: anything}, ""},
		{&recipe{protocol: readWriteLock{}, members: "wdrj", rounds: 1, servers: 1, lag: 1, faults: 0, may: anything}, ""},
		{&recipe{protocol: readWriteLock{}, members: "wd", rounds: 1, servers: 1, lag: 1, flaw: readsAnew}, "writes"},
		{&recipe{protocol: readWriteLock{}, members: "wd", rounds: 1, servers: 1, lag: 1, flaw: grantsWithoutList}, "writes"},
		{&recipe{protocol: semaphore{}, leases: 1, members: "11", rounds: 1, servers: 2, lag: 2, faults: 1, may: anything}, ""},
		{&recipe{protocol: semaphore{}, leases: 2, members: "121", rounds: 1, servers: 1, lag: 1, faults: 1, may: anything}, ""},
		{&recipe{protocol: semaphore{}, leases: 1, members: "1J", rounds: 1, servers: 2, lag: 2, faults: 1, may: anything}, ""},
		{&recipe{protocol: semaphore{}, leases: 1, members: "11", rounds: 1, servers: 1, lag: 1, faults: 1, may: deletion, flaw: takesUnchecked}, "leases of 1"},
		{&recipe{protocol: semaphore{}, leases: 1, members: "111", rounds: 1, servers: 1, lag: 1, faults: 1, may: deletion, flaw: leaseWithoutTurn}, "leases of 1"},
		{&recipe{protocol: semaphore{}, leases: 1, members: "11", rounds: 1, servers: 1, lag: 1, flaw: countsFirst}, "leases of 1"},
		{&recipe{protocol: semaphore{}, leases: 1, members: "11", rounds: 1, servers: 1, lag: 1, flaw: watchesLate}, "waits for ever"},
		{&recipe{protocol: latch{}, members: "oo", rounds: 1, servers: 2, lag: 2, faults: 1, may: anything}, ""},
		{&recipe{protocol: latch{}, members: "os", rounds: 1, servers: 2, lag: 2, faults: 2, may: anything}, ""},
		{&recipe{protocol: latch{}, members: "oo", rounds: 1, servers: 2, lag: 2, faults: 2, may: cut | deletion, flaw: freshOutlives}, "hold at once"},
	} {
		t0 := time.Now()
		r := explore(m)
		t.Logf("%T %s %d: %v %v", m.protocol, m.members, m.flaw, r, time.Since(t0))
		if m.want == "" && r.violation != "" || !strings.Contains(r.violation, m.want) {
			t.Errorf("got %q, want %q", r.violation, m.want)
		}
	}
}
