package zkserver

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

func TestReleaseOfAKeptSessionCountsOnce(t *testing.T) {
	s := New(testConfig())
	t.Cleanup(s.Close)
	c := newClient(t, s.Member(1))
	release, err := s.Keep(c.session.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	release()
	release()
	s.Advance(time.Hour)
	if n := len(s.Sessions()); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

func TestKeptSessionIsKeptWhenItIsRestored(t *testing.T) {
	s := New(testConfig())
	t.Cleanup(s.Close)
	c := newClient(t, s.Member(1))
	release, err := s.Keep(c.session.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	s.Restore(s.Snapshot())
	s.Advance(time.Hour)
	if len(s.Sessions()) != 1 {
		t.Error("the session has ended")
	}
	release()
	s.Advance(time.Hour)
	if len(s.Sessions()) != 0 {
		t.Error("the session has not ended")
	}
}

func TestSessionThatIsClosedElsewhereEndsItsOtherConnections(t *testing.T) {
	s := newCluster(t)
	old := newClient(t, s.Member(1))
	old.again(t, s.Member(2), time.Minute).do(t, jute.Request{Op: jute.OpCloseSession})
	if b, err := old.frame(); !errors.Is(err, io.EOF) {
		t.Errorf("frame %x, error %v", b, err)
	}
}

func TestSessionOfAReadOnlyMemberExpiresWithoutALeader(t *testing.T) {
	s := newCluster(t)
	s.Member(1).Stop()
	s.Member(2).Stop()
	c := dial(t, s.Member(3), jute.ConnectRequest{TimeoutMs: 1000, ReadOnly: true, HasReadOnly: true})
	if c == nil || !c.session.ReadOnly {
		t.Fatal("no session")
	}
	s.Advance(time.Minute)
	if b, err := c.frame(); !errors.Is(err, io.EOF) {
		t.Errorf("frame %x, error %v", b, err)
	}
}

func TestExpireSaysWhatIsMissing(t *testing.T) {
	s := newCluster(t)
	c := newClient(t, s.Member(1))
	if err := s.Expire(c.session.SessionID + 1); !errors.Is(err, ErrNoSession) {
		t.Errorf("got %v", err)
	}
	s.Member(2).Stop()
	s.Member(3).Stop()
	if err := s.Expire(c.session.SessionID); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("got %v", err)
	}
}

func TestCloseDoesNotWaitForAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(testConfig())
		near, far := net.Pipe()
		defer near.Close()
		go s.Member(1).Serve(far)
		if _, err := near.Write([]byte("ruok")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the answer is on its way
		s.Close()
	})
}
