package nodes_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/nodes"
)

type aclFunc func(path string) []zk.ACL

func (f aclFunc) DefaultACL() []zk.ACL            { return zk.WorldACL(zk.PermAll) }
func (f aclFunc) ACLForPath(path string) []zk.ACL { return f(path) }

// A node that nobody may read, and that is not ephemeral, stays ours in the next session.
func TestPersistentNodeUnreadableSurvivesSession(t *testing.T) {
	for _, version := range []curatortest.Version{curatortest.Version38, curatortest.Version39} {
		for _, mode := range []builders.CreateMode{builders.Persistent, builders.PersistentSequential} {
			t.Run(fmt.Sprint(version, mode), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					place := curatortest.NewServerT(t, curatortest.WithoutPort(), curatortest.WithVersion(version))
					s := &scene{T: t, ctx: t.Context(), place: place}
					s.reader, s.client = connect(t, place, ""), connect(t, place, "")
					n := nodes.NewPersistentNode(s.client, keptPath, mode, []byte("one"),
						nodes.WithACL(zk.WorldACL(zk.PermWrite|zk.PermDelete)...))
					events := s.events(n)
					s.start(n)
					s.next(events, nodes.Created)
					s.reset()
					<-time.After(10 * time.Second)
					s.must(n.Err())
					if len(events) > 0 {
						t.Errorf("%v", <-events)
					}
					s.must(n.SetData(s.ctx, []byte("three")))
					s.reset()
					s.must(n.Close(s.ctx))
					s.wantNoMembers()
				})
			})
		}
	}
}

// Another callback of the library holds the answer to the create back until the next session.
func TestPersistentNodeAnswerOfEarlierSessionIsIgnored(t *testing.T) {
	var before func()
	acl := aclFunc(func(path string) []zk.ACL {
		if path == keptPath && before != nil {
			before()
		}
		return zk.WorldACL(zk.PermAll)
	})
	inScene(t, func(s *scene) {
		s.must(s.reader.CreateContainers(s.ctx, "/members"))
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"))
		events := s.events(n)
		blocked, release := make(chan struct{}), make(chan struct{})
		before = func() {
			before = nil
			s.must(waitqueue.ForLibrary(s.client).CheckExists().InBackground(func(context.Context, callbacks.Event) {
				close(blocked)
				<-release
			}).ForPath(s.ctx, "/x"))
			<-blocked
		}
		s.must(n.Start())
		<-blocked
		s.awaitOwned(keptPath, "one")
		s.settle()
		session := s.client.SessionID()
		s.expire(session)
		testenv.Eventually(s, func() bool {
			return s.client.SessionID() != session && s.client.IsConnected()
		}, "a new session")
		s.settle()
		close(release)
		s.must(n.WaitForInitialCreate(s.ctx))
		s.awaitOwned(keptPath, "one")
		s.settle()
		s.next(events, nodes.Created)
		if len(events) > 0 {
			t.Errorf("%v", <-events)
		}
		s.must(n.Close(s.ctx))
	}, framework.WithACLProvider(acl))
}

// Another callback of the library holds the answer to a read back until the session is lost: the node is not there any
// more.
func TestPersistentNodeAnswerOfLostSessionIsIgnored(t *testing.T) {
	inScene(t, func(s *scene) {
		_, err := s.client.Create().CreatingParentsIfNeeded().WithMode(builders.Ephemeral).
			ForPath(s.ctx, keptPath, []byte("one"))
		s.must(err)
		blocked, release := make(chan struct{}), make(chan struct{})
		s.must(waitqueue.ForLibrary(s.client).CheckExists().InBackground(func(context.Context, callbacks.Event) {
			close(blocked)
			<-release
		}).ForPath(s.ctx, "/x"))
		<-blocked
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"))
		events := s.events(n)
		s.must(n.Start())
		s.settle() // it is read
		lost := s.awaitState(framework.Lost)
		restore := s.place.Faults().RefuseConnects()
		s.place.Faults().CutAll()
		lost()
		s.settle()
		close(release)
		s.settle()
		if len(events) > 0 {
			t.Errorf("%+v without a session", <-events)
		}
		restore()
		s.must(n.WaitForInitialCreate(s.ctx))
		s.awaitOwned(keptPath, "one")
		s.must(n.Close(s.ctx))
	})
}

func TestPersistentNodeACLProviderPanics(t *testing.T) {
	var bad atomic.Bool
	bad.Store(true)
	acl := aclFunc(func(path string) []zk.ACL {
		if path == keptPath && bad.Load() {
			panic("no ACL")
		}
		return zk.WorldACL(zk.PermAll)
	})
	inScene(t, func(s *scene) {
		s.must(s.reader.CreateContainers(s.ctx, "/members"))
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"))
		events := s.events(n)
		s.must(n.Start())
		s.next(events, nodes.Refused)
		bad.Store(false)
		s.next(events, nodes.Created)
		s.must(n.Close(s.ctx))
	}, framework.WithACLProvider(acl))
}

