package locks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/locks"
)

// The machine is suspended for longer than the session lasts, just before the answer that grants the lock is read.
// Timers stand still meanwhile, so nothing has ended the session when the answer is there.
func TestAcquireMachineSuspendedIsNotGrantedInEndedSession(t *testing.T) {
	for name, op := range map[string]string{"mutex": "getChildren2", "semaphore": "multi"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				client, suspend := testclient.Suspendable(t, server)
				before := client.Session()
				answer := server.Faults().Add(curatortest.Rule{
					Ops: []string{op, "getChildren"}, Count: 1, Action: curatortest.HoldReply,
				})
				var lock locks.InterProcessLock = locks.NewInterProcessMutex(client, lockPath)
				if name == "semaphore" {
					lock = locks.NewInterProcessSemaphoreMutex(client, lockPath)
				}
				granted := make(chan *locks.Hold, 1)
				go func() { granted <- acquire(t, testenv.Context(t), lock) }()
				if err := answer.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				suspend()
				answer.Release()
				hold := <-granted
				if hold.Context().Err() == nil && client.Session() == before {
					t.Error("granted in a session that has ended")
				}
				synctest.Wait()
				if hold.Context().Err() != nil {
					t.Error("what was granted is lost at once")
				}
			})
		})
	}
}

func TestEveryLockMachineSuspendedIsLost(t *testing.T) {
	for name, lock := range everyLock {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, suspend := testclient.Suspendable(t, curatortest.NewServerT(t, curatortest.WithoutPort()))
				lock := lock(client)
				hold := acquire(t, t.Context(), lock)
				if !lock.IsAcquiredInThisProcess() {
					t.Error("it is not held before")
				}
				suspend()
				if lock.IsAcquiredInThisProcess() {
					t.Error("it is held")
				}
				wantLost(t, hold)
			})
		})
	}
}

func TestOwnerMachineSuspendedDoesNotReenter(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, ctx context.Context, rw *locks.InterProcessReadWriteLock){
		"re-entry": func(t *testing.T, ctx context.Context, rw *locks.InterProcessReadWriteLock) {
			if _, err := rw.WriteLock().Acquire(ctx); !errors.Is(err, locks.ErrLockLost) {
				t.Errorf("got %v", err)
			}
		},
		"try": func(t *testing.T, ctx context.Context, rw *locks.InterProcessReadWriteLock) {
			if _, err := rw.WriteLock().TryAcquire(ctx, 0); !errors.Is(err, locks.ErrLockLost) {
				t.Errorf("got %v", err)
			}
		},
		"is owned": func(t *testing.T, ctx context.Context, rw *locks.InterProcessReadWriteLock) {
			if rw.WriteLock().IsOwned(ctx) {
				t.Error("it is owned")
			}
		},
		"is acquired": func(t *testing.T, _ context.Context, rw *locks.InterProcessReadWriteLock) {
			if rw.WriteLock().IsAcquiredInThisProcess() {
				t.Error("it is held")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, suspend := testclient.Suspendable(t, curatortest.NewServerT(t, curatortest.WithoutPort()))
				rw := locks.NewInterProcessReadWriteLock(client, lockPath)
				ctx := locks.WithOwner(t.Context())
				acquire(t, ctx, rw.WriteLock())
				release(t, acquire(t, ctx, rw.WriteLock()))
				if !rw.WriteLock().IsOwned(ctx) {
					t.Error("it is not owned before")
				}
				suspend()
				use(t, ctx, rw)
			})
		})
	}
}

// The machine of the first lock's client is suspended while the second lock is granted: the multi lock starts again.
func TestMultiLockMachineSuspendedIsAcquiredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		first, suspend := testclient.Suspendable(t, server)
		second, _ := testclient.Suspendable(t, server)
		answer := server.Faults().Add(curatortest.Rule{
			Ops: []string{"getChildren2"}, Path: "/second", Count: 1, Action: curatortest.HoldReply,
		})
		multi := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(first, "/first"),
			locks.NewInterProcessMutex(second, "/second"))
		granted := make(chan *locks.Hold, 1)
		go func() { granted <- acquire(t, testenv.Context(t), multi) }()
		if err := answer.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		suspend()
		answer.Release()
		hold := <-granted
		if !multi.IsAcquiredInThisProcess() {
			t.Error("one of its locks is lost")
		}
		synctest.Wait()
		if hold.Context().Err() != nil {
			t.Error("what was granted is lost at once")
		}
	})
}
