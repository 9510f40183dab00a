package nodes_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/retry"
)

// The client refuses the recursive watch because too many operations are pending. It is requested again.
func TestPersistentNodeWatchRefusedAsTooManyPending(t *testing.T) {
	inScene(t, func(s *scene) {
		s.must(s.reader.CreateContainers(s.ctx, "/members"))
		gate := s.place.Faults().Add(curatortest.Rule{Ops: []string{"exists"}, Count: 1, Action: curatortest.HoldReply})
		for range 4 {
			s.must(s.client.CheckExists().InBackground(func(context.Context, callbacks.Event) {}).ForPath(s.ctx, "/x"))
		}
		var all []*nodes.PersistentNode
		for i := range 10 {
			n := nodes.NewPersistentNode(s.client, fmt.Sprintf("/members/%d", i), builders.Ephemeral, nil)
			s.must(n.Start())
			all = append(all, n)
		}
		s.settle(gate)
		gate.Remove()
		for _, n := range all {
			s.must(n.WaitForInitialCreate(s.ctx))
		}
		s.settle()
		s.must(s.reader.Delete().ForPath(s.ctx, "/members/3"))
		s.awaitOwned("/members/3", "")
	}, framework.WithMaxPending(4))
}

// Other nodes of the parent request the recursive watch after the create of this one, which is deleted in between.
func TestPersistentNodeDeletedBeforeSharedWatch(t *testing.T) {
	inScene(t, func(s *scene) {
		s.must(s.reader.CreateContainers(s.ctx, "/members"))
		held := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"addWatch"}, Count: 1, Action: curatortest.HoldRequest,
		})
		reply := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldReply})
		one := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, nil)
		s.must(one.Start())
		s.must(reply.Wait(s.ctx))
		for i := range 10 {
			n := nodes.NewPersistentNode(s.client, fmt.Sprintf("/members/%d", i), builders.Ephemeral, nil)
			s.must(n.Start())
		}
		s.must(held.Wait(s.ctx))
		reply.Remove()
		s.must(one.WaitForInitialCreate(s.ctx))
		s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
		held.Remove()
		s.awaitOwned(keptPath, "")
	})
}

// The watches of closed nodes are removed while others are started. The removal may be tried again on the next
// connection, behind what sets the watches of the others.
func TestPersistentNodeStartedWhileWatchIsRemoved(t *testing.T) {
	for _, count := range []int{1, 10} {
		for _, prefix := range []string{"", "x"} {
			for _, action := range []curatortest.Action{curatortest.HoldRequest, curatortest.HoldReply} {
				for _, cut := range []bool{false, true} {
					t.Run(fmt.Sprintf("%d %q %v %t", count, prefix, action, cut), func(t *testing.T) {
						inScene(t, func(s *scene) {
							s.startWhileWatchIsRemoved(count, prefix, action, cut)
						}, framework.WithRetryPolicy(retry.Forever(time.Second)))
					})
				}
			}
		}
	}
}

func (s *scene) startWhileWatchIsRemoved(count int, prefix string, action curatortest.Action, cut bool) {
	start := func(prefix string) (all []*nodes.PersistentNode) {
		for i := range count {
			n := nodes.NewPersistentNode(s.client, fmt.Sprintf("/members/%s%d", prefix, i), builders.Ephemeral, nil)
			s.must(n.Start())
			all = append(all, n)
		}
		return all
	}
	one := start("")
	for _, n := range one {
		s.must(n.WaitForInitialCreate(s.ctx))
	}
	s.settle()
	in := s.place.Faults().Add(curatortest.Rule{
		Ops: []string{"removeWatches", "checkWatches"}, Count: 1, MayMiss: true, Action: action,
	})
	var wg sync.WaitGroup
	for _, n := range one {
		wg.Go(func() { s.must(n.Close(s.ctx)) })
	}
	wg.Wait()
	two := start(prefix)
	s.settle(in)
	if cut {
		s.place.Faults().ResetTrace()
		s.place.Faults().CutAll()
	}
	in.Remove()
	for _, n := range two {
		s.must(n.WaitForInitialCreate(s.ctx))
	}
	if cut && in.Hits() > 0 {
		s.awaitRemovalOfWatch()
	}
	s.settle()
	s.must(s.reader.Delete().ForPath(s.ctx, "/members/"+prefix+"0"))
	s.awaitOwned("/members/"+prefix+"0", "")
}

