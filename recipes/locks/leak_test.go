package locks_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/locks"
)

// taker is what of a lock or a semaphore can fail.
type taker struct {
	acquire func(ctx context.Context) error
	try     func(ctx context.Context, wait time.Duration) error
}

func takerOf(l locks.InterProcessLock) taker {
	return taker{
		func(ctx context.Context) error {
			_, err := l.Acquire(ctx)
			return err
		},
		func(ctx context.Context, wait time.Duration) error {
			_, err := l.TryAcquire(ctx, wait)
			return err
		},
	}
}

const leases = 3

// unsteady is a number of leases that reports a change whenever a waiter listens, and stays the same.
type unsteady struct{}

func (unsteady) Count() int { return leases }

func (unsteady) Changed() <-chan struct{} {
	changed := make(chan struct{})
	close(changed)
	return changed
}

func takerOfLeases(c *framework.Client, opts ...locks.SemaphoreOption) taker {
	s := locks.NewInterProcessSemaphoreV2(c, lockPath, leases, opts...)
	return taker{
		func(ctx context.Context) error {
			_, err := s.AcquireN(ctx, leases)
			return err
		},
		func(ctx context.Context, wait time.Duration) error {
			_, err := s.TryAcquireN(ctx, leases, wait)
			return err
		},
	}
}

// takers are all kinds that there are, by name.
func takers() map[string]func(*framework.Client) taker {
	all := map[string]func(*framework.Client) taker{
		"semaphore": func(c *framework.Client) taker { return takerOfLeases(c) },
		"semaphore with a count": func(c *framework.Client) taker {
			return takerOfLeases(c, locks.WithLeaseCount(unsteady{}))
		},
	}
	for name, lock := range everyLock {
		all[name] = func(c *framework.Client) taker { return takerOf(lock(c)) }
	}
	all["read lock"] = func(c *framework.Client) taker {
		return takerOf(locks.NewInterProcessReadWriteLock(c, lockPath).ReadLock())
	}
	all["revocable mutex"] = func(c *framework.Client) taker { // held, with its watch, while another lock is not to be had
		revocable := locks.NewInterProcessMutex(c, "/locks/revocable")
		revocable.MakeRevocable(func(*locks.Hold) {})
		return takerOf(locks.NewInterProcessMultiLock(revocable, locks.NewInterProcessMutex(c, lockPath)))
	}
	return all
}

// patience are the ways in which a taker gives up waiting.
var patience = []func(ctx context.Context, t taker, pause time.Duration) error{
	func(ctx context.Context, t taker, pause time.Duration) error { // it is cancelled
		ctx, cancel := context.WithCancel(ctx)
		defer time.AfterFunc(pause, cancel).Stop()
		return t.acquire(ctx)
	},
	func(ctx context.Context, t taker, pause time.Duration) error { return t.try(ctx, pause) },
	func(ctx context.Context, t taker, pause time.Duration) error { // which may wait for a connection
		ctx, cancel := context.WithTimeout(ctx, pause)
		defer cancel()
		return t.try(ctx, 0)
	},
}

// TestAcquireFailedLeavesNothing has acquires of every lock come to nothing in every way there is.
func TestAcquireFailedLeavesNothing(t *testing.T) {
	ctx, kinds := t.Context(), takers()
	hold := func(client *framework.Client) chaos.Remains {
		for name, kind := range kinds {
			switch name {
			case "read lock": // which only a writer keeps out
				kind = kinds["write lock"]
			case "revocable mutex": // which is free, the other lock is not
				kind = kinds["mutex"]
			}
			if err := kind(inNamespace(client, name)).acquire(ctx); err != nil {
				t.Fatal(err)
			}
		}
		held := len(kinds) + 1 + 2*(leases-1)            // the multi lock has two nodes, each semaphore all its leases
		return chaos.Remains{Nodes: held, Watches: held} // the holders watch their own nodes
	}
	contend := func(s *chaos.Test, client *framework.Client, random *rand.Rand, all *sync.WaitGroup) {
		for _, name := range slices.Sorted(maps.Keys(kinds)) {
			taker := kinds[name](inNamespace(client, name))
			for range testenv.Size(1, 1, 20) {
				for _, take := range patience {
					pause := time.Duration(1+random.IntN(30_000)) * time.Microsecond // 0 would wait for a connection alone
					all.Go(func() {
						if take(ctx, taker, pause) == nil {
							s.Errorf("two have a %s", name)
						}
					})
				}
			}
		}
	}
	testclient.LeavesNothing(t, hold, contend, "recipes/locks", "internal/waitqueue")
}

// inNamespace gives each kind of lock a place of its own: all have the same path.
func inNamespace(client *framework.Client, kind string) *framework.Client {
	return client.UsingNamespace(strings.ReplaceAll(kind, " ", "-"))
}
