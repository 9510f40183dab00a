package locks_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/locks"
)

const readLock = "read lock"

// TestEveryLockNodeOfEarlierSessionIsNotGranted has clients lose their session at any request of an acquire, alone or
// behind another, while the server keeps it (CURATOR-498, CURATOR-604).
func TestEveryLockNodeOfEarlierSessionIsNotGranted(t *testing.T) {
	t.Parallel()
	kinds := maps.Clone(everyLock)
	kinds[readLock] = func(c *framework.Client) locks.InterProcessLock {
		return locks.NewInterProcessReadWriteLock(c, lockPath).ReadLock()
	}
	names := slices.Sorted(maps.Keys(kinds))
	testclient.LoseEarlierSessions(t, testenv.Size(40, 40, 1000), func(random *rand.Rand) testclient.Contest {
		name := names[random.IntN(len(names))]
		contend := func(_ testing.TB, c *framework.Client) testclient.Contender {
			lock := kinds[name](c)
			return testclient.Contender{Acquire: func(ctx context.Context) (*chaos.Holding, error) {
				hold, err := lock.Acquire(ctx)
				if err != nil {
					return nil, err
				}
				release := func() error { return hold.Release(context.WithoutCancel(ctx)) }
				return &chaos.Holding{Node: hold.Path(), Context: hold.Context(), Release: release}, nil
			}, Close: func() error { return nil }}
		}
		return testclient.Contest{Kind: name, Alone: name != readLock, Start: contend}
	})
}

// TestMutexNodeOfEarlierSessionIsNotGranted holds the node of a lost session at the server, first in line, while
// its client comes back with a new one (CURATOR-498, CURATOR-604).
func TestMutexNodeOfEarlierSessionIsNotGranted(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	client, direct := newClient(t, connect), newClient(t, testenv.Addr(t)+chroot)
	if err := client.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	keepLine(t, direct) // without it the server refuses the first create
	old := client.SessionID()
	// The create is applied and its answer lost; before it can be asked for, the client takes the session for lost.
	injection := proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.HoldReply})
	granted := make(chan *locks.Hold, 1)
	go func() {
		hold, err := locks.NewInterProcessMutex(client, lockPath).Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		granted <- hold
	}()
	if err := injection.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	awaitContenders(t, direct, 1)
	if err := client.Reset(); err != nil { // the old session lives on at the server until its timeout
		t.Fatal(err)
	}
	injection.Release()
	hold := <-granted
	if hold == nil {
		t.FailNow()
	}
	defer release(t, hold)
	if client.SessionID() == old {
		t.Fatal("no new session")
	}
	stat, err := client.CheckExists().ForPath(ctx, hold.Path())
	if err != nil || stat == nil || stat.EphemeralOwner != client.SessionID() {
		t.Errorf("granted on the node of session %x, ours is %x: %v", stat.EphemeralOwner, client.SessionID(), err)
	}
}
