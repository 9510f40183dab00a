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

// others are what another client may do to a node. A create takes the place of the node.
var others = map[string]func(s *scene) error{
	"delete": func(s *scene) error {
		return s.reader.Delete().Quietly().ForPath(s.ctx, keptPath)
	},
	"change": func(s *scene) error {
		_, err := s.reader.SetData().ForPath(s.ctx, keptPath, []byte("theirs"))
		return err
	},
	"create": func(s *scene) error {
		if err := s.reader.Delete().Quietly().ForPath(s.ctx, keptPath); err != nil {
			return err
		}
		_, err := s.reader.Create().CreatingParentContainersIfNeeded().WithMode(builders.Ephemeral).
			ForPath(s.ctx, keptPath, []byte("theirs"))
		return err
	},
	"delete parent": func(s *scene) error {
		return s.reader.Delete().Quietly().DeletingChildrenIfNeeded().ForPath(s.ctx, "/members")
	},
}

// Another client does something to the node at each moment of its life: while a request is on its way, or its answer.
func TestPersistentNodeOtherActsAtEachMoment(t *testing.T) {
	t.Parallel()
	for name, act := range others {
		for _, mode := range []builders.CreateMode{builders.Ephemeral, builders.Persistent} {
			for _, action := range []curatortest.Action{curatortest.HoldRequest, curatortest.HoldReply} {
				t.Run(fmt.Sprint(name, mode, action), func(t *testing.T) {
					t.Parallel()
					testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
						testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
							s := &scene{T: t, ctx: testenv.Context(t), place: one, chroot: chroot}
							s.reader, s.client = connect(t, two, chroot), connect(t, one, chroot)
							hit = s.otherActs(act, mode, curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: true})
						})
						return hit
					})
				})
			}
		}
	}
}

func (s *scene) otherActs(act func(*scene) error, mode builders.CreateMode, rule curatortest.Rule) (hit bool) {
	s.Helper()
	in := s.place.Faults().Add(rule)
	n := nodes.NewPersistentNode(s.client, keptPath, mode, []byte("one"))
	s.must(n.Start())
	waiting, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	set := make(chan error, 1)
	go func() { // so that there are more requests
		_ = n.WaitForInitialCreate(waiting)
		set <- n.SetData(s.ctx, []byte("two"))
	}()
	if hit = in.Wait(waiting) == nil; hit {
		if err := act(s); err != nil && !errors.Is(err, zk.ErrNoNode) {
			s.must(err)
		}
	}
	in.Remove()
	if err := <-set; err != nil && !errors.Is(err, nodes.ErrForeign) {
		s.must(err)
	}
	theirs := func() bool {
		_, stat := s.get(keptPath)
		return stat != nil && stat.EphemeralOwner == s.reader.SessionID()
	}
	if theirs() {
		testenv.Eventually(s, func() bool { return errors.Is(n.Err(), nodes.ErrForeign) }, "reported")
		s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
	}
	testenv.Eventually(s, func() bool {
		data, stat := s.get(keptPath)
		return stat != nil && data == "two" && (stat.EphemeralOwner == s.client.SessionID()) == mode.IsEphemeral()
	}, "the node is as desired")
	s.must(n.Close(s.ctx))
	s.wantNoMembers()
	return hit
}
