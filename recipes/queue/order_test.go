package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// TestLostAnswerKeepsTheOrder loses each request or answer of a consumer, and of a puller, in turn. Without a lock path
// what is delivered is in the order of the puts.
func TestLostAnswerKeepsTheOrder(t *testing.T) {
	t.Parallel()
	for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter, curatortest.TruncateReply} {
		for _, pulls := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, pulls %t", action, pulls), func(t *testing.T) {
				t.Parallel()
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					for k, hit := 0, true; hit; k++ {
						hit = deliverWithLoss(t, place, chroot, curatortest.Rule{Skip: k, Count: 1, Action: action}, pulls)
					}
				})
			})
		}
	}
}

// deliverWithLoss reports whether the rule has hit.
func deliverWithLoss(
	t *testing.T, place testenv.Place, chroot string, rule curatortest.Rule, pulls bool,
) (hit bool) {
	t.Helper()
	const n = 30
	ctx, cancel := context.WithCancel(testenv.Context(t))
	defer cancel()
	others, client := clientAt(t, place, chroot), clientAt(t, place, chroot)
	for _, name := range names(t, others, queuePath) { // what Close has put back the last time
		must(t, others.Delete().ForPath(ctx, queuePath+"/"+name))
	}
	producer := built(builder(t, others, nil).BuildQueue())
	must(t, producer.Start())
	putAll(t, producer, numbered(n)...)
	must(t, producer.Close())
	rule.SessionID, rule.MayMiss = client.SessionID(), true
	slow := place.Faults().Add(curatortest.Rule{
		SessionID: client.SessionID(), Action: curatortest.DelayReply, Delay: time.Millisecond,
	})
	defer slow.Remove()
	in := place.Faults().Add(rule)
	defer in.Remove()
	got, errs := newBasket(t), newReports()
	consume := got.consume
	if pulls {
		consume = nil
	}
	q := built(builder(t, client, consume).OnError(errs.add).BuildQueue())
	must(t, q.Start())
	if pulls {
		go func() {
			for item, err := range q.Items(ctx) {
				if err != nil {
					return
				}
				got.add(item.Value)
			}
		}()
	}
	awaitEmpty(t, others)
	must(t, q.Close())
	last := -1
	for _, item := range got.await(0) {
		var number int
		if _, err := fmt.Sscanf(item, "item %d", &number); err != nil {
			t.Fatal(err)
		}
		if number <= last {
			t.Errorf("%v of request %d: item %d comes after %d, reported are %v",
				rule.Action, rule.Skip, number, last, errs.all())
		}
		last = number
	}
	return in.Hits() > 0
}
