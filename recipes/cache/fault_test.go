package cache_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

// In Java: TestCuratorCacheConsistency.testReconnectConsistency.
func TestCacheCatchesUpAfterAnOutage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name          string
		before, while func(s *scene)
		want          []string
	}{
		{
			name:   "nothing",
			before: func(s *scene) { s.set(root+"=1", root+"/a=1") },
			while:  func(*scene) {},
		},
		{
			name:   "data",
			before: func(s *scene) { s.set(root+"=1", root+"/a=1", root+"/b=1") },
			while:  func(s *scene) { s.set(root + "/a=2") },
			want:   []string{"NODE_CHANGED /config/a=2"},
		},
		{
			name:   "created",
			before: func(s *scene) { s.set(root + "=1") },
			while:  func(s *scene) { s.set(root + "/a/b=2") },
			want:   []string{"NODE_CREATED /config/a", "NODE_CREATED /config/a/b=2"},
		},
		{
			name:   "deleted",
			before: func(s *scene) { s.set(root+"=1", root+"/a/b/c=1") },
			while:  func(s *scene) { s.remove(root + "/a") },
			want:   []string{"NODE_DELETED /config/a/b/c=", "NODE_DELETED /config/a/b", "NODE_DELETED /config/a"},
		},
		{ // CC1: Java has no event
			name:   "deleted and created with the version that it had",
			before: func(s *scene) { s.set(root+"=1", root+"/a=1") },
			while:  func(s *scene) { s.remove(root + "/a"); s.set(root + "/a=1") },
			want:   []string{"NODE_DELETED /config/a", "NODE_CREATED /config/a=1"},
		},
		{ // CC2: Java never reads the child
			name:   "the parent deleted and created with the number of changes that its children had",
			before: func(s *scene) { s.set(root+"=1", root+"/a/b=1") },
			while:  func(s *scene) { s.remove(root + "/a"); s.set(root + "/a/c=1") },
			want: []string{
				"NODE_DELETED /config/a/b", "NODE_DELETED /config/a", "NODE_CREATED /config/a", "NODE_CREATED /config/a/c=1",
			},
		},
		{
			name:   "all deleted",
			before: func(s *scene) { s.set(root+"=1", root+"/a=1") },
			while:  func(s *scene) { s.remove(root) },
			want:   []string{"NODE_DELETED /config/a", "NODE_DELETED /config"},
		},
	}
	for _, tt := range tests {
		tt.want = clean(tt.want)
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				tt.before(s)
				w := s.start()
				restore := s.cutOff()
				tt.while(s)
				restore()
				w.wantEvents(tt.want...)
				w.equalsTree()
			})
		})
		t.Run(tt.name+", session lost", func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				tt.before(s)
				w := s.start()
				lost := s.awaitState(framework.Lost)
				restore := s.cutOff()
				lost()
				tt.while(s)
				restore()
				w.wantEvents(tt.want...)
				w.equalsTree()
				s.set(root + "/later=1")
				w.equalsTree()
			})
		})
	}
}

// clean removes the data of nodes that are deleted.
func clean(events []string) []string {
	for i, e := range events {
		if e[len(e)-1] == '=' {
			events[i] = e[:len(e)-1]
		}
	}
	return events
}

// Every request of the cache in turn is lost, or its answer is.
func TestCacheSurvivesTheLossOfAnyRequestOrAnswer(t *testing.T) {
	t.Parallel()
	for _, oneShot := range []bool{false, true} {
		for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter, curatortest.TruncateReply} {
			t.Run(fmt.Sprintf("%v, one-shot %t", action, oneShot), func(t *testing.T) {
				t.Parallel()
				for skip, hit := 0, true; hit && skip < 200; skip++ {
					withScene(t, oneShot, func(s *scene) {
						s.set(root+"=1", root+"/a/b=1", root+"/c=1")
						fault := s.place.Faults().Add(curatortest.Rule{Action: action, Skip: skip, Count: 1, MayMiss: true})
						w := s.newCache()
						s.begin(w)
						s.must(w.Ready(s.ctx))
						s.set(root+"/a/b=2", root+"/d=1")
						s.must(w.Sync(s.ctx))
						s.remove(root + "/a")
						s.set(root + "/a/b=3")
						w.equalsTree()
						hit = fault.Hits() > 0
					})
				}
			})
		}
	}
}

