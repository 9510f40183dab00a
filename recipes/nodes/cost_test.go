package nodes_test

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/zkpath"
)

// startMany starts ephemeral nodes of one parent at once and waits until they are there.
func (s *scene) startMany(count int) []*nodes.PersistentNode {
	s.Helper()
	atOnce := testclient.HoldAnswers(s, s.place.Faults(), s.client)
	all := s.startAll(count)
	atOnce()
	s.awaitCreated(all)
	return all
}

// startAll starts ephemeral nodes of one parent.
func (s *scene) startAll(count int) []*nodes.PersistentNode {
	s.Helper()
	all := make([]*nodes.PersistentNode, count)
	for i := range all {
		all[i] = nodes.NewPersistentNode(s.client, fmt.Sprintf("/members/%04d", i), builders.Ephemeral, []byte("data"))
		s.must(all[i].Start())
	}
	return all
}

func (s *scene) awaitCreated(all []*nodes.PersistentNode) {
	s.Helper()
	for _, n := range all {
		s.must(n.WaitForInitialCreate(s.ctx))
	}
}

// requests returns the numbers of requests since the last call, by their names.
func (s *scene) requests() (counts map[string]int, total int) {
	counts = make(map[string]int)
	for _, e := range s.place.Faults().Trace() {
		switch {
		case e.Reply || e.Xid <= 0: // a handshake or a ping, or the watches of one
		default:
			counts[e.Op]++
			total++
		}
	}
	s.place.Faults().ResetTrace()
	return counts, total
}

// awaitMembers waits until so many nodes belong to the session of the client.
func (s *scene) awaitMembers(count int) {
	s.Helper()
	testenv.Eventually(s, func() bool {
		members, err := s.reader.GetChildren().ForPath(s.ctx, "/members")
		if err != nil || len(members) != count {
			return false
		}
		session := s.client.SessionID()
		for _, m := range members {
			if _, stat := s.get("/members/" + m); stat == nil || stat.EphemeralOwner != session {
				return false
			}
		}
		return true
	}, "all nodes belong to the session of the client")
}

// ownGoroutines returns a function that counts the goroutines that the test has started, directly or not, since: other
// tests run at the same time.
func ownGoroutines(t *testing.T) (count func() int) {
	t.Helper()
	labels := pprof.Labels("test", t.Name()) // which a goroutine has from the one that starts it
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), labels))
	alike := regexp.MustCompile(fmt.Sprintf(`(?m)^(\d+) @.*\n# labels: {"test":%q}$`, t.Name())) // those of one stack
	return func() (n int) {
		var profile bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
			t.Error(err)
		}
		for _, group := range alike.FindAllSubmatch(profile.Bytes(), -1) {
			many, _ := strconv.Atoi(string(group[1]))
			n += many
		}
		return n
	}
}

func TestPersistentNodeRequestsOfThousand(t *testing.T) {
	const count = 1000
	goroutines := ownGoroutines(t)
	inScene(t, func(s *scene) {
		all := s.startMany(count)
		s.settle()
		if n := goroutines(); n > count/10 { // with those of clients and servers
			t.Errorf("%d goroutines", n)
		}
		if counts, total := s.requests(); total > 60 {
			t.Errorf("created with %d requests: %v", total, counts)
		}

		reconnected := s.awaitState(framework.Reconnected)
		s.place.Faults().CutAll()
		reconnected()
		s.settle()
		counts, total := s.requests()
		if total > 20 || counts["multi"]+counts["create"]+counts["setData"]+counts["delete"] > 0 {
			t.Errorf("a new connection costs %d requests: %v", total, counts)
		}
		s.awaitMembers(count)
		s.requests()

		session := s.client.SessionID()
		reconnected = s.awaitState(framework.Reconnected)
		s.expire(session)
		reconnected()
		s.settle()
		s.awaitMembers(count)
		if counts, total := s.requests(); total > 100 {
			t.Errorf("a new session costs %d requests: %v", total, counts)
		}

		s.reset() // the nodes of the last session are still there
		s.settle()
		s.awaitMembers(count)
		if counts, total := s.requests(); total > 100 {
			t.Errorf("a session beside the last one costs %d requests: %v", total, counts)
		}
		for _, n := range all {
			go func() { _ = n.Close(s.ctx) }()
		}
		for _, n := range all {
			s.must(n.Close(s.ctx))
		}
		s.wantNoMembers()
		s.requests()
	})
}

// A single node is watched alone, and a new connection of the session asks nothing.
func TestPersistentNodeRequestsOfOne(t *testing.T) {
	inScene(t, func(s *scene) {
		n := s.ephemeral(keptPath, "one")
		_, err := s.reader.Create().ForPath(s.ctx, zkpath.Join(zkpath.Parent(keptPath), "other"), nil)
		s.must(err) // so that no server deletes an empty container
		s.settle()
		s.requests()
		reconnected := s.awaitState(framework.Reconnected)
		s.place.Faults().CutAll()
		reconnected()
		s.settle()
		if counts, total := s.requests(); total > 1 { // that of settle
			t.Errorf("a new connection costs %v", counts)
		}
		s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
		s.awaitOwned(keptPath, "one")
		s.must(n.Close(s.ctx))
		s.settle()
		counts, _ := s.requests()
		if counts["multi"] != 2 {
			t.Errorf("created again and deleted with %v", counts)
		}
	})
}

// awaitState returns what waits for a state that comes from now on.
func (s *scene) awaitState(state framework.ConnectionState) (wait func()) {
	s.Helper()
	return testclient.AwaitState(s.ctx, s, s.client, state)
}

// settle waits until the client has nothing more to ask, or cannot ask more while a rule holds an answer back.
func (s *scene) settle(held ...*curatortest.Injection) {
	s.Helper()
	if !testenv.Real() {
		synctest.Wait()
		return
	}
	testclient.AwaitSilence(s, s.place.Faults(), held...)
}
