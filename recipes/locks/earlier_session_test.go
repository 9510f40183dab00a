package locks_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
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
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		server := curatortest.NewServerT(t, curatortest.InMemory())
		connect := func() *framework.Client {
			return newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
				framework.WithSessionTimeout(time.Hour), framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
		}
		s, rival := chaos.New(t), connect()
		seeds, kept := testenv.Size(40, 40, 1000), 0
		for n := range seeds {
			random := s.Random(n)
			name, namespace := names[random.IntN(len(names))], fmt.Sprint(n)
			var others sync.WaitGroup
			if random.IntN(2) == 0 {
				hold := acquire(t, ctx, kinds[name](rival.UsingNamespace(namespace)))
				pause := time.Duration(random.IntN(3)) * 600 * time.Millisecond
				others.Go(func() {
					time.Sleep(pause)
					release(t, hold)
				})
			}
			client := connect()
			lock := kinds[name](client.UsingNamespace(namespace))
			e := &chaos.EarlierSession{
				Server: server, Client: client, Root: "/" + namespace, Alone: name != readLock,
				Acquire: func(ctx context.Context) (*chaos.Tenure, error) {
					hold, err := lock.Acquire(ctx)
					if err != nil {
						return nil, err
					}
					return &chaos.Tenure{
						Node: "/" + namespace + hold.Path(), Context: hold.Context(),
						Release: func() error { return hold.Release(ctx) },
					}, nil
				},
			}
			had, err := e.Run(ctx, s, random)
			if err != nil {
				s.Errorf("%s: %v", name, err)
				return
			}
			others.Wait()
			if had {
				kept++
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		}
		t.Logf("%d seeds, in %d the earlier session had nodes", seeds, kept)
		if kept < seeds/8 {
			t.Error("these are too few")
		}
	})
}