// Each request of the cache in turn is throttled, a few times.
func TestCacheThrottledHasTheTree(t *testing.T) {
	t.Parallel()
	for _, oneShot := range []bool{false, true} {
		t.Run(fmt.Sprintf("one-shot %t", oneShot), func(t *testing.T) {
			t.Parallel()
			for skip, hit := 0, true; hit && skip < 200; skip++ {
				withScene(t, oneShot, func(s *scene) {
					s.set(root+"=1", root+"/a/b=1", root+"/c=1")
					fault := s.place.Faults().Add(curatortest.Rule{
						Action: curatortest.ReplyError, Err: framework.ErrThrottledOp, Skip: skip, Count: 3, MayMiss: true,
					})
					w := s.newCache()
					s.begin(w)
					s.must(w.Ready(s.ctx))
					s.set(root+"/a/b=2", root+"/d=1")
					s.must(w.Sync(s.ctx))
					s.remove(root + "/a")
					s.set(root + "/a/b=3")
					s.must(w.Sync(s.ctx))
					testenv.Eventually(s, func() bool {
						return w.Err(root) == nil && slices.Equal(w.content(), s.tree(root))
					}, "it has the tree")
					hit = fault.Hits() > 0
				})
			}
		})
	}
}

// The reads are held while the tree changes.
func TestCacheReadsAgainWhatChangesWhileItIsRead(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1", root+"/a/b=1")
		w := s.newCache()
		hold := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"multiRead", "getData"}, Action: curatortest.HoldReply, Count: 1,
		})
		s.begin(w)
		s.must(hold.Wait(s.ctx))
		s.set(root + "=2")
		s.remove(root + "/a")
		s.set(root+"/a=2", root+"/a/c=2")
		hold.Release()
		w.equalsTree()
	})
}

// A child is to be read when its parent is deleted and both are created again: the new child waits for the new parent.
func TestCacheHasANewChildAfterItsNewParent(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root+"=1", root+"/p=1", root+"/p/c=1")
		w := s.start()
		events := make(chan zk.Event, 10)
		s.must(s.client.Watches().Add().UsingWatcher(callbacks.NewChanWatcher(events)).ForPath(s.ctx, root))
		hold := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multiRead"}, Action: curatortest.HoldRequest, Count: 1})
		s.remove(root + "/p/c")
		s.must(hold.Wait(s.ctx))
		s.remove(root + "/p")
		s.set(root+"/p=2", root+"/p/c=2")
		for ev := range events {
			if ev.Type == zk.EventNodeCreated && ev.Path == root+"/p/c" {
				break // the event of the cache has come, too
			}
		}
		hold.Release()
		w.wantEvents("NODE_DELETED /config/p/c", "NODE_DELETED /config/p", "NODE_CREATED /config/p=2",
			"NODE_CREATED /config/p/c=2")
	})
}

// A local session may be of a server that lags.
func TestCacheSyncsAndWatchesAheadOfTheReadsOfANewSession(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root + "=1")
		w := s.start()
		for range 2 {
			var got []string
			for _, entry := range s.place.Faults().Trace() {
				if !entry.Reply && (entry.Op == "sync" || entry.Op == "addWatch" || entry.Op == "multiRead") {
					got = append(got, entry.Op)
				}
			}
			if len(got) < 3 || !slices.Equal(got[:3], []string{"sync", "addWatch", "multiRead"}) {
				t.Errorf("the requests are %v", got)
			}
			s.place.Faults().ResetTrace()
			lost := s.awaitState(framework.Lost)
			heal := s.cutOff()
			lost()
			heal()
			w.equalsTree()
		}
	})
}

