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
	"github.com/gocurator/curator/retry"
)

func TestDoLockLostReturnsErrLockLost(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	failed := errors.New("on purpose")
	var hold string
	lose := map[string]func(work context.Context){
		"session": func(context.Context) {
			if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
				t.Error(err)
			}
		},
		"node": func(context.Context) { deleteNode(t, client, hold) },
	}
	for name, lose := range lose {
		for _, want := range []error{nil, failed, locks.ErrLockLost} {
			mu := locks.NewInterProcessMutex(client, lockPath)
			err := locks.Do(ctx, mu, func(work context.Context) error {
				nodes, err := mu.ParticipantNodes(ctx)
				if err != nil || len(nodes) != 1 {
					t.Fatalf("%v, error %v", nodes, err)
				}
				hold = nodes[0]
				lose(work)
				<-work.Done()
				return want
			})
			if !errors.Is(err, locks.ErrLockLost) || want != nil && !errors.Is(err, want) {
				t.Errorf("%s lost, the function fails with %v: %v", name, want, err)
			}
			if want == locks.ErrLockLost && err != want {
				t.Errorf("reported twice: %v", err)
			}
		}
	}
	awaitNothing(t, connect)
}

// inDarkness runs a test in virtual time whose client tries for ever; dark takes its connection away.
func inDarkness(t *testing.T, test func(t *testing.T, client *framework.Client, dark func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.InMemory())
		client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
			framework.WithRetryPolicy(retry.Forever(10*time.Millisecond)), framework.WithMaxCloseWait(time.Second))
		test(t, client, func() {
			t.Cleanup(server.Faults().RefuseConnects())
			server.Faults().CutAll()
		})
	})
}

func TestDoWithoutConnectionEndsWithContext(t *testing.T) {
	inDarkness(t, func(t *testing.T, client *framework.Client, dark func()) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := locks.Do(ctx, locks.NewInterProcessMutex(client, lockPath), func(context.Context) error {
			dark()
			return nil
		})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func TestDoContextEndedDoesNotWaitForRelease(t *testing.T) {
	inDarkness(t, func(t *testing.T, client *framework.Client, dark func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		var ended time.Time
		err := locks.Do(ctx, locks.NewInterProcessMutex(client, lockPath), func(work context.Context) error {
			dark()
			cancel()
			ended = time.Now()
			return work.Err()
		})
		if took := time.Since(ended); err != context.Canceled || took != 0 {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

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

func TestReleaseWithContextOfLostHold(t *testing.T) {
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

func TestReleaseWithHoldContextWithoutConnection(t *testing.T) {
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

func TestNilHoldIsReleased(t *testing.T) {
	ctx := testenv.Context(t)
	for _, hold := range []*locks.Hold{nil, {}} {
		if err := hold.Release(ctx); err != nil {
			t.Errorf("release: %v", err)
		}
		if cause := context.Cause(hold.Context()); !errors.Is(cause, locks.ErrReleased) {
			t.Errorf("its context ended with %v", cause)
		}
		if hold.Path() != "" || hold.Token() != 0 || hold.Tokens() != nil {
			t.Errorf("path %q, tokens %v", hold.Path(), hold.Tokens())
		}
	}
	for _, lease := range []*locks.Lease{nil, {}} {
		if err := lease.Return(ctx); err != nil {
			t.Errorf("return: %v", err)
		}
		if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrReleased) {
			t.Errorf("its context ended with %v", cause)
		}
		if _, err := lease.Data(ctx); !errors.Is(err, locks.ErrReleased) || lease.Path() != "" || lease.NodeName() != "" {
			t.Errorf("path %q, node %q, data %v", lease.Path(), lease.NodeName(), err)
		}
	}
}

func TestReleaseWithoutOwnerNamesTheRemedy(t *testing.T) {
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
