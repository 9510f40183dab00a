package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// TestTakesOfOneValueWithLostReplies cuts the connection of several Takes that share a value before and after each of
// their requests in turn.
func TestTakesOfOneValueWithLostReplies(t *testing.T) {
	t.Parallel()
	testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
		return takeTogetherWithCut(t, action, k)
	})
}

func takeTogetherWithCut(t *testing.T, action curatortest.Action, k int) (hit bool) {
	t.Helper()
	const n = 4
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect)
	must(t, client.BlockUntilConnected(ctx))
	cut := proxy.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
	q, direct := simple(client), simple(newClient(t, testenv.Addr(t)+chroot))
	type result struct {
		data string
		err  error
	}
	results := make(chan result, n)
	for range n {
		go func(ctx context.Context) {
			data, err := q.Take(ctx)
			if err != nil {
				data = dataOf(t, err)
			}
			results <- result{string(data), err}
		}(ctx)
	}
	offer(t, direct, numbered(n)...)
	times := make(map[string]int)
	for range n {
		r := <-results
		times[r.data]++
		if r.err != nil && !errors.Is(r.err, queue.ErrUncertain) {
			t.Errorf("%v of request %d: %v", action, k, r.err)
		}
	}
	for _, element := range numbered(n) {
		if times[element] != 1 {
			t.Errorf("%v of request %d: %q is given %d times", action, k, element, times[element])
		}
	}
	return cut.Hits() > 0
}
