package discovery_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// wantRequests says that the client has sent at most so many requests since the last call, and returns how many of each
// name they were.
func (s *scene) wantRequests(limit int, what string) map[string]int {
	s.Helper()
	counts, total := make(map[string]int), 0
	trace := s.place.Faults().Trace()
	s.place.Faults().ResetTrace()
	for _, e := range trace {
		if !e.Reply && e.Xid > 0 { // else a handshake, a ping, or the watches of one
			counts[e.Op]++
			total++
		}
	}
	if total > limit {
		s.Errorf("%s costs %d requests: %v\n%s", what, total, counts, curatortest.FormatTrace(trace))
	}
	return counts
}

func TestRequestsOfAThousandInstances(t *testing.T) {
	const names, each = 50, 20
	inScene(t, func(s *scene) {
		d := s.discover(s.client)
		for n := range names { // so that no server deletes an empty container
			_, err := s.reader.Create().CreatingParentContainersIfNeeded().
				ForPath(s.ctx, fmt.Sprintf("%s/service-%02d/other", base, n), nil)
			s.must(err)
		}
		ended, cancel := context.WithCancel(s.ctx)
		cancel()
		var all []order
		atOnce := testclient.HoldAnswers(s, s.place.Faults(), s.client)
		for n := range names * each {
			one := orders(fmt.Sprint(n/names), "eu")
			one.Name = fmt.Sprintf("service-%02d", n%names)
			all = append(all, one)
			_ = d.Register(ended, one)
		}
		atOnce()
		await := func() {
			t.Helper()
			testenv.Eventually(s, func() bool {
				for n := range names {
					path := fmt.Sprintf("%s/service-%02d", base, n)
					ids, err := s.reader.GetChildren().ForPath(s.ctx, path)
					if err != nil || len(ids) != each+1 {
						return false
					}
				}
				for _, one := range all {
					if stat := s.stat(pathOf(one)); stat == nil || stat.EphemeralOwner != s.client.SessionID() {
						return false
					}
				}
				return true
			}, "all instances are there")
			s.settle()
		}
		await()
		s.wantRequests(700, "a thousand registrations")
		s.cut()
		s.settle()
		if counts := s.wantRequests(20, "a new connection"); counts["multi"] > 0 {
			t.Errorf("a new connection writes: %v", counts)
		}
		s.expire()
		await()
		s.wantRequests(120, "a new session")
		s.reset()
		await()
		s.wantRequests(120, "a session beside the last one")
	})
}
