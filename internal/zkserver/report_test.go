package zkserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// expiry returns how long after its last ping a session ends. afterTick is the time of the ping after a tick.
func expiry(t *testing.T, s *Service, c *reader, afterTick time.Duration) time.Duration {
	t.Helper()
	time.Sleep(s.tickAfter(s.now()).Sub(s.now()) + afterTick)
	c.want(t, c.sendPing(t))
	began := time.Now()
	for len(s.Sessions()) > 0 {
		<-s.Changes()
	}
	return time.Since(began)
}

func TestFollowerReportsSessionsWithTheLeadersPings(t *testing.T) {
	const timeout = 4 * testTick
	for _, tt := range []struct {
		name      string
		member    int
		afterTick time.Duration
		want      time.Duration
	}{
		{"leader, behind a tick", 1, time.Millisecond, timeout + testTick - time.Millisecond},
		{"leader, ahead of a tick", 1, testTick - time.Millisecond, timeout + time.Millisecond},
		{"follower, first half of a tick", 2, time.Millisecond, timeout + testTick - time.Millisecond},
		{"follower, second half of a tick", 2, testTick/2 + time.Millisecond, timeout + testTick +
			testTick/2 - time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, s *Service) {
				if got := expiry(t, s, startSession(t, s.Member(tt.member), timeout), tt.afterTick); got != tt.want {
					t.Errorf("it has ended after %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestWhatWasNotReportedDoesNotCount(t *testing.T) {
	inCluster(t, func(t *testing.T, s *Service) {
		c := startSession(t, s.Member(2), time.Second)
		began := time.Now() // on a tick
		time.Sleep(900 * time.Millisecond)
		c.want(t, c.send(t, emptyMulti)) // a transaction
		s.Part([]int{0, 1, 0})           // ahead of the ping
		for len(s.Sessions()) > 0 {
			<-s.Changes()
		}
		if got := time.Since(began); got != time.Second+testTick {
			t.Errorf("it has ended after %v", got)
		}
		c.want(t, c.sendPing(t))
	})
}

func TestHandshakeReachesTheLeaderAtOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, s *Service) {
		c := startSession(t, s.Member(2), time.Second)
		time.Sleep(900 * time.Millisecond)
		c.again(t, s.Member(2), time.Second)
		s.Part([]int{0, 1, 0})
		time.Sleep(time.Second)
		synctest.Wait()
		if len(s.Sessions()) != 1 {
			t.Error("the session has ended")
		}
	})
}

func TestLaggingMemberLearnsEndOfSessionLate(t *testing.T) {
	inCluster(t, func(t *testing.T, s *Service) {
		s.Member(3).SetLag(time.Second)
		c, writer := startSession(t, s.Member(3), time.Minute), startSession(t, s.Member(3), time.Minute)
		for _, r := range []*reader{c, writer} {
			if err := s.Expire(r.session.SessionID); err != nil {
				t.Fatal(err)
			}
		}
		c.want(t, c.sendPing(t))
		writer.send(t, createOf("/x")) // brings it up to date
		writer.wantEnd(t)
		c.wantEnd(t)
	})
}

func TestEmptyMultiIsATransaction(t *testing.T) {
	s := newCluster(t)
	c := newClient(t, s.Member(2))
	before := s.Member(1).tree.applied
	c.do(t, emptyMulti)
	if got := s.Member(1).tree.applied; got != before+1 {
		t.Errorf("zxid %#x after %#x", got, before)
	}
	if err := s.Move(c.session.SessionID); err != nil {
		t.Fatal(err)
	}
	c.do(t, emptyMulti) // it looks after nothing
	header := jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: 9, Op: jute.OpMulti})
	c.write(t, jute.AppendRequest(header, "", &jute.Request{
		Op: jute.OpMulti, Ops: []jute.Request{{Op: jute.OpCheck, Path: "/", Version: -1}},
	}))
	if b, err := c.frame(); err == nil {
		t.Errorf("answer %x", b)
	}
}
