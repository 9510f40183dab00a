package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/queue"
)

const (
	depthMetric = "curator.queue.depth"
	ageMetric   = "curator.queue.oldest.age"
)

func TestDepthIsMeasuredFromStartToClose(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, o := testenv.Context(t), observe.New(t)
		client := clientAt(t, place, chroot, framework.WithMeterProvider(o.Meters))
		quiet := start(t, built(builder(t, client, nil).BuildQueue()))
		wantDepth(t, o, "", "")
		q := built(builder(t, client, nil).Name("orders").MeasureDepth().BuildQueue())
		wantDepth(t, o, "", "")
		must(t, q.Start())
		wantDepth(t, o, "messaging.destination.name=orders 0\n", "messaging.destination.name=orders 0\n")
		for _, item := range []string{"a", "b", "c"} {
			must(t, quiet.Put(ctx, item))
		}
		must(t, quiet.FlushPuts(ctx))
		<-time.After(2500 * time.Millisecond)
		wantDepth(t, o, "messaging.destination.name=orders 3\n", "messaging.destination.name=orders 2\n")
		must(t, q.Close())
		wantDepth(t, o, "", "")
	})
}

func TestAgeOfADelayQueueIsFromWhenItsFirstItemWasDue(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, o := testenv.Context(t), observe.New(t)
		client := clientAt(t, place, chroot, framework.WithMeterProvider(o.Meters))
		q := start(t, built(builder(t, client, nil).Name("orders").MeasureDepth().BuildDelayQueue()))
		must(t, q.Put(ctx, "later", time.Now().Add(time.Hour)))
		must(t, q.Put(ctx, "soon", time.Now().Add(3*time.Second)))
		must(t, q.FlushPuts(ctx))
		wantDepth(t, o, "messaging.destination.name=orders 2\n", "messaging.destination.name=orders 0\n")
		<-time.After(4500 * time.Millisecond)
		wantDepth(t, o, "messaging.destination.name=orders 2\n", "messaging.destination.name=orders 1\n")
	})
}

// TestAgeIsThatOfTheItemPutFirst has later items of a higher priority.
func TestAgeIsThatOfTheItemPutFirst(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, o := testenv.Context(t), observe.New(t)
		client := clientAt(t, place, chroot, framework.WithMeterProvider(o.Meters))
		q := start(t, built(builder(t, client, nil).Name("orders").MeasureDepth().BuildPriorityQueue(0)))
		for i := range 5 {
			must(t, q.Put(ctx, "a", -i))
			must(t, q.FlushPuts(ctx))
			<-time.After(2100 * time.Millisecond)
		}
		wantDepth(t, o, "messaging.destination.name=orders 5\n", "messaging.destination.name=orders 10\n")
	})
}

// TestAgeOfItemsThatAreTakenMeanwhile has the first items be gone when they are read.
func TestAgeOfItemsThatAreTakenMeanwhile(t *testing.T) {
	t.Parallel()
	const n = 10
	for name, tt := range map[string]struct {
		taken, age string
	}{
		"one of them": {"queue-0000000000", "messaging.destination.name=orders 2\n"},
		"all of them": {"*", "messaging.destination.name=orders 0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				o := observe.New(t)
				client := clientAt(t, place, chroot, framework.WithMeterProvider(o.Meters))
				q := start(t, built(builder(t, client, nil).Name("orders").MeasureDepth().BuildQueue()))
				putAll(t, q, numbered(n)...)
				<-time.After(2500 * time.Millisecond)
				reads := place.Faults().Add(curatortest.Rule{
					Ops: []string{"getData"}, Path: chroot + queuePath + "/" + tt.taken,
					Action: curatortest.ReplyError, Err: zk.ErrNoNode,
				})
				wantDepth(t, o, "messaging.destination.name=orders 10\n", tt.age)
				if reads.Hits() > 3*3 { // the metrics are collected three times
					t.Errorf("%d items are read", reads.Hits())
				}
			})
		})
	}
}

// Shards have one name. A queue that two values measure counts once.
func TestDepthsOfAName(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, o := testenv.Context(t), observe.New(t)
		client := clientAt(t, place, chroot, framework.WithMeterProvider(o.Meters))
		for _, path := range []string{"/one", "/two", "/two"} {
			b := queue.NewBuilder(client, nil, codec.Text{}, path)
			q := start(t, built(b.Name("orders").MeasureDepth().BuildQueue()))
			must(t, q.Put(ctx, "a"))
			must(t, q.FlushPuts(ctx))
		}
		wantDepth(t, o, "messaging.destination.name=orders 3\n", "messaging.destination.name=orders 0\n")
	})
}

// A collection of metrics does not wait for a connection.
func TestDepthIsUnknownWithoutAConnection(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	client, err := framework.New("127.0.0.1:1", framework.WithMeterProvider(o.Meters))
	must(t, err)
	must(t, client.Start())
	t.Cleanup(func() { must(t, client.Close()) })
	start(t, built(builder(t, client, nil).Name("orders").FinalFlushTime(0).MeasureDepth().BuildQueue()))
	wantDepth(t, o, "", "")
}

