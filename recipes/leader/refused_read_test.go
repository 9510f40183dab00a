package leader_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// requests returns the number of requests of one kind that the server has received.
func requests(server *curatortest.Server, op string) (n int) {
	for _, e := range server.Faults().Trace() {
		if e.Op == op && !e.Reply {
			n++
		}
	}
	return n
}

// The leader's read of its own node is refused for a minute. The latch leads on with one node, and watches it as soon
// as it may.
func TestLatchNodeReadRefusedKeepsLeadership(t *testing.T) {
	for name, refusal := range map[string]error{
		"NOAUTH": zk.ErrNoAuth, "SYSTEMERROR": jute.ErrSystem, "THROTTLEDOP": jute.ErrThrottledOp,
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, server *curatortest.Server, client *framework.Client) {
				t.Helper()
				var reported []error
				client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
					reported = append(reported, e.Err)
				})
				rule := server.Faults().Add(curatortest.Rule{
					Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: refusal,
				})
				latch, events := startLatch(t, client, "me")
				l := events.want(true).Leadership
				<-time.After(time.Minute)
				synctest.Wait()
				if latch.Leadership() != l || len(events.received) != 0 {
					t.Errorf("it leads no longer, %d events", len(events.received))
				}
				if reads := requests(server, "getData"); reads < 10 || reads > 100 {
					t.Errorf("%d reads", reads)
				}
				if name == "SYSTEMERROR" && (len(reported) != 1 || !errors.Is(reported[0], refusal)) || len(reported) > 1 {
					t.Errorf("reported %v", reported)
				}
				rule.Remove()
				<-time.After(time.Minute)
				must(t, client.Delete().ForPath(testenv.Context(t), l.Path()))
				receive(t, l.Context().Done(), "the end of its leadership")
			})
		})
	}
}

// Each list but the first is refused. The latch does not keep its place; the pauses between its elections grow.
func TestLatchListRefusedRetriesAfterGrowingPauses(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, server *curatortest.Server, client *framework.Client) {
		t.Helper()
		must(t, client.CreateContainers(t.Context(), electionPath)) // the first list has its own node
		began := time.Now()
		var reported []time.Duration
		client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
			if !errors.Is(e.Err, jute.ErrSystem) {
				t.Errorf("reported %v", e.Err)
			}
			reported = append(reported, time.Since(began))
		})
		rule := server.Faults().Add(curatortest.Rule{
			Ops: []string{"getChildren2"}, Skip: 1, Action: curatortest.ReplyError, Err: jute.ErrSystem,
		})
		latch, _ := startLatch(t, client, "me")
		<-time.After(15 * time.Second)
		synctest.Wait()
		want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 12 * time.Second}
		if !slices.Equal(reported, want) {
			t.Errorf("reported after %v, want %v", reported, want)
		}
		rule.Remove()
		await(t, latch)
	})
}

// A server with too much to do refuses the lists of a leader for a minute. It keeps its node, and leads on.
func TestLatchListThrottledKeepsLeadership(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, server *curatortest.Server, client *framework.Client) {
		t.Helper()
		must(t, client.CreateContainers(t.Context(), electionPath))
		throttled := server.Faults().Add(curatortest.Rule{
			Ops: []string{"getChildren2"}, Skip: 1, Action: curatortest.ReplyError, Err: jute.ErrThrottledOp,
		})
		latch, events := startLatch(t, client, "me")
		l := events.want(true).Leadership
		<-time.After(time.Minute)
		throttled.Remove()
		<-time.After(time.Minute)
		synctest.Wait()
		if latch.Leadership() != l || len(events.received) != 0 || throttled.Hits() < 2 {
			t.Errorf("it leads no longer, %d events, %d lists throttled", len(events.received), throttled.Hits())
		}
		must(t, client.Delete().ForPath(testenv.Context(t), l.Path()))
		receive(t, l.Context().Done(), "the end of its leadership")
	})
}

// The node of a leader is deleted while its lists are throttled.
func TestLatchNodeDeletedWhileListThrottledLosesLeadership(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, server *curatortest.Server, client *framework.Client) {
		t.Helper()
		_, events := startLatch(t, client, "me")
		l := events.want(true).Leadership
		synctest.Wait()
		throttled := server.Faults().Add(curatortest.Rule{
			Ops: []string{"getChildren2"}, Action: curatortest.ReplyError, Err: jute.ErrThrottledOp,
		})
		must(t, client.Delete().ForPath(testenv.Context(t), l.Path()))
		events.want(false)
		must(t, throttled.Wait(testenv.Context(t))) // the next election lists the line
		throttled.Remove()
		events.want(true)
	})
}

// A latch that may not read its node leads without a watch.
func TestLatchWithoutReadPermissionLeads(t *testing.T) {
	proxy, connect, _ := newProxy(t)
	proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
	})
	latch, events := startLatch(t, newClient(t, connect, steady), "me")
	l := events.want(true).Leadership
	testenv.Eventually(t, func() bool { return answered(proxy, "getChildren2") >= 3 },
		"it has lined up, and looked once more")
	if l.Context().Err() != nil || latch.Leadership() != l {
		t.Error("it leads no longer")
	}
}

// A server with too much to do refuses the reads of a participant in line.
func TestParticipantThrottledKeepsPlace(t *testing.T) {
	forEachCandidate(t, func(t *testing.T, start func(tb testing.TB, client *framework.Client) candidate) {
		t.Helper()
		ctx := testenv.Context(t)
		proxy, connect, address := newProxy(t)
		direct := newClient(t, address)
		_, err := start(t, direct).next(ctx)
		must(t, err)
		client := newClient(t, connect, testclient.NoRetries, steady)
		must(t, client.BlockUntilConnected(ctx))
		start(t, client)
		var before []string
		testenv.Eventually(t, func() bool {
			var err error
			before, err = direct.GetChildren().ForPath(ctx, electionPath)
			return err == nil && len(before) == 2 && answered(proxy, "getData") >= 1 // its watch is set
		}, "it waits")
		throttled := proxy.Faults().Add(curatortest.Rule{
			Ops: []string{"getData", "getChildren2"}, Count: 10, Action: curatortest.ReplyError, Err: jute.ErrThrottledOp,
		})
		for _, node := range before { // it looks again after a change of the node that it watches
			_, err := direct.SetData().ForPath(ctx, electionPath+"/"+node, nil)
			must(t, err)
		}
		testenv.Eventually(t, func() bool { return throttled.Hits() == 10 }, "the reads are throttled")
		after, err := direct.GetChildren().ForPath(ctx, electionPath)
		must(t, err)
		slices.Sort(before)
		slices.Sort(after)
		if !slices.Equal(before, after) {
			t.Errorf("nodes %q, before %q", after, before)
		}
	})
}
