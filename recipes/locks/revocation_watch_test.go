package locks_test

import (
	"strings"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

func TestRevokeTwiceCallsHolderOnce(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	mu := locks.NewInterProcessMutex(client, lockPath)
	requested := make(chan *locks.Hold, 10)
	mu.MakeRevocable(func(hold *locks.Hold) { requested <- hold })
	hold := acquire(t, ctx, mu)
	watched := func() bool { return strings.Contains(watches(t), hold.Path()) }
	testenv.Eventually(t, watched, "the holder waits for a request")
	for range 3 { // the event of each is queued before the answer of its write
		if err := locks.Revoke(ctx, client, hold.Path()); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, func() bool { return len(requested) > 0 && watched() },
			"the request came, and the node is watched again")
	}
	if err := client.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(requested); n != 1 {
		t.Errorf("%d requests", n)
	}
	release(t, hold)
}

// The event of the second request is behind the answer that has the first.
func TestRevokeConcurrentCallsHolderOnce(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	client, proxy := proxied(t, chroot)
	mu := locks.NewInterProcessMutex(client, lockPath)
	requested := make(chan *locks.Hold, 10)
	mu.MakeRevocable(func(hold *locks.Hold) { requested <- hold })
	hold := acquire(t, ctx, mu)
	testenv.Eventually(t, func() bool { return strings.Contains(watches(t), hold.Path()) },
		"the holder waits for a request")
	read := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldReply})
	other := newClient(t, testenv.Addr(t)+chroot)
	for range 2 {
		if err := locks.Revoke(ctx, other, hold.Path()); err != nil {
			t.Fatal(err)
		}
		if err := read.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	read.Release()
	receive(t, requested)
	if err := client.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(requested); n != 0 {
		t.Errorf("%d more requests", n)
	}
	release(t, hold)
}

func TestRevokeAfterOutageCallsHolder(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect, framework.WithRetryPolicy(retry.NTimes(0, 0)))
	if err := client.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.CutBefore})
	mu := locks.NewInterProcessMutex(client, lockPath)
	requested := make(chan *locks.Hold, 1)
	mu.MakeRevocable(func(hold *locks.Hold) { requested <- hold })
	hold := acquire(t, ctx, mu)
	if err := cut.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := locks.Revoke(ctx, newClient(t, testenv.Addr(t)+chroot), hold.Path()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-requested:
	case <-ctx.Done():
		t.Error("no request came")
	}
	release(t, hold)
}

// Java and clients without compression read the request, and write one.
func TestRevokeDataIsNotCompressed(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client, plain := newClient(t, connect, framework.WithCompression()), newClient(t, connect)
	mu := locks.NewInterProcessMutex(client, lockPath)
	requested := make(chan *locks.Hold, 1)
	mu.MakeRevocable(func(hold *locks.Hold) { requested <- hold })
	for _, other := range []*framework.Client{plain, client} {
		hold := acquire(t, ctx, mu)
		if err := locks.Revoke(ctx, other, hold.Path()); err != nil {
			t.Fatal(err)
		}
		receive(t, requested)
		if data, err := plain.GetData().ForPath(ctx, hold.Path()); err != nil || string(data) != "__REVOKE__" {
			t.Errorf("data %q, error %v", data, err)
		}
		release(t, hold)
	}
}