func wantDepth(t *testing.T, o *observe.Observer, depth, age string) {
	t.Helper()
	if got := o.Values(t, depthMetric); got != depth {
		t.Errorf("depth %q, want %q", got, depth)
	}
	if got := o.Values(t, ageMetric); got != age && !isLittleOlder(got, age) {
		t.Errorf("age %q, want %q", got, age)
	}
	o.WantBounded(t)
}

// isLittleOlder reports whether an age is up to 5 s larger than another: on a real server the clock goes on until the
// gauge is read.
func isLittleOlder(got, age string) bool {
	if !testenv.Real() {
		return false
	}
	var n, least int
	const format = "messaging.destination.name=orders %d\n"
	_, err := fmt.Sscanf(got, format, &n)
	_, errLeast := fmt.Sscanf(age, format, &least)
	return err == nil && errLeast == nil && n >= least && n <= least+5
}

func TestRequeuesAndDeadLettersAreCounted(t *testing.T) {
	t.Parallel()
	r := newRelay(t)
	r.put("a")
	b := builder(t, r.takes, func(context.Context, string) error { return errors.New("never") })
	b = b.LockPath(lockPath).DeadLetterPath("/dead").MaxDeliveries(3).Name("orders")
	start(t, built(b.OnError(func(context.Context, error) {}).BuildQueue()))
	r.awaitValues("curator.queue.dead_letters", "messaging.destination.name=orders 1\n")
	r.wantValues("curator.queue.requeues", "messaging.destination.name=orders 2\n")
	r.wantValues("curator.queue.claims.lost", "")
}

func TestCorruptItemThatIsMovedIsCounted(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{"with locks": lockPath, "without locks": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t)
			_, err := r.puts.Create().CreatingParentsIfNeeded().ForPath(testenv.Context(t), queuePath+"/queue-0000000000", nil)
			must(t, err)
			b := builder(t, r.takes, func(context.Context, string) error { return nil })
			b = b.LockPath(lock).DeadLetterPath("/dead").Name("orders").OnError(func(context.Context, error) {})
			start(t, built(b.BuildQueue()))
			r.awaitValues("curator.queue.dead_letters", "messaging.destination.name=orders 1\n")
		})
	}
}

func TestItemThatIsPutBackWithoutLocksIsCounted(t *testing.T) {
	t.Parallel()
	r := newRelay(t)
	q := start(t, built(builder(t, r.takes, nil).Name("orders").BuildQueue()))
	must(t, q.Put(r.ctx, "a"))
	for item, err := range q.Items(testenv.Context(t)) {
		must(t, err)
		must(t, item.Requeue(testenv.Context(t)))
		break
	}
	r.wantValues("curator.queue.requeues", "messaging.destination.name=orders 1\n")
}

func TestLockThatIsLostIsCounted(t *testing.T) {
	t.Parallel()
	r := newRelay(t)
	r.put("a")
	lost := false
	r.consumer(func(ctx context.Context, _ string) error {
		if !lost {
			lost = true
			must(t, testenv.Server(t).ExpireSession(r.takes.SessionID()))
			<-ctx.Done()
		}
		return nil
	})
	// The next list may have the item before it is deleted: then it is counted, too, as taken by another.
	const want = "curator.outcome=lost,messaging.destination.name=orders 1\n"
	testenv.Eventually(r.t, func() bool { return strings.Contains(r.values("curator.queue.claims.lost"), want) }, want)
}

// TestItemThatAnotherTakesFirstIsCounted has it be read, and then go.
func TestItemThatAnotherTakesFirstIsCounted(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(r *relay){
		"distributed": func(r *relay) {
			b := builder(r.t, r.puts, func(context.Context, string) error { return nil })
			start(r.t, built(b.Name("orders").BuildQueue()))
		},
		"simple": func(r *relay) {
			q := queue.NewSimpleDistributedQueue(r.puts, queuePath, queue.WithName("orders"))
			polled := make(chan struct{})
			go func() {
				defer close(polled)
				_, err := q.Poll(context.WithoutCancel(r.t.Context())) // it may end after the test
				if err != nil {
					r.t.Error(err)
				}
			}()
			r.t.Cleanup(func() { <-polled })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t)
			ctx := testenv.Context(t)
			node := queuePath + map[string]string{"distributed": "/queue-0000000000", "simple": "/qn-0000000000"}[name]
			_, err := r.takes.Create().CreatingParentsIfNeeded().ForPath(ctx, node, []byte(javaHello))
			must(t, err)
			held := r.proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldReply})
			take(r)
			must(t, held.Wait(ctx))
			must(t, r.takes.Delete().ForPath(ctx, node))
			held.Remove()
			r.awaitValues("curator.queue.claims.lost", "curator.outcome=taken,messaging.destination.name=orders 1\n")
		})
	}
}

// awaitValues waits until the series of a metric are as wanted.
func (r *relay) awaitValues(name, want string) {
	r.t.Helper()
	testenv.Eventually(r.t, func() bool { return r.values(name) == want }, name+" of "+want)
}
