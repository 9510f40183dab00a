package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/nodes"
)

// forEachFault runs a life of a node with a fault at each of its requests.
func forEachFault(t *testing.T, prepare func(*curatortest.Faults), life func(s *scene)) {
	t.Helper()
	for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
				testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
					s := &scene{T: t, ctx: testenv.Context(t), place: one, chroot: chroot}
					if prepare != nil {
						prepare(one.Faults())
					}
					s.reader = connect(t, two, chroot)
					s.client = connect(t, one, chroot)
					in := one.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
					life(s)
					in.Remove()
					hit = in.Hits() > 0
				})
				return hit
			})
		})
	}
}

var allModes = []builders.CreateMode{
	builders.Ephemeral, builders.EphemeralSequential, builders.Persistent, builders.Container,
}

func TestPersistentNodeFaultAtEachRequest(t *testing.T) {
	t.Parallel()
	for _, mode := range allModes {
		for _, protected := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, protected), func(t *testing.T) {
				t.Parallel()
				var opts []nodes.NodeOption
				if protected {
					opts = append(opts, nodes.WithProtection())
				}
				forEachFault(t, nil, func(s *scene) {
					n := nodes.NewPersistentNode(s.client, keptPath, mode, []byte("one"), opts...)
					s.start(n)
					s.must(n.SetData(s.ctx, []byte("two")))
					s.wantMember(n.ActualPath(), "two")
					s.must(s.reader.Delete().ForPath(s.ctx, n.ActualPath()))
					testenv.Eventually(s, func() bool { _, stat := s.get(n.ActualPath()); return stat != nil }, "created again")
					s.must(n.SetData(s.ctx, []byte("three")))
					s.wantMember(n.ActualPath(), "three")
					s.must(n.Close(s.ctx))
					s.wantNoMembers()
				})
			})
		}
	}
}

// The session ends, and the server may keep its node until the timeout.
func TestPersistentNodeSessionLostFaultAtEachRequest(t *testing.T) {
	t.Parallel()
	for _, protected := range []bool{false, true} {
		for _, mode := range []builders.CreateMode{builders.Ephemeral, builders.EphemeralSequential} {
			t.Run(fmt.Sprint(mode, protected), func(t *testing.T) {
				t.Parallel()
				var opts []nodes.NodeOption
				if protected {
					opts = append(opts, nodes.WithProtection())
				}
				forEachFault(t, nil, func(s *scene) {
					n := nodes.NewPersistentNode(s.client, keptPath, mode, []byte("one"), opts...)
					s.start(n)
					s.reset()
					s.awaitOwned(n.ActualPath(), "one")
					s.must(n.SetData(s.ctx, []byte("two")))
					s.wantMember(n.ActualPath(), "two")
					s.must(n.Close(s.ctx))
					s.wantNoMembers()
				})
			})
		}
	}
}

// Nodes that share a watch and travel in transactions go through a fault at each request, and through the end of the
// session behind it.
func TestPersistentNodeManyFaultAtEachRequest(t *testing.T) {
	t.Parallel()
	forEachFault(t, nil, func(s *scene) {
		all := s.startAll(20)
		s.awaitCreated(all)
		s.must(s.reader.Delete().ForPath(s.ctx, "/members/0003"))
		s.awaitOwned("/members/0003", "data")
		s.reset()
		s.awaitMembers(20)
		s.must(all[7].SetData(s.ctx, []byte("other")))
		s.awaitOwned("/members/0007", "other")
		for _, n := range all {
			s.must(n.Close(s.ctx))
		}
		s.wantNoMembers()
	})
}

// A Close before anything is answered leaves nothing.
func TestPersistentNodeClosedAtEachRequestLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range allModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			for _, action := range []curatortest.Action{curatortest.HoldRequest, curatortest.HoldReply} {
				testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
					testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
						s := &scene{T: t, ctx: testenv.Context(t), place: one, chroot: chroot}
						s.reader = connect(t, two, chroot)
						s.client = connect(t, one, chroot)
						in := one.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: true})
						n := nodes.NewPersistentNode(s.client, keptPath, mode, []byte("one"))
						s.must(n.Start())
						waiting, cancel := context.WithTimeout(s.ctx, time.Second)
						defer cancel()
						if hit = in.Wait(waiting) == nil; hit {
							ended, end := context.WithTimeout(s.ctx, 100*time.Millisecond)
							defer end()
							_ = n.Close(ended) // bounded, whatever the servers do
						}
						in.Remove()
						s.must(n.Close(s.ctx))
						s.wantNoMembers()
					})
					return hit
				})
			}
		})
	}
}

// The data changes while the create is under way, whose answer is lost.
func TestPersistentNodeSequentialDataChangesBeforeLostAnswerHasOneNode(t *testing.T) {
	for _, protected := range []bool{false, true} {
		t.Run(fmt.Sprint(protected), func(t *testing.T) {
			inScene(t, func(s *scene) {
				in := s.place.Faults().Add(curatortest.Rule{
					Ops: []string{"multi"}, Action: curatortest.HoldReply, Count: 1,
				})
				_, err := s.reader.Create().ForPath(s.ctx, "/members", nil)
				s.must(err)
				var opts []nodes.NodeOption
				if protected {
					opts = append(opts, nodes.WithProtection())
				}
				n := nodes.NewPersistentNode(s.client, keptPath, builders.EphemeralSequential, []byte("one"), opts...)
				s.must(n.Start())
				s.must(in.Wait(s.ctx))
				ended, end := context.WithCancel(s.ctx)
				end()
				s.wantErr(n.SetData(ended, []byte("two")), context.Canceled)
				s.place.Faults().CutAll()
				in.Remove()
				s.must(n.SetData(s.ctx, []byte("three")))
				s.wantMember(n.ActualPath(), "three")
				s.must(n.Close(s.ctx))
				s.wantNoMembers()
			})
		})
	}
}

func TestPersistentNodeOnServersWithoutPersistentWatches(t *testing.T) {
	t.Parallel()
	forEachFault(t, testenv.Downgrade, func(s *scene) {
		var all []*nodes.PersistentNode
		for i := range 10 { // so many share a watch on newer servers
			n := nodes.NewPersistentNode(s.client, fmt.Sprintf("/members/%d", i), builders.Ephemeral, []byte("one"))
			s.must(n.Start())
			all = append(all, n)
		}
		for _, n := range all {
			s.must(n.WaitForInitialCreate(s.ctx))
		}
		s.must(s.reader.Delete().ForPath(s.ctx, "/members/3"))
		s.awaitOwned("/members/3", "one")
		_, err := s.reader.SetData().ForPath(s.ctx, "/members/4", []byte("theirs"))
		s.must(err)
		s.awaitOwned("/members/4", "one")
		for _, n := range all {
			s.must(n.Close(s.ctx))
		}
		s.wantNoMembers()
	})
}

// wantMember fails the test unless the node is the only member and has that data.
func (s *scene) wantMember(path, data string) {
	s.Helper()
	if got, stat := s.get(path); stat == nil || got != data {
		s.Errorf("%s has %q, want %q", path, got, data)
	}
	members, err := s.reader.GetChildren().ForPath(s.ctx, "/members")
	s.must(err)
	if len(members) != 1 {
		s.Errorf("members: %v", members)
	}
}

func (s *scene) wantNoMembers() {
	s.Helper()
	members, err := s.reader.GetChildren().ForPath(s.ctx, "/members")
	if errors.Is(err, zk.ErrNoNode) { // a container may be gone by then
		return
	}
	s.must(err)
	if len(members) > 0 {
		s.Errorf("left: %v", members)
	}
}