// awaitRemovalOfWatch waits until a removal has an answer.
func (s *scene) awaitRemovalOfWatch() {
	s.Helper()
	testenv.Eventually(s, func() bool {
		return slices.ContainsFunc(s.place.Faults().Trace(), func(e curatortest.TraceEntry) bool {
			return e.Reply && (e.Op == "removeWatches" || e.Op == "checkWatches")
		})
	}, "the removal of a watch")
}

// A listener of the program holds the state of the new connection back, until the watch is requested there.
func TestPersistentNodeLateStateRequestsNothingTwice(t *testing.T) {
	inScene(t, func(s *scene) {
		reconnected, release := make(chan struct{}), make(chan struct{})
		s.client.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
			if state == framework.Reconnected {
				close(reconnected)
				<-release
			}
		})
		s.startMany(10)
		s.settle()
		s.place.Faults().ResetTrace()
		held := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"addWatch"}, Count: 1, Action: curatortest.HoldReply,
		})
		s.must(s.client.Reset())
		<-reconnected
		s.must(nodes.NewPersistentNode(s.client, "/other", builders.Ephemeral, nil).Start())
		s.must(held.Wait(s.ctx))
		close(release)
		s.settle(held)
		held.Remove()
		s.awaitMembers(10)
		s.settle()
		if counts, _ := s.requests(); counts["addWatch"] != 1 {
			s.Errorf("the watch is requested twice: %v", counts)
		}
	})
}

// The last node is closed while the client has too many pending operations. The next one is not paused.
func TestPersistentNodeStartedAfterPausedOne(t *testing.T) {
	inScene(t, func(s *scene) {
		s.must(s.reader.CreateContainers(s.ctx, "/members"))
		gate := s.place.Faults().Add(curatortest.Rule{Ops: []string{"exists"}, Count: 1, Action: curatortest.HoldReply})
		for range 4 {
			s.must(s.client.CheckExists().InBackground(func(context.Context, callbacks.Event) {}).ForPath(s.ctx, "/x"))
		}
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, nil)
		s.must(n.Start())
		s.settle(gate)
		s.must(n.Close(s.ctx))
		s.settle(gate)
		gate.Remove()
		s.settle()
		s.ephemeral("/members/b", "")
	}, framework.WithMaxPending(4))
}

// A callback of the program holds the answer to a read back until the next session, where its watch is not set.
func TestPersistentNodeReadOfEarlierSessionSetsNoWatch(t *testing.T) {
	inScene(t, func(s *scene) {
		_, err := s.reader.Create().CreatingParentsIfNeeded().ForPath(s.ctx, keptPath, []byte("one"))
		s.must(err)
		blocked, release := make(chan struct{}), make(chan struct{})
		s.must(s.client.CheckExists().InBackground(func(context.Context, callbacks.Event) {
			close(blocked)
			<-release
		}).ForPath(s.ctx, "/x"))
		<-blocked
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Persistent, []byte("one"))
		s.must(n.Start())
		s.settle() // it is read
		session := s.client.SessionID()
		s.expire(session)
		testenv.Eventually(s, func() bool {
			return s.client.SessionID() != session && s.client.IsConnected()
		}, "a new session")
		s.settle()
		s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
		close(release)
		s.must(n.WaitForInitialCreate(s.ctx))
		s.settle()
		s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
		testenv.Eventually(s, func() bool { _, stat := s.get(keptPath); return stat != nil }, "created again")
		s.must(n.Close(s.ctx))
	})
}

