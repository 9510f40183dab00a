package nodes_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/retry"
)

const ttlPath = "/tasks/t"

func TestPersistentTTLNodeIsCreatedWithItsChildInOneTransaction(t *testing.T) {
	inScene(t, func(s *scene) {
		s.must(s.client.CreateContainers(s.ctx, "/tasks"))
		s.requests()
		n := nodes.NewPersistentTTLNode(s.client, ttlPath, time.Minute, []byte("one"))
		s.must(n.Start())
		s.must(n.WaitForInitialCreate(s.ctx))
		if counts, _ := s.requests(); counts["multi"] != 1 {
			t.Errorf("created with %v", counts)
		}
		_, node := s.get(ttlPath)
		data, child := s.get(ttlPath + "/touch")
		if node == nil || child == nil || node.Czxid != child.Czxid || data != "" {
			t.Errorf("%+v, %+v, %q", node, child, data)
		}
		s.must(n.SetData(s.ctx, []byte("two")))
		s.must(n.Close(s.ctx))
		if data, _ := s.get(ttlPath); data != "two" {
			t.Errorf("the node has %q after Close", data)
		}
	})
}

func TestPersistentTTLNodeOutlivesItsTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // servers look at a TTL once a minute
		place := curatortest.NewServerT(t, curatortest.WithoutPort())
		s := &scene{T: t, ctx: testenv.Context(t), place: place}
		s.reader, s.client = connect(t, place, ""), connect(t, place, "")
		const ttl = 10 * time.Second
		n := nodes.NewPersistentTTLNode(s.client, ttlPath, ttl, nil, nodes.WithChildName("alive"), nodes.WithTouchFactor(4))
		s.must(n.Start())
		s.must(n.WaitForInitialCreate(s.ctx))
		_, before := s.get(ttlPath + "/alive")
		<-time.After(2*time.Minute + time.Second)
		_, after := s.get(ttlPath + "/alive")
		if after == nil || after.Czxid != before.Czxid {
			t.Fatalf("the child is another one: %+v, %+v", before, after)
		}
		if touches := after.Version - before.Version; touches < 40 || touches > 50 {
			t.Errorf("%d touches in two minutes", touches)
		}
		s.must(s.reader.Delete().DeletingChildrenIfNeeded().Quietly().ForPath(s.ctx, ttlPath))
		testenv.Eventually(s, func() bool { _, stat := s.get(ttlPath + "/alive"); return stat != nil }, "created again")
		s.must(n.Close(s.ctx))
		<-time.After(2 * time.Minute)
		s.awaitNothing(ttlPath + "/alive")
	})
}

func TestPersistentTTLNodeOnServersWithoutTTL(t *testing.T) {
	inScene(t, func(s *scene) {
		s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"multi"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented,
		})
		n := nodes.NewPersistentTTLNode(s.client, ttlPath, time.Minute, nil)
		events := s.events(n.PersistentNode)
		s.must(n.Start())
		s.wantErr(s.next(events, nodes.Refused).Err, framework.ErrUnimplemented)
		s.must(n.Close(s.ctx))
	})
}

func TestPersistentTTLNodeBadArguments(t *testing.T) {
	inScene(t, func(s *scene) {
		newTTL := func(ttl time.Duration, opts ...nodes.TTLOption) *nodes.PersistentTTLNode {
			return nodes.NewPersistentTTLNode(s.client, ttlPath, ttl, nil, opts...)
		}
		for want, n := range map[string]*nodes.PersistentTTLNode{
			"a TTL of 0s is not between":                    newTTL(0),
			"arguments: the TTL 1µs is below a millisecond": newTTL(1000),
			"a TTL of 876000h0m0s is not between":           newTTL(876_000 * time.Hour),
			"a touch factor of -1":                          newTTL(time.Minute, nodes.WithTouchFactor(-1)),
			"a touch factor of 0":                           newTTL(time.Minute, nodes.WithTouchFactor(0)),
			"a touch factor of 60001":                       newTTL(time.Minute, nodes.WithTouchFactor(60_001)),
		} {
			err := n.Start()
			s.wantErr(err, framework.ErrBadArguments)
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not about %q", err, want)
			}
		}
		for _, name := range []string{"", "a/b", ".."} {
			n := nodes.NewPersistentTTLNode(s.client, ttlPath, time.Minute, nil, nodes.WithChildName(name))
			s.wantErr(n.Start(), zk.ErrInvalidPath)
		}
	})
}

