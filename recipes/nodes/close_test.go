package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/nodes"
)

// The end of ctx ends the wait of Close, not the deletion.
func TestPersistentNodeClosedWithEndedContextIsDeleted(t *testing.T) {
	inScene(t, func(s *scene) {
		n := s.ephemeral(keptPath, "one")
		s.settle()
		ended, end := context.WithCancel(s.ctx)
		end()
		s.wantErr(n.Close(ended), context.Canceled)
		s.awaitNothing(keptPath)
	})
}

// In an outage another program takes the place of our node. Its node has the version that ours had.
func TestPersistentNodeWriteOfOutageSparesNodeOfOther(t *testing.T) {
	for _, act := range []string{"close", "set"} {
		t.Run(act, func(t *testing.T) {
			inScene(t, func(s *scene) {
				n := s.ephemeral(keptPath, "one")
				s.settle()
				hold := s.place.Faults().Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.HoldRequest})
				s.place.Faults().CutAll()
				s.must(hold.Wait(s.ctx))
				s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
				// The server may remove the container, which is empty for a moment.
				_, err := s.reader.Create().CreatingParentContainersIfNeeded().WithMode(builders.Ephemeral).
					ForPath(s.ctx, keptPath, []byte("theirs"))
				s.must(err)
				short, end := context.WithTimeout(s.ctx, 10*time.Millisecond)
				defer end()
				if act == "close" {
					_ = n.Close(short)
					hold.Remove()
					s.must(n.Close(s.ctx))
				} else {
					_ = n.SetData(short, []byte("two"))
					hold.Remove()
					testenv.Eventually(s, func() bool { return errors.Is(n.Err(), nodes.ErrForeign) }, "reported")
				}
				if data, stat := s.get(keptPath); stat == nil || data != "theirs" {
					t.Errorf("%q, %+v", data, stat)
				}
			})
		})
	}
}

func TestPersistentNodeNoListenerBeginsAfterClose(t *testing.T) {
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, nil)
		entered, release := make(chan struct{}), make(chan struct{})
		n.AddListener(func(context.Context, nodes.Event) { close(entered); <-release })
		var closed bool
		n.AddListener(func(ctx context.Context, _ nodes.Event) {
			if closed {
				t.Errorf("called after Close, ctx %v", ctx.Err())
			}
		})
		s.must(n.Start())
		<-entered
		s.must(n.Close(s.ctx))
		closed = true
		close(release)
		s.settle()
	})
}

// A node that is closed during its create is kept again for a moment. Both leave nothing.
func TestPersistentNodeKeptAgainDuringCreateAndClosedLeavesNothing(t *testing.T) {
	for _, mode := range []builders.CreateMode{builders.Ephemeral, builders.Persistent} {
		for _, action := range []curatortest.Action{curatortest.HoldRequest, curatortest.HoldReply} {
			t.Run(fmt.Sprint(mode, action), func(t *testing.T) {
				inScene(t, func(s *scene) {
					s.must(s.client.CreateContainers(s.ctx, "/members"))
					held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: action})
					ended, end := context.WithCancel(s.ctx)
					end()
					one := nodes.NewPersistentNode(s.client, keptPath, mode, nil)
					s.must(one.Start())
					s.must(held.Wait(s.ctx))
					s.wantErr(one.Close(ended), context.Canceled)
					two := nodes.NewPersistentNode(s.client, keptPath, mode, nil)
					s.must(two.Start())
					s.wantErr(two.Close(ended), context.Canceled)
					held.Remove()
					s.must(two.Close(s.ctx))
					s.must(one.Close(s.ctx))
					s.wantNoMembers()
				})
			})
		}
	}
}

// Close before the first read is answered spares the node that was there before.
func TestPersistentNodeClosedBeforeItAdoptsSparesNode(t *testing.T) {
	for _, action := range []curatortest.Action{curatortest.HoldRequest, curatortest.HoldReply} {
		t.Run(action.String(), func(t *testing.T) {
			inScene(t, func(s *scene) {
				_, err := s.reader.Create().CreatingParentsIfNeeded().ForPath(s.ctx, keptPath, []byte("theirs"))
				s.must(err)
				held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: action})
				n := nodes.NewPersistentNode(s.client, keptPath, builders.Persistent, []byte("one"))
				s.must(n.Start())
				s.must(held.Wait(s.ctx))
				ended, end := context.WithCancel(s.ctx)
				end()
				s.wantErr(n.Close(ended), context.Canceled)
				held.Remove()
				s.must(n.Close(s.ctx))
				if data, _ := s.get(keptPath); data != "theirs" {
					t.Errorf("the node has %q", data)
				}
			})
		})
	}
}
