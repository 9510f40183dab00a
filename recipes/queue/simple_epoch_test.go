package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// TestRemovalOfAnElementThatIsMadeAnewMeanwhileIsReported deletes the path of a simple queue while a removal is on its
// way, and offers an element that gets the same name. The path may be changed before, so that it is watched no longer.
func TestRemovalOfAnElementThatIsMadeAnewMeanwhileIsReported(t *testing.T) {
	t.Parallel()
	for _, isChanged := range []bool{false, true} {
		for name := range removals(nil) {
			t.Run(fmt.Sprintf("%s, changed: %t", name, isChanged), func(t *testing.T) {
				t.Parallel()
				removeElementMadeAnew(t, name, isChanged)
			})
		}
	}
}

func removeElementMadeAnew(t *testing.T, name string, isChanged bool) {
	t.Helper()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	others := newClient(t, testenv.Addr(t)+chroot)
	q, direct := simple(newClient(t, connect)), simple(others)
	makePath := func() { // no container, which the server removes when it is empty
		_, err := others.Create().ForPath(ctx, queuePath, nil)
		must(t, err)
	}
	makePath()
	offer(t, direct, "old")
	held := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"delete", "multi"}, Path: chroot + queuePath + "/*", Count: 1, Action: curatortest.HoldRequest,
	})
	type result struct {
		data []byte
		err  error
	}
	removed := make(chan result, 1)
	go func() {
		data, err := removals(q)[name](ctx)
		removed <- result{data, err}
	}()
	must(t, held.Wait(ctx))
	want(t, "old")(direct.Poll(ctx))
	if isChanged {
		_, err := others.SetData().ForPath(ctx, queuePath, []byte("changed"))
		must(t, err)
	}
	must(t, others.Delete().ForPath(ctx, queuePath))
	makePath()
	offer(t, direct, "new")
	held.Release()
	r := <-removed
	left := drain(t, direct)
	if !errors.Is(r.err, queue.ErrUncertain) && string(r.data) != "new" && !slices.Contains(left, "new") {
		t.Errorf("got %q, %v, left are %q: the new element is gone and nobody has it", r.data, r.err, left)
	}
}

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
