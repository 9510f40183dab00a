package leader_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
)

func TestSelectorShortTurnIsNotWatched(t *testing.T) {
	for long, want := range map[time.Duration][]string{
		9 * time.Millisecond:  {"delete"},
		11 * time.Millisecond: {"getData", "delete"}, // the watch ends with the node
	} {
		t.Run(fmt.Sprint(long), func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, server *curatortest.Server, client *framework.Client) {
				t.Helper()
				f := newTurns()
				startSelector(t, client, f)
				receive(t, f.began, "it leads")
				server.Faults().ResetTrace()
				time.Sleep(long)
				f.stop <- nil
				time.Sleep(500 * time.Millisecond)
				var ops []string
				for _, e := range server.Faults().Trace() {
					if !e.Reply && e.Op != "ping" {
						ops = append(ops, e.Op)
					}
				}
				if diff := cmp.Diff(want, ops); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestSelectorNodeStaysLeavesNoWatch(t *testing.T) {
	proxy, connect, _ := newProxy(t)
	f := newTurns()
	startSelector(t, newClient(t, connect, steady), f)
	l := leader.LeadershipOf(receive(t, f.began, "it leads"))
	watched := func() bool {
		answer, err := testenv.Server(t).FourLetterWord(testenv.Context(t), "wchp")
		must(t, err)
		return strings.Contains(answer, l.Path())
	}
	testenv.Eventually(t, watched, "the node is watched")
	proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"delete"}, Count: 1, Action: curatortest.ReplyError,
		Err: zk.ErrNoAuth,
	})
	f.stop <- nil
	testenv.Eventually(t, func() bool { return !watched() }, "no watch is left")
}

// In Java: TestLeaderLatch.testCorrectWatching: each watches only the one before it, and the leader its own node.
func TestLatchWatchesOneNode(t *testing.T) {
	server := curatortest.NewServerT(t)
	var latches []*leader.LeaderLatch
	for i := range 5 {
		latch, _ := startLatch(t, newClient(t, server.ConnectString()), fmt.Sprint(i))
		latches = append(latches, latch)
		awaitParticipants(t, latches[0], i+1)
	}
	server.EventuallyT(t, "each node but the last is watched once, the leader's by itself too", func() bool {
		children := server.Children(electionPath)
		total := 0
		for _, child := range children {
			total += server.Watches(electionPath + "/" + child)
		}
		return len(children) == 5 && total == 5
	})
	for _, latch := range latches {
		must(t, latch.Close())
	}
	server.EventuallyT(t, "no watch is left", func() bool {
		word, err := server.FourLetterWord(t.Context(), "wchs")
		return err == nil && word == "0 connections watching 0 paths\nTotal watches:0\n"
	})
}

// The next leader waits for the deletion: nothing travels beside it.
func TestLatchCloseSendsOnlyDelete(t *testing.T) {
	proxy, connect, direct := newProxy(t)
	latch, _ := startLatch(t, newClient(t, connect, framework.WithSessionTimeout(30*time.Second)), "a")
	await(t, latch)
	awaitWatched(t, proxy)
	proxy.Faults().ResetTrace()
	must(t, latch.Close())
	awaitNoNode(t, direct)
	var ops []string
	for _, e := range proxy.Faults().Trace() {
		if !e.Reply && e.Op != "heartbeat" && e.Op != "ping" { // they come when a test takes its time
			ops = append(ops, e.Op)
		}
	}
	if diff := cmp.Diff([]string{"delete"}, ops); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestLatchCloseNodeStaysRemovesWatch(t *testing.T) {
	proxy, connect, _ := newProxy(t)
	latch, _ := startLatch(t, newClient(t, connect, framework.WithSessionTimeout(30*time.Second)), "a")
	await(t, latch)
	awaitWatched(t, proxy)
	proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"delete"}, Count: 1, Action: curatortest.ReplyError,
		Err: zk.ErrNoAuth,
	})
	removal := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"removeWatches"}, Count: 1,
		Action: curatortest.HoldReply,
	})
	must(t, latch.Close())
	must(t, removal.Wait(testenv.Context(t)))
	removal.Release()
}

// awaitWatched waits until a leader has set the watch on its node, and looked once more.
func awaitWatched(tb testing.TB, proxy *curatortest.Proxy) {
	tb.Helper()
	testenv.Eventually(tb, func() bool {
		trace := proxy.Faults().Trace()
		watched := slices.IndexFunc(trace, func(e curatortest.TraceEntry) bool { return e.Op == "getData" && e.Reply })
		return watched >= 0 && slices.ContainsFunc(trace[watched:], func(e curatortest.TraceEntry) bool {
			return e.Op == "getChildren2" && e.Reply
		})
	}, "the watch of the leader")
}
