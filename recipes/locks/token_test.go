package locks_test

import (
	"slices"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

func TestDowngradedWriterKeepsToken(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	rw, me := newReadWriteLock(t, connect), locks.WithOwner(ctx)
	writing := acquire(t, me, rw.WriteLock())
	reading := acquire(t, me, rw.ReadLock())
	if reading.Token() != writing.Token() || !slices.Equal(reading.Tokens(), writing.Tokens()) {
		t.Errorf("reads with %d, writes with %d", reading.Token(), writing.Token())
	}
	release(t, writing)
	again := acquire(t, me, rw.ReadLock()) // re-entered
	beside := acquire(t, ctx, newReadWriteLock(t, connect).ReadLock())
	if again.Token() != reading.Token() || beside.Token() <= reading.Token() {
		t.Errorf("reads with %d, then %d, another with %d", reading.Token(), again.Token(), beside.Token())
	}
	for _, hold := range []*locks.Hold{reading, again, beside} {
		release(t, hold)
	}
	next := acquire(t, ctx, rw.WriteLock())
	if next.Token() <= beside.Token() {
		t.Errorf("the next writes with %d after %d", next.Token(), beside.Token())
	}
	release(t, next)
}

// The locks are taken in another order than their nodes were created before: each has its own tokens.
func TestMultiLockTokensGrowForEachLock(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	a, b := locks.NewInterProcessMutex(client, "/a"), locks.NewInterProcessMutex(client, "/b")
	c := locks.NewInterProcessSemaphoreMutex(client, "/c")
	multi := locks.NewInterProcessMultiLock(a, locks.NewInterProcessMultiLock(b, c))
	var last []int64
	for range 3 {
		hold := acquire(t, ctx, multi)
		tokens := hold.Tokens()
		if len(tokens) != 3 || tokens[0] != hold.Token() || slices.Max(tokens) != tokens[2] {
			t.Fatalf("tokens %v, the first is %d", tokens, hold.Token())
		}
		for i := range last {
			if tokens[i] <= last[i] {
				t.Errorf("tokens %v after %v", tokens, last)
			}
		}
		last = slices.Clone(tokens)
		tokens[0] = 0
		if hold.Token() != last[0] {
			t.Error("the tokens are shared")
		}
		release(t, hold)
		one := acquire(t, ctx, b)
		if !slices.Equal(one.Tokens(), []int64{one.Token()}) || one.Token() <= last[1] {
			t.Errorf("tokens %v of one lock after %v", one.Tokens(), last)
		}
		last[1] = one.Token()
		release(t, one)
	}
}
