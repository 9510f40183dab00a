package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// unreadable is a codec of a consumer that can read no item.
type unreadable struct{ codec.Text }

func (unreadable) Decode([]byte) (string, error) { return "", errors.New("an unknown format") }

// TestLateUnlockSparesTheLockOfAnother has a consumer unlock an item while its connection is lost. Before it is back
// another consumer has locked the item.
func TestLateUnlockSparesTheLockOfAnother(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		action curatortest.Action
		expire bool
	}{
		"the answer to the unlock is lost":                      {curatortest.CutAfter, false},
		"the unlock is lost, and the session ends":              {curatortest.CutBefore, true},
		"the answer to the unlock is lost and the session ends": {curatortest.CutAfter, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, chroot := testenv.Context(t), testenv.Chroot(t)
			direct := testenv.Addr(t) + chroot
			put := newClient(t, direct)
			producer := start(t, built(builder(t, put, nil).LockPath(lockPath).BuildQueue()))
			putAll(t, producer, "a")

			proxy, connect := newProxy(t, chroot)
			client := newClient(t, connect)
			must(t, client.BlockUntilConnected(ctx))
			late := queue.NewBuilder(client, newBasket(t).consume, unreadable{}, queuePath).
				LockPath(lockPath).OnError(newReports().add)
			unlock := proxy.Faults().Add(curatortest.Rule{
				Ops: []string{"delete", "multi"}, Path: chroot + lockPath + "/*", Count: 1, Action: tt.action,
			})
			restore := proxy.Faults().RefuseConnects()
			start(t, built(late.BuildQueue()))
			must(t, unlock.Wait(ctx))

			g := newGate("a")
			defer g.open()
			holder := newClient(t, direct)
			start(t, built(builder(t, holder, func(_ context.Context, item string) error {
				g.pass(item)
				return nil
			}).LockPath(lockPath).BuildQueue()))
			if tt.expire {
				must(t, testenv.Server(t).ExpireSession(client.SessionID()))
			}
			g.awaitReached(t)
			wantOneHolder(t, proxy, direct, func() { restore(); must(t, client.BlockUntilConnected(ctx)) }, g)
		})
	}
}

// wantOneHolder fails if an item that is held at a gate is delivered to yet another consumer after something has
// happened.
func wantOneHolder(t *testing.T, proxy *curatortest.Proxy, direct string, happen func(), g *gate) {
	t.Helper()
	third := newBasket(t)
	start(t, built(builder(t, newClient(t, direct), third.consume).LockPath(lockPath).BuildQueue()))
	happen()
	awaitSilence(t, proxy.Faults())
	if items := third.await(0); len(items) > 0 {
		t.Errorf("%q is delivered while another consumer works on it", items)
	}
	if locks := children(t, direct, lockPath); len(locks) != 1 {
		t.Errorf("locks %q of an item that is being consumed", locks)
	}
	g.open()
	awaitNothing(t, direct)
}

// TestUnlockAfterLockWasDeletedSparesTheLockOfAnother has an operator delete the lock of an item, or the lock path,
// while a consumer works on it. When that one is done another has locked the item.
func TestUnlockAfterLockWasDeletedSparesTheLockOfAnother(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(ctx context.Context, client *framework.Client, lock string) error{
		"the lock": func(ctx context.Context, client *framework.Client, lock string) error {
			return client.Delete().ForPath(ctx, lock)
		},
		"the lock path": func(ctx context.Context, client *framework.Client, _ string) error {
			return client.Delete().Quietly().DeletingChildrenIfNeeded().ForPath(ctx, lockPath)
		},
	} {
		for how, failure := range map[string]error{"done": nil, "put back": errors.New("broken")} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					ctx, client, others := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
					first, second, errs := newGate("a"), newGate("a"), newReports()
					defer first.open()
					defer second.open()
					q := built(builder(t, client, func(_ context.Context, item string) error {
						first.pass(item)
						return failure
					}).LockPath(lockPath).OnError(errs.add).BuildQueue())
					must(t, q.Start())
					awaitSilence(t, place.Faults()) // it watches
					putAll(t, start(t, built(builder(t, others, nil).LockPath(lockPath).BuildQueue())), "a")
					first.awaitReached(t)
					must(t, remove(ctx, others, lockPath+"/"+names(t, others, lockPath)[0]))
					start(t, built(builder(t, others, func(_ context.Context, item string) error {
						second.pass(item)
						return nil
					}).LockPath(lockPath).BuildQueue()))
					second.awaitReached(t)
					awaitSilence(t, place.Faults()) // the event of the deletion has arrived
					first.open()
					must(t, q.Close())
					if items, locks := names(t, others, queuePath), names(t, others, lockPath); len(items)+len(locks) != 2 {
						t.Errorf("there are the items %q and the locks %q while a consumer works on one", items, locks)
					}
					if err := errs.paths()[queuePath+"/queue-0000000000"]; !errors.Is(err, queue.ErrLockLost) {
						t.Errorf("reported is %v", errs.all())
					}
					second.open()
					awaitEmpty(t, others)
				})
			})
		}
	}
}

// holders records the holder of each item, for a test in which an item must not have two holders at once.
type holders struct {
	tb testing.TB

	mu        sync.Mutex
	of        map[string]string // the holder by the item
	delivered map[string]int
}

func newHolders(tb testing.TB) *holders {
	tb.Helper()
	return &holders{tb: tb, of: make(map[string]string), delivered: make(map[string]int)}
}

