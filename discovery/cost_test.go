package discovery_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// requests returns the numbers of requests since the last call, by their names.
func (s *scene) requests() (counts map[string]int, total int) {
	counts = make(map[string]int)
	for _, e := range s.place.Faults().Trace() {
		if !e.Reply && e.Xid > 0 { // else a handshake, a ping, or the watches of one
			counts[e.Op]++
			total++
		}
	}
	s.place.Faults().ResetTrace()
	return counts, total
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
		for n := range names * each {
			one := orders(fmt.Sprint(n/names), "eu")
			one.Name = fmt.Sprintf("service-%02d", n%names)
			all = append(all, one)
			_ = d.Register(ended, one) // all at once
		}
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
		if counts, total := s.requests(); total > 700 {
			t.Errorf("registered with %d requests: %v", total, counts)
		}
		s.cut()
		s.settle()
		if counts, total := s.requests(); total > 20 || counts["multi"] > 0 {
			t.Errorf("a new connection costs %d requests: %v", total, counts)
		}
		s.expire()
		await()
		if counts, total := s.requests(); total > 120 {
			t.Errorf("a new session costs %d requests: %v", total, counts)
		}
		s.reset()
		await()
		if counts, total := s.requests(); total > 120 {
			t.Errorf("a session beside the last one costs %d requests: %v", total, counts)
		}
	})
}
