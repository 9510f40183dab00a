package zkserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// In Java: ExpiryQueue.roundToNextInterval.
func TestTimeEndsOnTheTickAfter(t *testing.T) {
	s := &Service{config: testConfig(), began: time.Unix(0, 0)}
	for after, want := range map[time.Duration]time.Duration{
		0:                      100 * time.Millisecond,
		time.Millisecond:       100 * time.Millisecond,
		99 * time.Millisecond:  100 * time.Millisecond,
		100 * time.Millisecond: 200 * time.Millisecond,
		250 * time.Millisecond: 300 * time.Millisecond,
	} {
		if got := s.tickAfter(s.began.Add(after)).Sub(s.began); got != want {
			t.Errorf("%v: %v, not %v", after, got, want)
		}
	}
}

func TestSilentSessionEndsOnTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(testConfig())
		defer s.Close()
		c := dial(t, s.Member(1), jute.ConnectRequest{TimeoutMs: 1000})
		began := time.Now()
		if n := len(s.Sessions()); n != 1 {
			t.Fatalf("%d sessions", n)
		}
		for len(s.Sessions()) > 0 {
			<-s.Changes()
		}
		if d := time.Since(began); d < c.timeout || d > c.timeout+100*time.Millisecond {
			t.Errorf("ended after %v, with a timeout of %v", d, c.timeout)
		}
	})
}

// What an advance leaves to come is not late.
func TestAdvanceBringsNearerWhatIsDueLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := testConfig()
		config.Members, config.Tick, config.MinSessionTimeout = 3, 10*time.Second, 10*time.Second
		s := New(config)
		defer s.Close()
		c := dial(t, s.Member(1), jute.ConnectRequest{TimeoutMs: 10_000}) // it ends at 20 s
		s.Member(3).SetLag(5 * time.Second)
		c.create(t, "/a")
		synctest.Wait()
		s.Advance(4 * time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		if !exists(s.Member(3), "/a") {
			t.Error("not received after 5 s")
		}
		s.Advance(14 * time.Second)
		s.Advance(-time.Hour) // is none
		if len(s.Sessions()) != 1 {
			t.Error("the session has ended after 19 s")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(s.Sessions()) != 0 {
			t.Error("the session has not ended after 20 s")
		}
	})
}

func TestPauseHoldsBackWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(testConfig())
		defer s.Close()
		dial(t, s.Member(1), jute.ConnectRequest{TimeoutMs: 1000})
		resume := s.Pause()
		time.Sleep(time.Minute)
		if len(s.Sessions()) != 1 {
			t.Error("the session has ended meanwhile")
		}
		resume()
		if len(s.Sessions()) != 0 {
			t.Error("the session has not ended")
		}
	})
}
