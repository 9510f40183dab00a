package nodes_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/nodes"
)

// A proxy ends the connection at a kind of request with which nodes are kept. They are kept without it.
func TestPersistentNodeBehindProxyThatHangsUpAtOneKindOfRequestIsKept(t *testing.T) {
	for _, kind := range []string{"addWatch", "multiRead", "createContainer", "setWatches2"} {
		t.Run(kind, func(t *testing.T) {
			inScene(t, func(s *scene) {
				faults := s.place.Faults()
				faults.ResetTrace()
				faults.Add(curatortest.Rule{
					Ops: []string{kind}, Action: curatortest.CutBefore, MayMiss: kind == "multiRead" || kind == "setWatches2",
				})
				s.awaitCreated(s.startAll(10))
				s.awaitMembers(10)
				s.settle()
				faults.CutAll()
				s.must(s.reader.Delete().ForPath(s.ctx, "/members/0000"))
				s.awaitMembers(10)
				connects := 0
				for _, e := range faults.Trace() {
					if e.Op == "connect" && !e.Reply {
						connects++
					}
				}
				if connects > 12 {
					s.Errorf("%d connections\n%s", connects, curatortest.FormatTrace(faults.Trace()))
				}
			})
		})
	}
}

// Some connections in a row are lost at one kind of request, as in a cluster that restarts. The client takes it for one
// that the servers lack. The next session asks again, and uses it.
func TestPersistentNodesTakeUpKindOfRequestInNextSessionThatIllServersHungUpAt(t *testing.T) {
	inScene(t, func(s *scene) {
		s.place.Faults().Add(curatortest.Rule{Ops: []string{"addWatch"}, Action: curatortest.CutBefore, Count: 3})
		s.awaitCreated(s.startAll(10))
		s.awaitMembers(10)
		<-time.After(2 * time.Second) // the client leaves out the kind for a second
		s.takesUpRecursiveWatch()
	})
}

// The parent may refuse the watch for other reasons, too.
func TestPersistentNodesAskAgainInNextSessionForRefusedWatch(t *testing.T) {
	inScene(t, func(s *scene) {
		s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth, Count: 1,
		})
		s.awaitCreated(s.startAll(10))
		s.awaitMembers(10)
		s.takesUpRecursiveWatch()
	})
}

func (s *scene) takesUpRecursiveWatch() {
	s.Helper()
	s.settle()
	s.requests()
	s.reset()
	s.awaitMembers(10)
	s.settle()
	if counts, _ := s.requests(); counts["addWatch"] != 1 || counts["multiRead"] == 0 {
		s.Errorf("the requests of the new session: %v", counts)
	}
	s.must(s.reader.Delete().ForPath(s.ctx, "/members/0000"))
	s.awaitMembers(10)
	if counts, _ := s.requests(); counts["getData"] > 0 {
		s.Errorf("a watch for each node: %v", counts)
	}
}

// The servers refuse to create containers, and end the connection, as older ones do. The parents are made without.
func TestPersistentNodeOnServerWithoutContainersIsThere(t *testing.T) {
	for name, before := range map[string]bool{"from the start": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				faults := s.place.Faults()
				if before {
					s.ephemeral("/two/y", "1")
				}
				faults.Add(curatortest.Rule{
					Ops: []string{"createContainer"}, Action: curatortest.ReplyErrorThenCut, Err: framework.ErrUnimplemented,
				})
				n := nodes.NewPersistentNode(s.client, "/one/x", builders.Ephemeral, nil)
				s.must(n.Start())
				<-time.After(2 * time.Minute)
				if _, stat := s.get("/one/x"); stat == nil {
					s.Errorf("it is not there after 2 min, its error is %v", n.Err())
				}
			})
		})
	}
}
