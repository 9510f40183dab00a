package queue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
)

// TestLockOfAnEarlierSessionIsLeftToItsEnd loses the answer to the create of a lock, and the session with it, which the
// server still keeps. The lock ends with that session, and another consumer has the item by the time at which a
// deletion of the old lock would arrive.
func TestLockOfAnEarlierSessionIsLeftToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client, others := clientAt(t, server, ""), clientAt(t, server, "")
		start(t, built(builder(t, client, newBasket(t).consume).LockPath(lockPath).BuildQueue()))
		awaitSilence(t, server.Faults()) // it watches
		earlier := client.SessionID()
		rule := curatortest.Rule{Ops: []string{"create2"}, Path: lockPath + "/*", SessionID: earlier, Count: 1}
		rule.Action = curatortest.HoldReply
		created := server.Faults().Add(rule)
		putAll(t, start(t, built(builder(t, others, nil).LockPath(lockPath).BuildQueue())), "a")
		must(t, created.Wait(t.Context()))
		rule.SessionID, rule.Action, rule.MayMiss = 0, curatortest.HoldRequest, true
		rule.Ops = []string{"multi"}
		deletion := server.Faults().Add(rule)
		must(t, client.Reset())
		must(t, client.BlockUntilConnected(t.Context()))
		awaitSilence(t, server.Faults())
		rule.Ops, rule.SessionID = []string{"create2"}, client.SessionID()
		next := server.Faults().Add(rule) // others are faster
		g := newGate("a")
		start(t, built(builder(t, others, func(_ context.Context, item string) error {
			g.pass(item)
			return nil
		}).LockPath(lockPath).BuildQueue()))
		must(t, server.ExpireSession(earlier))
		g.awaitReached(t)
		deletion.Release()
		deletion.Remove()
		awaitSilence(t, server.Faults())
		if locks := names(t, others, lockPath); len(locks) != 1 {
			t.Errorf("locks %q of an item that is being consumed", locks)
		}
		next.Release()
		next.Remove()
		g.open()
		awaitEmpty(t, others)
	})
}