func TestCacheIsReadyWhenThereIsAConnectionAtLast(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root + "=1")
		restore := s.cutOff()
		w := s.newCache()
		s.begin(w)
		ready := make(chan error, 1)
		go func() { ready <- w.Ready(s.ctx) }()
		restore()
		s.must(<-ready)
		w.equalsTree()
	})
}

func TestCacheSyncSeesWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		w := s.start()
		for i := range 50 {
			s.set(fmt.Sprintf("%s/a=%d", root, i))
			s.must(w.Sync(s.ctx))
			if node, ok := w.Get(root + "/a"); !ok || string(node.Data) != fmt.Sprint(i) {
				s.Fatalf("got %+v, want %d", node, i)
			}
			if i%10 == 9 {
				s.place.Faults().CutAll()
			}
		}
	})
}

// A sync that the server has not begun proves nothing about the reads behind it.
func TestCacheThrottledSyncPrecedesNoRead(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root + "=1")
		w := s.start()
		throttled := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"sync"}, Count: 2, Action: curatortest.ReplyError, Err: framework.ErrThrottledOp,
		})
		lost := s.awaitState(framework.Lost)
		heal := s.cutOff()
		lost()
		s.place.Faults().ResetTrace()
		heal()
		s.must(throttled.Wait(s.ctx))
		w.equalsTree()
		synced := false
		for _, entry := range s.place.Faults().Trace() {
			synced = synced || entry.Reply && entry.Op == "sync" && entry.Code == 0
			if entry.Op == "multiRead" && !entry.Reply && !synced {
				t.Error("a read precedes the sync")
			}
		}
		if throttled.Hits() != 2 {
			t.Errorf("%d are throttled", throttled.Hits())
		}
	})
}

// The server of the cache lags behind that of the writer, also in a session that begins there.
func TestCacheOnAServerThatLagsNeverGoesBack(t *testing.T) {
	t.Parallel()
	if testenv.Real() {
		t.Skip("a real server has no lag to set")
	}
	synctest.Test(t, func(t *testing.T) {
		cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort())
		servers := cluster.Servers()
		leader, err := cluster.Leader()
		if err != nil {
			t.Fatal(err)
		}
		var followers []*curatortest.Server
		for _, server := range servers {
			if server != leader {
				followers = append(followers, server)
			}
		}
		cluster.SetLag(followers[1], time.Second)
		s := &scene{TB: t, ctx: testenv.Context(t)}
		s.place, s.client = followers[0], s.newClient(cluster2{cluster, followers[0]})
		s.writer = s.newClient(leader)
		s.set(root+"=0", root+"/a=0")
		w := s.start()
		for i := range 10 {
			s.set(fmt.Sprintf("%s/a=%d", root, i), fmt.Sprintf("%s/b%d=1", root, i))
			w.equalsTree()
			s.remove(fmt.Sprintf("%s/b%d", root, i))
			s.must(w.Sync(s.ctx))
			lost := s.awaitState(framework.Lost)
			s.must(cluster.KillSession(s.client.SessionID()))
			lost()
			s.must(s.client.BlockUntilConnected(s.ctx))
			w.equalsTree()
		}
	})
}

