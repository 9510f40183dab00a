package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// A proxy ends the connection at the request of a recursive watch. The queue is listed instead.
func TestQueueBehindProxyWithoutRecursiveWatchesGoesOn(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		faults := place.Faults()
		faults.ResetTrace()
		faults.Add(curatortest.Rule{Ops: []string{"addWatch"}, Action: curatortest.CutBefore})
		got := newBasket(t)
		start(t, built(builder(t, clientAt(t, place, chroot), got.consume).BuildQueue()))
		producer := start(t, built(builder(t, clientAt(t, place, chroot), nil).BuildQueue()))
		for i, item := range numbered(5) {
			putAll(t, producer, item)
			if diff := cmp.Diff(numbered(5)[:i+1], got.await(i+1)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
		if n := countOf(faults, "connect"); n > 2*(1+3+3) {
			t.Errorf("%d connections\n%s", n, curatortest.FormatTrace(faults.Trace()))
		}
	})
}

// Some connections in a row are lost at the request of a recursive watch, as in a cluster that restarts. The client
// takes it for one that the servers lack. The next session asks again, for a consumer and for a put that waits.
func TestQueueTakesUpRecursiveWatchInNextSessionThatIllServersHungUpAt(t *testing.T) {
	t.Parallel()
	for _, waits := range []string{"consumer", "put"} {
		t.Run(waits, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTimeTwice(t, func(t *testing.T, place, other testenv.Place, chroot string) {
				faults := place.Faults()
				faults.Add(curatortest.Rule{Ops: []string{"addWatch"}, Action: curatortest.CutBefore, Count: 3})
				client, second := clientAt(t, place, chroot), clientAt(t, other, chroot)
				got := newBasket(t)
				producer := start(t, built(builder(t, second, nil).BuildQueue()))
				if waits == "consumer" {
					start(t, built(builder(t, client, got.consume).BuildQueue()))
					awaitSilence(t, faults)
				} else {
					putAll(t, producer, "a")
					q := start(t, built(builder(t, client, nil).MaxItems(1).BuildQueue()))
					go func() { got.add(fmt.Sprint(q.Put(testenv.Context(t), "b"))) }()
					testenv.Eventually(t, func() bool { return countOf(faults, "getChildren2") > 0 }, "it is watched")
				}
				<-time.After(2 * time.Second) // the client leaves out the kind for a second
				faults.ResetTrace()
				must(t, client.Reset())
				awaitWatch(t, faults, "addWatch")
				awaitSilence(t, faults)
				if waits == "consumer" {
					putAll(t, producer, "a")
				} else {
					removeFirst(t, second, 1)
				}
				got.await(1)
				if n := countOf(faults, "connect"); n > 2 {
					t.Errorf("%d connections\n%s", n, curatortest.FormatTrace(faults.Trace()))
				}
			})
		})
	}
}

// A put waits for room with one-shot watches. A lost connection leaves none behind.
func TestPutThatWaitsWithOneShotWatchHasOneAfterLostConnections(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, place, other testenv.Place, chroot string) {
		faults := place.Faults()
		faults.Add(curatortest.Rule{
			Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented,
		})
		client, second := clientAt(t, place, chroot), clientAt(t, other, chroot)
		putAll(t, start(t, built(builder(t, second, nil).BuildQueue())), "a")
		q := start(t, built(builder(t, client, nil).MaxItems(1).BuildQueue()))
		got := newBasket(t)
		go func() { got.add(fmt.Sprint(q.Put(testenv.Context(t), "b"))) }()
		awaitOneWatch := func() {
			t.Helper()
			testenv.Eventually(t, func() bool { return client.Health().Watches == 1 }, "there is one watch")
		}
		awaitOneWatch()
		for range 5 {
			reconnected := testclient.AwaitState(testenv.Context(t), t, client, framework.Reconnected)
			faults.CutAll()
			reconnected()
			awaitSilence(t, faults)
		}
		awaitOneWatch()
		removeFirst(t, second, 1)
		got.await(1)
	})
}

// A proxy ends the connection at the creation of a container. The path is a persistent node instead.
func TestSimpleQueueBehindProxyWithoutContainersGoesOn(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		faults := place.Faults()
		faults.ResetTrace()
		faults.Add(curatortest.Rule{Ops: []string{"createContainer"}, Action: curatortest.CutBefore})
		ctx, q := testenv.Context(t), simple(clientAt(t, place, chroot))
		taken := make(chan string, 1)
		go func() {
			data, err := q.Take(ctx)
			if err != nil {
				t.Error(err)
			}
			taken <- string(data)
		}()
		awaitSilence(t, faults)
		offer(t, q, "a")
		if got := <-taken; got != "a" {
			t.Errorf("got %q", got)
		}
		if n := countOf(faults, "connect"); n > 1+3+3 {
			t.Errorf("%d connections\n%s", n, curatortest.FormatTrace(faults.Trace()))
		}
	})
}
