package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// checkPause is the time after which a consumer counts the nodes of a queue without an event.
const checkPause = time.Minute

// inMinutes runs a test that waits for minutes, in virtual time on any server.
func inMinutes(t *testing.T, test func(t *testing.T, place *curatortest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, curatortest.NewServerT(t, curatortest.WithoutPort())) })
}

// TestIdleConsumerCountsNodesOnceAMinute has a node in the queue that is not an item.
func TestIdleConsumerCountsNodesOnceAMinute(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		inMinutes(t, func(t *testing.T, place *curatortest.Server) {
			ctx, client := testenv.Context(t), clientAt(t, place, "")
			_, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, queuePath+"/foreign", nil)
			must(t, err)
			start(t, built(mode(builder(t, client, newBasket(t).consume)).BuildQueue()))
			awaitSilence(t, place.Faults())
			place.Faults().ResetTrace()
			counts := curatortest.Rule{Ops: []string{"exists"}, Skip: 1, Action: curatortest.HoldRequest, MayMiss: true}
			tooMany := place.Faults().Add(counts) // they would leave no time to pass
			defer tooMany.Remove()
			<-time.After(checkPause + 5*time.Second)
			if diff := cmp.Diff(map[string]int{"exists": 1}, sent(place.Faults())); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	})
}

// TestItemIsDeletedBeforeNodesAreCounted has an item take so long that the nodes are counted when it is done.
func TestItemIsDeletedBeforeNodesAreCounted(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		inMinutes(t, func(t *testing.T, place *curatortest.Server) {
			client, g := clientAt(t, place, ""), newGate("slow")
			defer g.open()
			q := start(t, built(mode(builder(t, client, func(_ context.Context, item string) error {
				g.pass(item)
				return nil
			})).BuildQueue()))
			awaitSilence(t, place.Faults())
			place.Faults().ResetTrace()
			putAll(t, q, "slow")
			g.awaitReached(t)
			<-time.After(checkPause)
			g.open()
			if n := awaitSilence(t, place.Faults()); n["exists"] != 1 || n["getChildren2"] > 0 {
				t.Errorf("requests: %v", n)
			}
		})
	})
}

// TestPathMadeAnewWhileNodesAreCounted has the queue have as many nodes as before.
func TestPathMadeAnewWhileNodesAreCounted(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		inMinutes(t, func(t *testing.T, place *curatortest.Server) {
			ctx, others, client := testenv.Context(t), clientAt(t, place, ""), clientAt(t, place, "")
			producer := start(t, built(mode(builder(t, others, nil)).BuildDelayQueue()))
			must(t, producer.Put(ctx, "old", time.Now().Add(time.Hour)))
			must(t, producer.FlushPuts(ctx))
			got := newBasket(t)
			start(t, built(mode(builder(t, client, got.consume)).BuildDelayQueue()))
			awaitSilence(t, place.Faults())
			count := place.Faults().Add(curatortest.Rule{
				Ops: []string{"exists"}, SessionID: client.SessionID(), Count: 1, Action: curatortest.HoldRequest,
			})
			must(t, count.Wait(ctx))
			deleteAtOnce(t, others)
			must(t, producer.Put(ctx, "new", time.Now().Add(time.Second)))
			must(t, producer.FlushPuts(ctx))
			count.Release()
			got.awaitSoon(1)
		})
	})
}