// The read-only server has no part in the newest writes. Its session is a new one.
func TestCacheOnReadOnlyServerNeverGoesBack(t *testing.T) {
	t.Parallel()
	if testenv.Real() {
		t.Skip("a real server has no partition to set")
	}
	synctest.Test(t, func(t *testing.T) {
		cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort(), curatortest.WithReadOnlyMode())
		servers := cluster.Servers()
		majority, alone := servers[:2], servers[2:]
		s := &scene{TB: t, ctx: testenv.Context(t), place: majority[0]}
		s.client = s.newClient(cluster2{cluster, majority[0]}, framework.WithReadOnly())
		s.writer = s.newClient(cluster2{cluster, majority[0]})
		s.set(root+"=0", root+"/a=0")
		w := s.start()
		heal := cluster.Partition(majority, alone)
		s.set(root+"/a=1", root+"/b=1")
		s.must(w.Sync(s.ctx))
		lost, readOnly := s.awaitState(framework.Lost), s.awaitState(framework.ReadOnly)
		var restore []func()
		for _, server := range majority {
			restore = append(restore, server.Faults().RefuseConnects())
			server.Faults().CutAll()
		}
		lost()
		readOnly()
		if err := w.Sync(s.ctx); !errors.Is(err, framework.ErrNotReadOnly) {
			t.Errorf("Sync: %v", err)
		}
		late := s.start() // has nothing newer
		if node, ok := late.Get(root + "/a"); !ok || string(node.Data) != "0" {
			t.Errorf("got %+v", node)
		}
		if node, ok := w.Get(root + "/a"); !ok || string(node.Data) != "1" {
			t.Errorf("got %+v", node)
		}
		reconnected := s.awaitState(framework.Reconnected)
		for _, restore := range restore {
			restore()
		}
		heal()
		reconnected()
		w.equalsTree()
		late.equalsTree()
	})
}

// cluster2 is a place with the address of a whole cluster.
type cluster2 struct {
	*curatortest.Cluster
	first *curatortest.Server
}

func (c cluster2) Addr() string                { return c.ConnectString() }
func (c cluster2) Faults() *curatortest.Faults { return c.first.Faults() }

func TestCacheSplitsWhatIsTooLargeForOneAnswer(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		large := string(make([]byte, 40<<10))
		s.set(root + "=1")
		for i := range 20 {
			s.set(fmt.Sprintf("%s/n%d=%s", root, i, large[:20<<10]))
		}
		s.set(root+"/large="+large, root+"/large/below=1")
		s.client = s.newClient(s.place, framework.WithMaxReply(32<<10))
		w := s.newCache()
		s.begin(w)
		s.must(w.Ready(s.ctx))
		if err := w.Err(root + "/large"); !errors.Is(err, framework.ErrReplyTooLarge) {
			s.Errorf("error %v", err)
		}
		if node, ok := w.Get(root + "/large/below"); !ok || string(node.Data) != "1" || w.Size() != 22 {
			s.Errorf("got %+v, size %d", node, w.Size())
		}
		w.await("NODE_CREATED /config/large/below=1") // while its parent cannot be read
		s.set(root + "/large=small")
		// With one-shot watches after a pause: none is set by an answer that is too large.
		w.await("NODE_CREATED /config/large=small")
	})
}

// It pauses, and does not begin the whole load again.
func TestCacheLoadsThroughClientWithFewPendingOperations(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.manyNodes(5000)
		s.client = s.newClient(s.place, framework.WithMaxPending(3))
		w := s.newCache()
		s.begin(w)
		s.must(w.Ready(s.ctx))
		watches := 0
		for _, entry := range s.place.Faults().Trace() {
			if !entry.Reply && entry.Op == "addWatch" {
				watches++
			}
		}
		if n := w.Size(); n != 5001 || watches > 2 {
			s.Errorf("%d nodes after %d requests of the watch", n, watches)
		}
	})
}

// The data and the list fail together. Then the list succeeds, which is no success of the data.
func TestCacheFailedDataIsReadAgainAfterItsList(t *testing.T) {
	t.Parallel()
	withScene(t, true, func(s *scene) {
		s.set(root+"=1", root+"/bad=1")
		faults, bad := s.place.Faults(), s.chroot+root+"/bad"
		lists := []string{"getChildren2"}
		faults.Add(curatortest.Rule{
			Ops: []string{"getData"}, Path: bad, Action: curatortest.ReplyError, Err: zk.ErrInvalidACL, Count: 3,
		})
		cut := faults.Add(curatortest.Rule{Ops: lists, Path: bad, Action: curatortest.CutBefore, Count: 1})
		faults.Add(curatortest.Rule{
			Ops: lists, Path: bad, Action: curatortest.ReplyError, Err: zk.ErrInvalidACL, Skip: 1, Count: 1,
		})
		suspended := s.awaitState(framework.Suspended)
		w := s.newCache()
		s.begin(w)
		s.must(cut.Wait(s.ctx))
		restore := faults.RefuseConnects()
		suspended()
		pause(s.ctx, time.Second) // both are wanted by then
		restore()
		w.await("NODE_CREATED /config/bad=1")
	})
}

