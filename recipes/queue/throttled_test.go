package queue_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// eachThrottled runs test for each request of a client: a server with too much to do refuses that one and the next.
func eachThrottled(t *testing.T, test func(t *testing.T, client *framework.Client, direct string)) {
	t.Helper()
	testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
		chroot := testenv.Chroot(t)
		proxy, connect := newProxy(t, chroot)
		client := newClient(t, connect)
		must(t, client.BlockUntilConnected(testenv.Context(t)))
		throttled := proxy.Faults().Add(curatortest.Rule{
			Skip: k, Count: 2, Action: curatortest.ReplyError, Err: framework.ErrThrottledOp, MayMiss: true,
		})
		test(t, client, testenv.Addr(t)+chroot)
		return throttled.Hits() > 0
	})
}

func TestPutThrottledIsPut(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		eachThrottled(t, func(t *testing.T, client *framework.Client, direct string) {
			ctx := testenv.Context(t)
			producer := start(t, built(mode(builder(t, client, nil)).BuildQueue()))
			for _, item := range numbered(3) {
				must(t, producer.Put(ctx, item))
				must(t, producer.FlushPuts(ctx)) // with others behind it, the put would fail
			}
			got := newBasket(t)
			start(t, built(mode(builder(t, newClient(t, direct), got.consume)).BuildQueue()))
			if diff := cmp.Diff(numbered(3), got.await(3)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	})
}

func TestConsumerThrottledConsumesAll(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		eachThrottled(t, func(t *testing.T, client *framework.Client, direct string) {
			producer := start(t, built(mode(builder(t, newClient(t, direct), nil)).BuildQueue()))
			putAll(t, producer, numbered(3)...)
			got := newBasket(t)
			start(t, built(mode(builder(t, client, got.consume)).OnError(newFailures().notify).BuildQueue()))
			items := got.await(3)
			slices.Sort(items) // one that is refused waits a second, and the others do not
			if diff := cmp.Diff(numbered(3), items); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			awaitNothing(t, direct)
		})
	})
}

func TestSimpleQueueThrottledOffersAndTakes(t *testing.T) {
	t.Parallel()
	eachThrottled(t, func(t *testing.T, client *framework.Client, _ string) {
		q := simple(client)
		offer(t, q, "a", "b")
		want(t, "a")(q.Peek(testenv.Context(t)))
		want(t, "a")(q.Take(testenv.Context(t)))
		want(t, "b")(q.Poll(testenv.Context(t)))
		want(t, "")(q.Poll(testenv.Context(t)))
	})
}
