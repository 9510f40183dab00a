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
	"github.com/gocurator/curator/internal/testenv/testclient"
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
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
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

func TestDoLockLostInPartitionReturnsAtOnce(t *testing.T) {
	inDarkness(t, func(t *testing.T, client *framework.Client, dark func()) {
		t.Helper()
		var lost time.Time
		err := locks.Do(t.Context(), locks.NewInterProcessMutex(client, lockPath), func(work context.Context) error {
			dark()
			<-work.Done()
			lost = time.Now()
			return nil
		})
		if !errors.Is(err, locks.ErrLockLost) || time.Since(lost) != 0 {
			t.Errorf("after %v: %v", time.Since(lost), err)
		}
	})
}

// In Java: TestInterProcessMutexBase.testLocker.
func TestDoFunctionFailsOrPanicsReleasesLock(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	mu := locks.NewInterProcessMutex(client, lockPath)
	failed := errors.New("failed")
	if err := locks.Do(ctx, mu, func(context.Context) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = locks.Do(ctx, mu, func(context.Context) error { panic("on purpose") })
	}()
	if mu.IsAcquiredInThisProcess() {
		t.Error("not released")
	}
	if err := locks.Do(ctx, mu, nil); !errors.Is(err, framework.ErrBadArguments) {
		t.Errorf("without a function the error is %v", err)
	}
	err := locks.Do(ctx, mu, func(work context.Context) error {
		if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
			return err
		}
		<-work.Done()
		return context.Cause(work)
	})
	if !errors.Is(err, locks.ErrLockLost) {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := locks.Do(ended, mu, func(context.Context) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	awaitNothing(t, connect)
}

func TestDoContextHasHold(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	if locks.HoldOf(ctx) != nil {
		t.Error("a context without a hold has one")
	}
	err := locks.Do(ctx, locks.NewInterProcessMutex(client, lockPath), func(ctx context.Context) error {
		hold := locks.HoldOf(ctx)
		if err := client.Delete().ForPath(ctx, hold.Path()); err != nil {
			return err
		}
		_, err := hold.Client().Create().ForPath(ctx, "/late", nil)
		return err
	})
	if !errors.Is(err, locks.ErrLockLost) {
		t.Errorf("error is %v", err)
	}
}

// In Java: TestInterProcessMutexBase.testLocker.
func TestEveryLockIsHeldDuringDo(t *testing.T) {
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		connect := testenv.ConnectString(t)
		l := lock(newClient(t, connect))
		ran := false
		err := locks.Do(testenv.Context(t), l, func(context.Context) error {
			ran = l.IsAcquiredInThisProcess()
			return nil
		})
		if err != nil || !ran || l.IsAcquiredInThisProcess() {
			t.Errorf("held while it ran: %t, afterwards: %t, error %v", ran, l.IsAcquiredInThisProcess(), err)
		}
		awaitNothing(t, connect)
	})
}

// The machine is suspended while the function of Do runs, which returns before any timer.
func TestDoMachineSuspendedReturnsErrLockLost(t *testing.T) {
	for name, lock := range everyLock {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, suspend := testclient.Suspendable(t, curatortest.NewServerT(t, curatortest.WithoutPort()))
				err := locks.Do(t.Context(), lock(client), func(context.Context) error {
					suspend()
					return nil
				})
				if !errors.Is(err, locks.ErrLockLost) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}