func (h *holders) hold(item, who string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other, held := h.of[item]; held {
		h.tb.Errorf("%s has %q, which %s holds", who, item, other)
	}
	h.of[item] = who
	h.delivered[item]++
}

func (h *holders) giveUp(item string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, item)
}

// twoPullers returns two ways to pull from one client: two loops of a queue, or a loop of each of two queues.
func twoPullers(t *testing.T, client *framework.Client, queues int) (pullers []puller) {
	t.Helper()
	for range queues {
		q := start(t, built(builder(t, client, nil).LockPath(lockPath).BuildQueue()))
		pullers = append(pullers, q)
	}
	return []puller{pullers[0], pullers[queues-1]}
}

// TestItemIsHeldByOneOfTwoPullersOfOneClient has two pullers of one session try to lock one item at the same time, and
// one of the answers lost.
func TestItemIsHeldByOneOfTwoPullersOfOneClient(t *testing.T) {
	t.Parallel()
	for _, queues := range []int{1, 2} {
		for lost := range 3 { // which of the creates of the lock; the last loses none
			t.Run(fmt.Sprintf("%d queues, answer %d lost", queues, lost), func(t *testing.T) {
				t.Parallel()
				pullTogether(t, queues, lost)
			})
		}
	}
}

func pullTogether(t *testing.T, queues, lost int) {
	t.Helper()
	ctx, cancel := context.WithCancel(testenv.Context(t))
	defer cancel()
	chroot := testenv.Chroot(t)
	direct := testenv.Addr(t) + chroot
	putAll(t, start(t, built(builder(t, newClient(t, direct), nil).LockPath(lockPath).BuildQueue())), "a")
	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect)
	must(t, client.BlockUntilConnected(ctx))
	faults := proxy.Faults()
	// Both have listed the item before one of them has locked it.
	lists := faults.Add(curatortest.Rule{
		Ops: []string{"getChildren", "getChildren2"}, Path: chroot + queuePath, Count: 1, Action: curatortest.HoldReply,
	})
	if lost < 2 {
		faults.Add(curatortest.Rule{
			Ops: []string{"create", "create2", "multi"}, Path: chroot + lockPath + "/*",
			Skip: lost, Count: 1, Action: curatortest.CutAfter, MayMiss: queues == 1, // one queue may know its other loop
		})
	}
	items := make(chan queue.Item[string], 10)
	var pulling sync.WaitGroup
	defer pulling.Wait()
	defer cancel()
	for _, p := range twoPullers(t, client, queues) {
		pulling.Go(func() {
			for item, err := range p.Items(ctx) {
				if err != nil {
					return
				}
				items <- item
			}
		})
	}
	must(t, lists.Wait(ctx))
	testenv.Eventually(t, func() bool { return listsOf(faults, chroot+queuePath) >= 2 }, "both list")
	lists.Release()
	var held queue.Item[string]
	select {
	case held = <-items:
	case <-ctx.Done():
		t.Fatal("the item is not delivered")
	}
	third := newBasket(t)
	start(t, built(builder(t, newClient(t, direct), third.consume).LockPath(lockPath).BuildQueue()))
	awaitSilence(t, faults)
	if n := len(items) + len(third.await(0)); n > 0 {
		t.Errorf("%d others have the item too", n)
	}
	if err := held.Context().Err(); err != nil {
		t.Errorf("the work on the item has ended: %v", context.Cause(held.Context()))
	}
	must(t, held.Done(ctx))
	awaitNothing(t, direct)
}

// listsOf counts the requested lists of a path.
func listsOf(faults *curatortest.Faults, path string) (n int) {
	for _, e := range faults.Trace() {
		if !e.Reply && e.Path == path && (e.Op == "getChildren" || e.Op == "getChildren2") {
			n++
		}
	}
	return n
}

// TestItemsAreHeldByOneOfTwoPullersWithLostReplies cuts the connection of two pullers of one client before and after
// each of their requests in turn.
func TestItemsAreHeldByOneOfTwoPullersWithLostReplies(t *testing.T) {
	t.Parallel()
	for _, queues := range []int{1, 2} {
		for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
			t.Run(fmt.Sprintf("%d queues, %v", queues, action), func(t *testing.T) {
				t.Parallel()
				testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
					return pullTwiceWithCut(t, queues, action, k)
				})
			})
		}
	}
}

func pullTwiceWithCut(t *testing.T, queues int, action curatortest.Action, k int) (hit bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(testenv.Context(t))
	defer cancel()
	chroot := testenv.Chroot(t)
	direct := testenv.Addr(t) + chroot
	put := numbered(4)
	putAll(t, start(t, built(builder(t, newClient(t, direct), nil).LockPath(lockPath).BuildQueue())), put...)
	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect)
	must(t, client.BlockUntilConnected(ctx))
	cut := proxy.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
	h := newHolders(t)
	var pulling sync.WaitGroup
	for i, p := range twoPullers(t, client, queues) {
		pulling.Go(func() {
			for item, err := range p.Items(ctx) {
				if err != nil {
					return
				}
				h.hold(item.Value, fmt.Sprint("puller ", i))
				_, _ = client.CheckExists().ForPath(ctx, queuePath) // it is held for a while
				h.giveUp(item.Value)
				if err := item.Done(testenv.Context(t)); err != nil {
					t.Errorf("done: %v", err)
				}
			}
		})
	}
	awaitNothing(t, direct)
	cancel()
	pulling.Wait()
	for _, item := range put {
		if n := h.delivered[item]; n != 1 {
			t.Errorf("%q is delivered %d times", item, n)
		}
	}
	return cut.Hits() > 0
}