// The parent of many nodes is desired itself, and has a watch of its own beside theirs. Each outlives the other.
func TestPersistentNodeWithManyNodesBelow(t *testing.T) {
	inScene(t, func(s *scene) {
		startParent := func() *nodes.PersistentNode {
			n := nodes.NewPersistentNode(s.client, "/members", builders.Container, []byte("parent"))
			s.start(n)
			return n
		}
		deleteAll := func() {
			s.settle()
			s.must(s.reader.Delete().DeletingChildrenIfNeeded().Quietly().ForPath(s.ctx, "/members"))
			testenv.Eventually(s, func() bool { data, _ := s.get("/members"); return data == "parent" }, "created again")
		}
		all := s.startMany(10)
		parent := startParent()
		deleteAll()
		s.awaitMembers(10)
		s.settle()
		s.wantErr(parent.Close(s.ctx), zk.ErrNotEmpty)
		s.settle()
		s.must(s.reader.Delete().ForPath(s.ctx, "/members/0003"))
		s.awaitOwned("/members/0003", "data")
		parent = startParent()
		for _, n := range all[1:] {
			s.must(n.Close(s.ctx))
		}
		deleteAll()
		s.awaitOwned("/members/0000", "data")
		s.must(all[0].Close(s.ctx))
		s.must(parent.Close(s.ctx))
		testenv.Eventually(s, func() bool { return s.client.Health().Watches == 0 }, "no watch is left")
	})
}

// The desired parent of a node is never created as a mere parent, without its own ACL.
func TestPersistentNodeBelowRefusedOneWaits(t *testing.T) {
	inScene(t, func(s *scene) {
		parent := nodes.NewPersistentNode(s.client, "/members", builders.Container, nil, nodes.WithACL(zk.ACL{}))
		events := s.events(parent)
		s.must(parent.Start())
		s.wantErr(s.next(events, nodes.Refused).Err, zk.ErrInvalidACL)
		for _, path := range []string{keptPath, "/members/more/a"} {
			n := nodes.NewPersistentNode(s.client, path, builders.Ephemeral, []byte("one"))
			s.must(n.Start())
			defer s.awaitOwned(path, "one") // when nobody has a wish for the parent any more
		}
		s.settle()
		s.awaitNothing("/members")
		s.must(parent.Close(s.ctx))
	})
}

// The program removes the watches of nodes, or the one of their parent. They are set again.
func TestPersistentNodeWatchesRemovedByProgram(t *testing.T) {
	for _, count := range []int{1, 10} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.startMany(count)
				s.settle()
				for _, path := range []string{"/members", "/members/0000"} {
					s.must(s.client.Watches().RemoveAll().Quietly().ForPath(s.ctx, path))
				}
				s.settle()
				s.must(s.reader.Delete().ForPath(s.ctx, "/members/0000"))
				s.awaitOwned("/members/0000", "data")
			})
		})
	}
}

// All nodes of a parent are closed while their watch is requested.
func TestPersistentNodesClosedBeforeWatchIsAnsweredLeaveNone(t *testing.T) {
	for _, action := range []curatortest.Action{curatortest.HoldRequest, curatortest.HoldReply} {
		t.Run(action.String(), func(t *testing.T) {
			inScene(t, func(s *scene) {
				held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"addWatch"}, Count: 1, Action: action})
				var all []*nodes.PersistentNode
				for i := range 10 {
					n := nodes.NewPersistentNode(s.client, fmt.Sprintf("/members/%d", i), builders.Ephemeral, nil)
					s.must(n.Start())
					all = append(all, n)
				}
				s.must(held.Wait(s.ctx))
				ended, end := context.WithCancel(s.ctx)
				end()
				for _, n := range all {
					_ = n.Close(ended)
				}
				held.Remove()
				for _, n := range all {
					s.must(n.Close(s.ctx))
				}
				testenv.Eventually(s, func() bool { return s.client.Health().Watches == 0 }, "no watch is left")
			})
		})
	}
}

// The servers refuse the recursive watch of a second parent, so the client goes on with one-shot watches. That of the
// first parent is still set, and is removed with its nodes.
func TestPersistentNodesClosedAfterRefusalOfAnotherWatchLeaveNone(t *testing.T) {
	inScene(t, func(s *scene) {
		one := s.startAll(10)
		s.awaitCreated(one)
		s.settle()
		s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented,
		})
		var all []*nodes.PersistentNode
		for i := range 10 {
			n := nodes.NewPersistentNode(s.client, fmt.Sprintf("/others/%d", i), builders.Ephemeral, nil)
			s.must(n.Start())
			all = append(all, n)
		}
		s.awaitCreated(all)
		s.settle()
		for _, n := range append(one, all...) {
			s.must(n.Close(s.ctx))
		}
		testenv.Eventually(s, func() bool { return s.client.Health().Watches == 0 }, "no watch is left")
	})
}
