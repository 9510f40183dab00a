package nodes_test

import (
	"testing"

	"github.com/gocurator/curator/curatortest"
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