// Looks at the child do not put its touch off, and a refused touch is tried again.
func TestPersistentTTLNodeTouchedBesideLooksAndRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		place := curatortest.NewServerT(t, curatortest.WithoutPort())
		s := &scene{T: t, ctx: t.Context(), place: place}
		s.reader, s.client = connect(t, place, ""), connect(t, place, "")
		const ttl = 10 * time.Minute
		n := nodes.NewPersistentTTLNode(s.client, ttlPath, ttl, nil)
		s.must(n.Start())
		s.must(n.WaitForInitialCreate(s.ctx))
		_, before := s.get(ttlPath + "/touch")
		<-time.After(4 * time.Minute)
		for range 9 { // a session each four minutes
			s.reset()
			<-time.After(4 * time.Minute)
		}
		_, after := s.get(ttlPath + "/touch")
		if after == nil || before.Czxid != after.Czxid {
			t.Fatalf("made anew: %v", after)
		}
		// touches are refused for a while
		events := s.events(n.PersistentNode)
		in := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"multi"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		<-time.After(7 * time.Minute)
		in.Remove()
		if len(events) > 1 {
			t.Errorf("%d events", len(events))
		}
		<-time.After(95 * time.Second)
		_, last := s.get(ttlPath + "/touch")
		if last == nil || last.Version == after.Version || last.Czxid != after.Czxid {
			t.Errorf("%+v, %+v", after, last)
		}
		s.must(n.Close(s.ctx))
	})
}

func TestPersistentTTLNodeLostTouchIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		place := curatortest.NewServerT(t, curatortest.WithoutPort())
		s := &scene{T: t, ctx: t.Context(), place: place}
		s.reader, s.client = connect(t, place, ""), connect(t, place, "")
		const ttl = 10 * time.Minute
		n := nodes.NewPersistentTTLNode(s.client, ttlPath, ttl, nil)
		s.must(n.Start())
		s.must(n.WaitForInitialCreate(s.ctx))
		_, before := s.get(ttlPath + "/touch")
		in := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutBefore})
		<-time.After(6 * time.Minute)
		_, after := s.get(ttlPath + "/touch")
		if in.Hits() != 1 || after.Version == before.Version {
			t.Errorf("hits %d, not touched again", in.Hits())
		}
		s.must(n.Close(s.ctx))
	})
}

// The removal of the watch of a closed node is tried again on the next connection, behind the read of the next one.
func TestPersistentTTLNodeStartedWhileWatchIsRemoved(t *testing.T) {
	inScene(t, func(s *scene) {
		start := func() *nodes.PersistentTTLNode {
			n := nodes.NewPersistentTTLNode(s.client, ttlPath, 10*time.Hour, nil)
			s.must(n.Start())
			s.must(n.WaitForInitialCreate(s.ctx))
			s.settle()
			return n
		}
		one := start()
		lost := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"removeWatches", "checkWatches"}, Count: 1, Action: curatortest.CutBefore,
		})
		s.must(one.Close(s.ctx))
		s.must(lost.Wait(s.ctx))
		start()
		s.awaitRemovalOfWatch()
		s.settle()
		s.must(s.reader.Delete().ForPath(s.ctx, ttlPath+"/touch"))
		testenv.Eventually(s, func() bool { _, stat := s.get(ttlPath + "/touch"); return stat != nil }, "created again")
	}, framework.WithRetryPolicy(retry.Forever(time.Second)))
}

// The node has its ACL also if its child was to be created first.
func TestPersistentTTLNodeKeepsItsACL(t *testing.T) {
	acl := zk.WorldACL(zk.PermRead | zk.PermWrite | zk.PermCreate | zk.PermDelete)
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentTTLNode(s.client, ttlPath, time.Minute, []byte("one"), nodes.WithACL(acl...))
		s.must(n.Start()) // without a parent
		s.must(n.WaitForInitialCreate(s.ctx))
		s.wantACL(ttlPath, acl)
		s.wantACL(ttlPath+"/touch", acl)
		s.settle()
		held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldRequest})
		s.must(s.reader.Delete().ForPath(s.ctx, ttlPath+"/touch"))
		s.must(held.Wait(s.ctx))
		s.must(s.reader.Delete().Quietly().ForPath(s.ctx, ttlPath)) // a server may delete the empty container first
		late := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"multi"}, Count: 1, Action: curatortest.ReplyError, Err: framework.ErrThrottledOp,
		})
		held.Remove()
		s.must(late.Wait(s.ctx))
		testenv.Eventually(s, func() bool {
			data, _ := s.get(ttlPath)
			_, child := s.get(ttlPath + "/touch")
			return data == "one" && child != nil
		}, "created again")
		s.wantACL(ttlPath, acl)
	})
}

// wantACL fails the test unless a node has that ACL.
func (s *scene) wantACL(path string, want []zk.ACL) {
	s.Helper()
	got, err := s.reader.GetACL().ForPath(s.ctx, path)
	s.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("the ACL of %s (-want +got):\n%s", path, diff)
	}
}