// It is time to read the node again while its Stat is read, which then shows no change.
func TestCacheFailedLargeNodeIsReadAgainDuringItsCheck(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root+"=1", root+"/large="+string(make([]byte, 20<<10)))
		c := cache.NewPathChildrenCache(s.client, root)
		s.must(c.Start(s.ctx, cache.BuildInitialCache))
		s.closing(c)
		faults := s.place.Faults()
		refusal := faults.Add(curatortest.Rule{ // the error lasts until it is seen
			Ops: []string{"multiRead"}, Path: s.chroot + root + "/large", Action: curatortest.ReplyError, Err: zk.ErrInvalidACL,
		})
		s.must(c.RebuildNode(s.ctx, root+"/large"))
		if c.Err(root+"/large") == nil {
			s.Fatal("no error")
		}
		hold := faults.Add(curatortest.Rule{Ops: []string{"exists"}, Action: curatortest.HoldReply, Count: 1})
		faults.CutAll()
		s.must(hold.Wait(s.ctx))
		refusal.Remove()
		pause(s.ctx, time.Second)
		hold.Release()
		testenv.Eventually(s, func() bool { return c.Err(root+"/large") == nil }, "the error goes away")
	})
}

// The data is read each time: a success of that is none of the list.
func TestCacheListThatIsTooLargeIsRetriedWithGrowingPauses(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root + "=1")
		child := func(i int) string { return fmt.Sprintf("%s/%04000d", root, i) }
		for i := range 10 {
			s.set(child(i))
		}
		s.client = s.newClient(s.place, framework.WithMaxReply(32<<10))
		w := s.start()
		s.place.Faults().ResetTrace()
		pause(s.ctx, 10*time.Second)
		if n := len(s.place.Faults().Trace()); n > 60 {
			s.Errorf("%d requests and answers in 10 s", n)
		}
		if err := w.Err(root); !errors.Is(err, framework.ErrReplyTooLarge) {
			s.Errorf("error %v", err)
		}
		s.remove(child(0), child(1), child(2))
		w.await("NODE_CREATED " + child(9))
		s.must(w.Sync(s.ctx))
		if err := w.Err(root); err != nil {
			s.Error(err)
		}
	})
}

// The request for the list is lost with the connection, so that the data and the list are wanted at the same time.
func TestCacheReadsDataAndListOfLargeNodeApart(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root+"="+string(make([]byte, 40<<10)), root+"/below=1")
		s.client = s.newClient(s.place, framework.WithMaxReply(32<<10))
		s.place.Faults().Add(curatortest.Rule{ // without it, time would stand still in a loop of requests
			Ops: []string{"multiRead"}, Action: curatortest.DelayReply, Delay: time.Millisecond,
		})
		s.place.Faults().Add(curatortest.Rule{Ops: []string{"multiRead"}, Action: curatortest.CutBefore, Skip: 1, Count: 1})
		w := s.newCache()
		s.begin(w)
		s.must(w.Ready(s.ctx))
		w.await("NODE_CREATED /config/below=1")
	})
}

