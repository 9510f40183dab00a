package queue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// A consumer has listed the items. Before its claims arrive, another one has consumed the first: the claim of that
// leaves no lock, which would stay, and does not keep the consumer from the others.
func TestClaimOfItemThatIsConsumedLeavesNoLock(t *testing.T) {
	t.Parallel()
	for name, prefetch := range map[string]int{"one by one": 0, "ahead": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
				ctx, late, other := testenv.Context(t), clientAt(t, one, chroot), clientAt(t, two, chroot)
				fast := start(t, built(builder(t, other, nil).LockPath(lockPath).Prefetch(0).BuildQueue()))
				putAll(t, fast, "a", "b", "c")
				claim := one.Faults().Add(curatortest.Rule{
					Ops: []string{"create", "create2", "multi"}, Path: chroot + lockPath + "/*", Count: 1,
					Action: curatortest.HoldRequest,
				})
				got := newBasket(t)
				start(t, built(builder(t, late, got.consume).LockPath(lockPath).Prefetch(prefetch).BuildQueue()))
				must(t, claim.Wait(ctx))
				item := pullOne(t, fast)
				if item.Value != "a" {
					t.Errorf("the other consumer has %q", item.Value)
				}
				must(t, item.Done(ctx))
				claim.Release()
				if diff := cmp.Diff([]string{"b", "c"}, got.await(2)); diff != "" {
					t.Errorf("consumed (-want +got):\n%s", diff)
				}
				awaitEmpty(t, other)
			})
		})
	}
}