// inOwnScene runs a test in virtual time on a server in memory, which has a clock of hours.
func inOwnScene(t *testing.T, test func(s *scene), opts ...framework.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		place := curatortest.NewServerT(t, curatortest.WithoutPort())
		s := &scene{T: t, ctx: t.Context(), place: place}
		s.reader, s.client = connect(t, place, ""), connect(t, place, "", opts...)
		test(s)
	})
}

// A node that was there before, with its child, is written again at once and then as any other. Its reads stop neither
// the touches of other nodes nor the tries of a refused one.
func TestPersistentTTLNodeThatExistsIsTouched(t *testing.T) {
	inOwnScene(t, func(s *scene) {
		const ttl = 10 * time.Minute
		other := nodes.NewPersistentTTLNode(s.client, "/tasks/other", ttl, nil)
		s.start(other.PersistentNode)
		before := nodes.NewPersistentTTLNode(s.reader, ttlPath, ttl, nil)
		s.start(before.PersistentNode)
		s.must(before.Close(s.ctx))
		_, err := s.reader.Create().WithACL(zk.WorldACL(zk.PermRead|zk.PermAdmin)...).ForPath(s.ctx, "/closed", nil)
		s.must(err)
		refused := nodes.NewPersistentNode(s.client, "/closed/n", builders.Ephemeral, nil)
		events := s.events(refused)
		s.must(refused.Start())
		s.wantErr(s.next(events, nodes.Refused).Err, zk.ErrNoAuth)

		n := nodes.NewPersistentTTLNode(s.client, ttlPath, ttl, nil)
		s.start(n.PersistentNode)
		synctest.Wait()
		_, is := s.get(ttlPath + "/touch")
		if is.Version == 0 {
			t.Error("the child is not written at once: its TTL may be about to end")
		}
		_, err = s.reader.SetACL().WithACL(zk.WorldACL(zk.PermAll)...).ForPath(s.ctx, "/closed")
		s.must(err)
		<-time.After(2 * time.Minute)
		if _, stat := s.get("/closed/n"); stat == nil {
			t.Errorf("the refused node is not tried again: %v", refused.Err())
		}
		<-time.After(time.Hour)
		for _, path := range []string{ttlPath, "/tasks/other"} {
			if _, stat := s.get(path + "/touch"); stat == nil || stat.Version < 11 || stat.Version > 14 {
				t.Errorf("%s has %+v after an hour", path, stat)
			}
		}
	})
}

// The nodes and their children travel together, in full transactions, so a thousand of them cost what their number
// needs.
func TestPersistentTTLNodeRequestsOfMany(t *testing.T) {
	inOwnScene(t, func(s *scene) {
		const count = 1000
		s.must(s.client.CreateContainers(s.ctx, "/tasks"))
		s.requests()
		all := make([]*nodes.PersistentTTLNode, count)
		for i := range all {
			all[i] = nodes.NewPersistentTTLNode(s.client, fmt.Sprintf("/tasks/%04d", i), time.Hour, nil)
			s.must(all[i].Start())
		}
		for _, n := range all {
			s.must(n.WaitForInitialCreate(s.ctx))
		}
		if counts, _ := s.requests(); counts["multi"] > 2*count/50 {
			t.Errorf("%d nodes with a child each are created with %v", count, counts)
		}
	})
}

// A child that is deleted is no event of its node, and one that is refused is.
func TestPersistentTTLNodeEventsOfChild(t *testing.T) {
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentTTLNode(s.client, ttlPath, time.Hour, nil)
		events := s.events(n.PersistentNode)
		s.start(n.PersistentNode)
		s.next(events, nodes.Created)
		s.settle()
		_, err := s.reader.Create().ForPath(s.ctx, ttlPath+"/other", nil)
		s.must(err) // a server deletes the node, a container, when it has no child for a moment
		s.must(s.reader.Delete().ForPath(s.ctx, ttlPath+"/touch"))
		testenv.Eventually(s, func() bool { _, stat := s.get(ttlPath + "/touch"); return stat != nil }, "created again")
		in := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"multi"}, Count: 1, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		s.settle()
		s.must(s.reader.Delete().Quietly().ForPath(s.ctx, ttlPath+"/touch"))
		if ev := s.next(events, nodes.Refused); ev.Path != s.chroot+ttlPath+"/touch" && ev.Path != ttlPath+"/touch" {
			t.Errorf("refused: %+v", ev)
		}
		in.Remove()
		s.must(s.reader.Delete().ForPath(s.ctx, ttlPath+"/other"))
		s.must(n.Close(s.ctx))
	})
}