// The list of the children is under way when it is time to read the node again.
func TestCacheFailedNodeWithSlowListIsReadAgain(t *testing.T) {
	t.Parallel()
	withScene(t, true, func(s *scene) {
		s.set(root+"=1", root+"/bad=1")
		bad := s.chroot + root + "/bad"
		s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"getData"}, Path: bad, Action: curatortest.ReplyError, Err: zk.ErrInvalidACL, Count: 2,
		})
		s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"getChildren2"}, Path: bad, Action: curatortest.DelayReply, Delay: time.Second, Count: 1,
		})
		w := s.newCache()
		s.begin(w)
		w.await("NODE_CREATED /config/bad=1")
	})
}

// A warm cache of 10,000 nodes is compared with at most one request for 500 of them, and nothing is listed that has not
// changed.
func TestCacheReconnectSendsFewRequests(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		const nodes, changed = 10_000, 10
		s.manyNodes(nodes)
		w := s.start()
		if w.Size() != nodes+1 {
			s.Fatalf("size %d", w.Size())
		}
		restore := s.cutOff()
		var want []string
		for i := range changed {
			s.set(fmt.Sprintf("%s/n%05d=y", root, i))
			want = append(want, fmt.Sprintf("NODE_CHANGED %s/n%05d=y", root, i))
		}
		s.place.Faults().ResetTrace()
		restore()
		got := w.received()
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			s.Errorf("events (-want +got):\n%s", diff)
		}
		reads := 0
		for _, entry := range s.place.Faults().Trace() {
			switch {
			case entry.Reply:
			case entry.Op == "multiRead":
				reads++
			case entry.Op == "getData" || entry.Op == "getChildren2" || entry.Op == "exists":
				s.Errorf("%v: a request for one node", entry)
			}
		}
		if reads > nodes/500 {
			s.Errorf("%d requests for %d nodes", reads, nodes)
		}
	})
}

// The size of the nodes is not known before the first of them are read. The answers show that more fit into a request.
func TestCacheLoadSendsFewRequests(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		const nodes = 10_000
		s.manyNodes(nodes)
		s.place.Faults().ResetTrace()
		s.start()
		if n := s.requests("multiRead"); n > nodes/400 {
			s.Errorf("%d requests for %d nodes", n, nodes)
		}
	})
}

// The list of children has a Stat there, so the next read of the data shows that the list is not older.
func TestCacheWithOneShotWatchesListsChildrenOncePerChange(t *testing.T) {
	t.Parallel()
	withScene(t, true, func(s *scene) {
		s.set(root + "=1")
		w := s.start()
		s.set(root + "/a=1")
		s.must(w.Sync(s.ctx))
		s.place.Faults().ResetTrace()
		s.set(root + "=2")
		s.must(w.Sync(s.ctx))
		if n := s.requests("getChildren2"); n > 0 {
			s.Errorf("%d lists after a change of the data", n)
		}
		w.equalsTree()
	})
}

// Of a large node the Stat is compared first, of a small one the data is read at once.
func TestCacheComparesLargeNodesWithoutTheirData(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		large := string(make([]byte, 20<<10))
		s.set(root+"=1", root+"/same="+large, root+"/other="+large, root+"/gone="+large, root+"/again="+large,
			root+"/list="+large)
		w := s.start()
		restore := s.cutOff()
		s.set(root+"/other=2", root+"/list/new=1")
		s.remove(root+"/gone", root+"/again")
		s.set(root+"/again="+large, root+"/again/below=1")
		s.place.Faults().ResetTrace()
		restore()
		w.equalsTree()
		for _, entry := range s.place.Faults().Trace() {
			if entry.Op == "multiRead" && slices.Contains(strings.Split(entry.Path, ","), s.chroot+root+"/same") {
				t.Errorf("%v: nothing of it has changed", entry)
			}
		}
	})
}