// eachVersion runs a test on servers that show the Stat of a node that may not be read, and on those that do not.
func eachVersion(t *testing.T, test func(s *scene, shown bool)) {
	t.Helper()
	t.Parallel()
	for _, version := range []curatortest.Version{curatortest.Version38, curatortest.Version39} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				place := curatortest.NewServerT(t, curatortest.WithoutPort(), curatortest.WithVersion(version))
				s := &scene{T: t, ctx: t.Context(), place: place}
				s.reader, s.client = connect(t, place, ""), connect(t, place, "")
				test(s, version == curatortest.Version38)
			})
		})
	}
}

// unreadable is the option of a node that nobody may read.
var unreadable = nodes.WithACL(zk.WorldACL(zk.PermWrite | zk.PermDelete)...)

// The answer to the create of a node is lost, and nobody may read it.
func TestPersistentNodeUnreadableWithLostCreate(t *testing.T) {
	for _, mode := range []builders.CreateMode{builders.Ephemeral, builders.Persistent, builders.Container} {
		for _, closes := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, closes), func(t *testing.T) {
				eachVersion(t, func(s *scene, shown bool) {
					s.must(s.reader.CreateContainers(s.ctx, "/members"))
					in := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutAfter})
					n := nodes.NewPersistentNode(s.client, keptPath, mode, []byte("one"), unreadable)
					s.must(n.Start())
					s.must(in.Wait(s.ctx))
					if mode.IsEphemeral() && !shown { // it may be that of somebody else, until the session ends
						<-time.After(time.Second)
						s.wantErr(n.Err(), zk.ErrNoAuth)
						s.reset()
						closes = false
					}
					if !closes {
						s.must(n.WaitForInitialCreate(s.ctx))
						s.must(n.SetData(s.ctx, []byte("two")))
					}
					s.must(n.Close(s.ctx))
					<-time.After(testenv.SessionTimeout * 2)
					s.wantNoMembers()
				})
			})
		}
	}
}

// The node is gone and cannot be created: the watch for it ends with Close.
func TestPersistentNodeUnreadableLeavesNoWatch(t *testing.T) {
	eachVersion(t, func(s *scene, _ bool) {
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"), unreadable)
		s.start(n)
		s.settle()
		set := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldRequest})
		refused := make(chan error, 1)
		go func() { refused <- n.SetData(s.ctx, []byte("two")) }()
		s.must(set.Wait(s.ctx))
		create := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"multi"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
		set.Remove()
		s.wantErr(<-refused, zk.ErrNoAuth)
		create.Remove()
		s.must(n.Close(s.ctx))
		testenv.Eventually(s, func() bool { return s.client.Health().Watches == 0 }, "no watch is left")
	})
}

// The permission to read a node is taken for a while. Servers send no event of what happens to it then. A slow read
// finds it when the permission is back.
func TestPersistentNodeChangedWhileUnreadableIsPutRight(t *testing.T) {
	for _, count := range []int{1, 12} { // with a watch each, and with a recursive one
		for _, change := range []string{"deleted", "changed"} {
			t.Run(fmt.Sprint(count, change), func(t *testing.T) {
				inOwnScene(t, func(s *scene) {
					s.awaitCreated(s.startAll(count))
					admin := connect(s.T, s.place, "", framework.WithAuth("digest", []byte("admin:secret")))
					closed := append(zk.WorldACL(zk.PermAll&^zk.PermRead), zk.DigestACL(zk.PermAll, "admin", "secret")...)
					_, err := admin.SetACL().WithACL(closed...).ForPath(s.ctx, "/members/0000")
					s.must(err)
					if change == "deleted" {
						s.must(admin.Delete().ForPath(s.ctx, "/members/0000"))
					} else {
						_, err := admin.SetData().ForPath(s.ctx, "/members/0000", []byte("theirs"))
						s.must(err)
						<-time.After(20 * time.Minute) // reads that find nothing
						_, err = admin.SetACL().WithACL(zk.WorldACL(zk.PermAll)...).ForPath(s.ctx, "/members/0000")
						s.must(err)
					}
					s.requests()
					<-time.After(6 * time.Minute)
					if data, stat := s.get("/members/0000"); stat == nil || data != "data" {
						s.Errorf("%q, %+v", data, stat)
					}
					s.requests()
					<-time.After(time.Hour)
					if counts, total := s.requests(); total > 12 {
						s.Errorf("an hour costs %v", counts)
					}
				})
			})
		}
	}
}
