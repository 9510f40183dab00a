package locks_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// In Java: TestInterProcessMutex.testRevoking.
func TestRevokeCallsHolderWhichMayRelease(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	mu := locks.NewInterProcessMutex(client, lockPath)
	requested := make(chan *locks.Hold, 2)
	mu.MakeRevocable(func(h *locks.Hold) {
		requested <- h
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
	})
	other := newClient(t, connect)
	for range 2 { // it need not be made revocable again
		hold := acquire(t, ctx, mu)
		if data, err := client.GetData().ForPath(ctx, hold.Path()); err != nil || len(data) != 0 {
			t.Errorf("data %q, %v", data, err)
		}
		if err := locks.Revoke(ctx, other, hold.Path()); err != nil {
			t.Fatal(err)
		}
		if got := <-requested; got != hold {
			t.Error("the request is for another hold")
		}
		if cause := awaitEnd(t, ctx, hold); !errors.Is(cause, locks.ErrReleased) {
			t.Errorf("cause %v", cause)
		}
		release(t, acquire(t, ctx, locks.NewInterProcessMutex(other, lockPath)))
		testenv.Eventually(t, func() bool { return !strings.Contains(watches(t), hold.Path()) }, "no watch is left")
	}
}

func TestRevokeBeforeGrantIsNotMissed(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	first := acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath))
	mu := locks.NewInterProcessMutex(client, lockPath)
	requested := make(chan struct{})
	mu.MakeRevocable(func(*locks.Hold) { close(requested) })
	granted := make(chan *locks.Hold)
	go func() {
		h, err := mu.Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		granted <- h
	}()
	awaitContenders(t, client, 2)
	nodes, err := mu.ParticipantNodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := locks.Revoke(ctx, client, nodes[1]); err != nil {
		t.Fatal(err)
	}
	release(t, first)
	hold := <-granted
	<-requested
	release(t, hold)
}

func TestRevokeOtherDataIsIgnored(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	mu := locks.NewInterProcessMutex(client, lockPath)
	requested := make(chan struct{}, 1)
	mu.MakeRevocable(func(*locks.Hold) { requested <- struct{}{} })
	hold := acquire(t, ctx, mu)
	for _, data := range []string{"__REVOKE", "__REVOKE__ ", ""} {
		if _, err := client.SetData().ForPath(ctx, hold.Path(), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := locks.Revoke(ctx, client, hold.Path()); err != nil { // and the watch has survived them
		t.Fatal(err)
	}
	<-requested
	if len(requested) != 0 {
		t.Error("a second request")
	}
	release(t, hold)
}

// The request is not compressed: Java's would not be read else.
func TestRevokeNotHonoredKeepsWaiterWaiting(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	first := newClient(t, connect, framework.WithCompression())
	hold := acquire(t, ctx, locks.NewInterProcessMutex(first, lockPath))
	if err := locks.Revoke(ctx, first, hold.Path()); err != nil {
		t.Fatal(err)
	}
	next := acquireLater(t, ctx,
		locks.NewInterProcessMutex(newClient(t, connect, framework.WithCompression()), lockPath))
	awaitBehind(t, hold, next)
	release(t, hold)
	release(t, receive(t, next))
}

// Operations of a retry loop are tried once. Those of a hold that outlives it are not.
func TestRevokeAfterRetryLoopOfAcquireCallsHolder(t *testing.T) {
	ctx := testenv.Context(t)
	client, proxy := proxied(t, testenv.Chroot(t))
	unhandled := make(chan framework.UnhandledError, 1000)
	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) { unhandled <- e })
	mu := locks.NewInterProcessMutex(client, lockPath)
	requested := make(chan struct{}, 1)
	mu.MakeRevocable(func(*locks.Hold) { requested <- struct{}{} })
	var hold *locks.Hold
	err := client.CallWithRetry(ctx, func(ctx context.Context) (err error) {
		hold, err = mu.Acquire(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	exists := proxy.Faults().Add(curatortest.Rule{Ops: []string{"exists"}, Count: 1, Action: curatortest.CutBefore})
	if _, err := client.CheckExists().ForPath(hold.Context(), lockPath); err != nil || exists.Hits() != 1 {
		t.Errorf("error %v after %d cuts", err, exists.Hits())
	}
	read := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.CutBefore})
	if err := locks.Revoke(ctx, client, hold.Path()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-requested:
	case <-ctx.Done():
		t.Fatal("no request came")
	}
	if read.Hits() != 1 || len(unhandled) != 0 {
		t.Errorf("%d cuts, %d unhandled errors", read.Hits(), len(unhandled))
	}
	release(t, hold)
}