func TestCacheSaysWhyItCannotWatch(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		refusals := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth, Count: 4,
		})
		success := s.place.Faults().Add(curatortest.Rule{ // the error lasts until it is seen
			Ops: []string{"addWatch"}, Action: curatortest.HoldRequest, Skip: 4, Count: 1,
		})
		w := s.newCache()
		began := time.Now()
		s.begin(w)
		testenv.Eventually(t, func() bool { return errors.Is(w.Err(root), zk.ErrNoAuth) }, "the error of the watch")
		success.Release()
		s.must(w.Ready(s.ctx))
		if err := w.Err(root); err != nil || refusals.Hits() != 4 {
			t.Errorf("error %v after %d refusals", err, refusals.Hits())
		}
		if d := time.Since(began); d < 1500*time.Millisecond {
			t.Errorf("ready after %v, without pauses that grow", d)
		}
		w.equalsTree()
	})
}

func TestCacheLeavesNoWatch(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1", root+"/a/b=1")
		w := s.start()
		s.must(w.Close())
		testenv.Eventually(t, func() bool { return s.client.Health().Watches == 0 }, "no watch")
		for _, path := range []string{root, root + "/a", root + "/a/b"} {
			if err := s.client.Watches().RemoveAll().ForPath(s.ctx, path); !errors.Is(err, framework.ErrNoWatcher) {
				s.Errorf("%s: %v", path, err)
			}
		}
	})
}

// Writers change the tree while connections and sessions are lost. After each Sync the cache has what the tree has, and
// the listener never got anything older than what it had got before. With odd seeds some reads are refused.
func TestCacheEqualsTheTreeAfterRandomFaults(t *testing.T) {
	t.Parallel()
	first, count := seedRange(t)
	for seed := first; seed < first+count; seed++ {
		for _, oneShot := range []bool{false, true} {
			t.Run(fmt.Sprintf("CURATOR_SEED=%d, one-shot %t", seed, oneShot), func(t *testing.T) {
				t.Parallel()
				withScene(t, oneShot, func(s *scene) { randomFaults(s, seed) })
			})
		}
	}
}

var seeds = flag.Uint64("seeds", 0, "number of seeds with random faults; 0 is one with CURATOR_SEED, else some")

// seedRange returns the first seed, which is CURATOR_SEED or 0, and the number of seeds.
func seedRange(t *testing.T) (first, count uint64) {
	t.Helper()
	count = testenv.Size[uint64](20, 3, 500)
	if text := os.Getenv("CURATOR_SEED"); text != "" {
		var err error
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
		count = 1
	}
	if *seeds > 0 {
		count = *seeds
	}
	return first, count
}

func randomFaults(s *scene, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 20))
	w := s.newCache()
	s.begin(w)
	path := func() string {
		p := root
		for range r.IntN(4) {
			p += "/" + string(rune('a'+r.IntN(3)))
		}
		return p
	}
	rule := s.place.Faults().Add(curatortest.Rule{
		Action: []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter}[r.IntN(2)],
		Chance: 0.05, Seed: seed, MayMiss: true,
	})
	if s.refuses = seed%2 == 1; s.refuses {
		refusal := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"getData", "getChildren2", "multiRead", "exists"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
			Chance: 0.2, Seed: seed, MayMiss: true,
		})
		defer func() {
			refusal.Remove()
			pause(s.ctx, time.Minute) // nodes are read again after a pause
			w.equalsTree()
		}()
	}
	for i := range 150 {
		switch k := r.IntN(20); {
		case k < 8:
			s.set(fmt.Sprintf("%s=%d", path(), i))
		case k == 8: // its Stat is compared first after an outage
			s.set(fmt.Sprintf("%s=%09000d", path(), i))
		case k < 14:
			err := s.writer.Delete().DeletingChildrenIfNeeded().ForPath(s.ctx, path())
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				s.Fatal(err)
			}
		case k == 14:
			s.place.Faults().CutAll()
		case k == 15 && r.IntN(3) == 0:
			s.place.Faults().KillSession(s.client.SessionID())
		case k == 16 && r.IntN(3) == 0 && !s.refuses:
			w.equalsTree()
		default:
			pause(s.ctx, time.Duration(r.IntN(50))*time.Millisecond)
		}
	}
	rule.Remove()
	if !s.refuses {
		w.equalsTree()
	}
}

func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
