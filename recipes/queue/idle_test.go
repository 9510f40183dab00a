package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// The nodes of the namespace and of the paths are containers, which a server of ZooKeeper 3.10 removes if they are
// never used.
func TestQueueThatWasNeverUsedGetsItsFirstItem(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"a server": false, "an old server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.WithoutUnusedContainers(t, func(t *testing.T, place testenv.Place, idle func()) {
				if old {
					place.Faults().Add(curatortest.Rule{
						Ops: []string{"addWatch"}, Action: curatortest.ReplyErrorThenCut, Err: framework.ErrUnimplemented,
					})
				}
				in := func(namespace string) *framework.Client {
					return clientAt(t, place, "", framework.WithNamespace(namespace))
				}
				locked, unlocked, sharded := newBasket(t), newBasket(t), newBasket(t)
				start(t, built(builder(t, in("a/locked"), locked.consume).LockPath(lockPath).BuildQueue()))
				toLocked := start(t, built(builder(t, in("a/locked"), nil).LockPath(lockPath).MaxItems(10).BuildQueue()))
				start(t, built(builder(t, in("a/unlocked"), unlocked.consume).BuildQueue()))
				toUnlocked := start(t, built(builder(t, in("a/unlocked"), nil).BuildQueue()))
				shards := start(t, sharder(t, in("a/sharded"), leading(true), sharded.consume,
					queue.WithThresholdCheck(time.Second)))
				taken := make(chan error, 2)
				take := func() {
					_, err := simple(in("a/simple")).Take(context.WithoutCancel(t.Context()))
					taken <- err
				}
				go take()
				for n := range 2 {
					idle()
					idle() // the outer nodes go after the inner ones
					q, err := shards.Queue(testenv.Context(t))
					must(t, err)
					putAll(t, toLocked, "a", "b")
					putAll(t, toUnlocked, "a", "b")
					putAll(t, q, "a", "b")
					offer(t, simple(in("a/simple")), "a")
					locked.await(2*n + 2)
					unlocked.await(2*n + 2)
					sharded.await(2*n + 2)
					must(t, <-taken)
					if n == 0 {
						go take()
					}
				}
			})
		})
	}
}
