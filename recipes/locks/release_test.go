package locks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

func TestReleaseWithHoldContextWaitsForDelete(t *testing.T) {
	ctx := testenv.Context(t)
	type key struct{}
	for name, own := range map[string]func(hold *locks.Hold) (context.Context, context.CancelFunc){
		"its own": func(hold *locks.Hold) (context.Context, context.CancelFunc) { return hold.Context(), func() {} },
		"derived": func(hold *locks.Hold) (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.WithValue(hold.Context(), key{}, "value"), time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
				t.Helper()
				chroot := testenv.Chroot(t)
				client, proxy := proxied(t, chroot)
				hold := acquire(t, ctx, lock(client))
				answer := proxy.Faults().Add(curatortest.Rule{Ops: []string{"delete"}, Count: 1, Action: curatortest.HoldReply})
				released := make(chan error, 1)
				go func() {
					ctx, cancel := own(hold)
					defer cancel()
					released <- hold.Release(ctx)
				}()
				if err := answer.Wait(ctx); err != nil {
					t.Fatal(err)
				}
				if len(released) != 0 || !errors.Is(context.Cause(hold.Context()), locks.ErrReleased) {
					t.Errorf("not waited for, or not ended: %v", context.Cause(hold.Context()))
				}
				answer.Release()
				if err := <-released; err != nil {
					t.Errorf("got %v", err)
				}
				awaitNothing(t, testenv.Addr(t)+chroot)
			})
		})
	}
}

func TestReleaseWithContextOfLostHoldReportsLostSession(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	hold := acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath))
	deleteNode(t, client, hold.Path())
	wantLost(t, hold)
	if err := hold.Release(hold.Context()); err != nil {
		t.Errorf("the node is gone: %v", err)
	}
	hold = acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath))
	if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	wantLost(t, hold)
	if err := hold.Release(hold.Context()); !errors.Is(err, locks.ErrLockLost) {
		t.Errorf("the session is gone: %v", err)
	}
	awaitContenders(t, client, 0)
}

func TestReleaseWithHoldContextWithoutConnectionEndsInTime(t *testing.T) {
	for name, lock := range everyLock {
		t.Run(name, func(t *testing.T) {
			inDarkness(t, func(t *testing.T, client *framework.Client, dark func()) {
				t.Helper()
				hold := acquire(t, t.Context(), lock(client))
				other := acquire(t, t.Context(), locks.NewInterProcessMutex(client, "/other"))
				session := client.Session()
				dark()
				began := time.Now()
				ctx, cancel := context.WithTimeout(other.Context(), time.Second)
				defer cancel()
				if err := other.Release(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
					t.Errorf("with a deadline, after %v: %v", time.Since(began), err)
				}
				if err := hold.Release(hold.Context()); !errors.Is(err, locks.ErrLockLost) || session.Context().Err() == nil {
					t.Errorf("session ended with %v: %v", session.Context().Err(), err)
				}
			})
		})
	}
}

// The client tries for ever, and its session has ended in the partition: there is no answer to wait for.
func TestReleaseAfterLossInPartitionDoesNotWait(t *testing.T) {
	for name, lock := range everyLock {
		t.Run(name, func(t *testing.T) {
			inDarkness(t, func(t *testing.T, client *framework.Client, dark func()) {
				t.Helper()
				hold := acquire(t, t.Context(), lock(client))
				dark()
				wantLost(t, hold)
				began := time.Now()
				if err := hold.Release(t.Context()); err != nil || time.Since(began) != 0 {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}

func TestReleaseInPartitionEndsWithSession(t *testing.T) {
	for name, lock := range everyLock {
		t.Run(name, func(t *testing.T) {
			inDarkness(t, func(t *testing.T, client *framework.Client, dark func()) {
				t.Helper()
				hold := acquire(t, t.Context(), lock(client))
				var lost time.Time
				session := client.Session().Context()
				defer context.AfterFunc(session, func() { lost = time.Now() })()
				dark()
				err := hold.Release(t.Context())
				synctest.Wait()
				if err != nil || session.Err() == nil || !time.Now().Equal(lost) {
					t.Errorf("session ended with %v after %v: %v", session.Err(), lost, err)
				}
			})
		})
	}
}

// The client gives its session up before the server does. The delete in the background is sent in the next session.
func TestReleaseAfterLossDeletesInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
			framework.WithSessionTimeout(30*time.Second))
		hold := acquire(t, t.Context(), locks.NewInterProcessMutex(client, lockPath))
		restore := server.Faults().RefuseConnects()
		server.Faults().CutAll()
		wantLost(t, hold)
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if len(server.Children(lockPath)) != 1 {
			t.Error("the server has ended the session first")
		}
		restore()
		if err := client.BlockUntilConnected(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		if left := server.Children(lockPath); len(left) != 0 {
			t.Errorf("left are %v", left)
		}
	})
}

// What ends by itself bounds the waiting, whatever it is derived from.
func TestReleaseWithEndedDerivedContextDoesNotWait(t *testing.T) {
	inDarkness(t, func(t *testing.T, client *framework.Client, dark func()) {
		t.Helper()
		hold := acquire(t, t.Context(), locks.NewInterProcessMutex(client, lockPath))
		dark()
		ctx, cancel := context.WithCancel(hold.Context())
		cancel()
		began := time.Now()
		if err := hold.Release(ctx); !errors.Is(err, context.Canceled) || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestReleaseOfNilHoldDoesNothing(t *testing.T) {
	ctx := testenv.Context(t)
	if err := (*locks.Hold)(nil).Release(ctx); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := (*locks.Lease)(nil).Return(ctx); err != nil {
		t.Errorf("return: %v", err)
	}
}

func TestReleaseWithoutOwnerFails(t *testing.T) {
	ctx := testenv.Context(t)
	mu := locks.NewInterProcessMutex(newClient(t, testenv.ConnectString(t)), lockPath)
	hold := acquire(t, ctx, mu)
	err := mu.Release(ctx)
	want := "locks: release /locks/orders: not held by this owner: use locks.WithOwner, or release the Hold"
	if !errors.Is(err, locks.ErrNotOwner) || err.Error() != want {
		t.Errorf("got %v", err)
	}
	release(t, hold)
}

func TestReleaseWithEndedContextStillReleases(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	hold := acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := hold.Release(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	awaitContenders(t, client, 0)
}
