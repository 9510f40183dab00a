package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// Items are removed several at a time, all or none. One that another takes meanwhile does not keep back those beside
// it.
func TestItemIsConsumedBesideOneThatAnotherTakes(t *testing.T) {
	t.Parallel()
	together, lost, reported := consumeBesideAnother(t, false)
	if diff := cmp.Diff(together[1:], lost); diff != "" || reported != 0 {
		t.Errorf("not consumed (-want +got), with %d reported:\n%s", reported, diff)
	}
}

// When they are removed one by one after that and the answers are lost, each that is not consumed is reported.
func TestRemovalOneByOneWithLostReplyIsReported(t *testing.T) {
	t.Parallel()
	together, lost, reported := consumeBesideAnother(t, true)
	if diff := cmp.Diff(together, lost); diff != "" || reported != len(lost) {
		t.Errorf("not consumed (-want +got), with %d reported:\n%s", reported, diff)
	}
}

// consumeBesideAnother has a consumer remove two items together of which another takes the last, and the answers to
// their removals one by one be lost if cut. It returns the two, what was not consumed, and how many times that was
// reported.
func consumeBesideAnother(t *testing.T, cut bool) (together, lost []string, reported int) {
	t.Helper()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	direct := testenv.Addr(t) + chroot
	other := newClient(t, direct)
	producer := start(t, built(builder(t, other, nil).BuildQueue()))
	items := numbered(20)
	for _, item := range items {
		must(t, producer.Put(ctx, item))
	}
	must(t, producer.FlushPuts(ctx))

	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect)
	must(t, client.BlockUntilConnected(ctx))
	held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldRequest})
	got, failed := newBasket(t), newFailures()
	q := built(builder(t, client, got.consume).OnError(failed.notify).Prefetch(1).BuildQueue())
	must(t, q.Start())
	must(t, held.Wait(ctx))
	together = removedTogether(t, proxy.Faults())
	must(t, other.Delete().ForPath(ctx, queuePath+"/queue-"+fmt.Sprintf("%010d", slices.Index(items, together[1]))))
	if cut {
		loseTwo(t, proxy.Faults(), held)
	} else {
		held.Release()
	}
	awaitNothing(t, direct)
	must(t, q.Close())

	consumed := got.await(0)
	if !slices.IsSortedFunc(consumed, func(a, b string) int { return slices.Index(items, a) - slices.Index(items, b) }) {
		t.Errorf("consumed in the order %v", consumed)
	}
	for _, item := range items {
		if !slices.Contains(consumed, item) {
			lost = append(lost, item)
		}
	}
	for len(failed.errs) > 0 {
		if errors.Is(<-failed.errs, queue.ErrUncertain) {
			reported++
		}
	}
	return together, lost, reported
}

// loseTwo releases what is held, and loses the answers to the two removals behind it when both are sent and the first
// is done.
func loseTwo(t *testing.T, faults *curatortest.Faults, held *curatortest.Injection) {
	t.Helper()
	before := countOf(faults, "delete")
	removals := faults.Add(curatortest.Rule{Ops: []string{"delete"}, Action: curatortest.HoldReply})
	held.Release()
	must(t, removals.Wait(testenv.Context(t)))
	testenv.Eventually(t, func() bool { return countOf(faults, "delete") == before+2 }, "both are sent")
	faults.CutAll()
	removals.Remove()
}

// removedTogether returns the two items of the first transaction that removes items. Which these are depends on the
// pace of the consumer: one that is slow removes them one by one.
func removedTogether(t *testing.T, faults *curatortest.Faults) (items []string) {
	t.Helper()
	trace := faults.Trace()
	i := slices.IndexFunc(trace, func(e curatortest.TraceEntry) bool { return e.Op == "multi" && !e.Reply })
	for _, path := range strings.Split(trace[i].Path, ",") {
		number, err := strconv.Atoi(path[strings.LastIndex(path, "-")+1:])
		must(t, err)
		items = append(items, fmt.Sprint("item ", number))
	}
	if len(items) != 2 {
		t.Fatalf("%q are removed together", items)
	}
	return items
}
