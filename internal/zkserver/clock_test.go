package zkserver

import (
	"testing"
	"testing/synctest"
	"time"
)

func testConfig() Config {
	return Config{
		Members:           1,
		Tick:              100 * time.Millisecond,
		MinSessionTimeout: 200 * time.Millisecond,
		MaxSessionTimeout: time.Hour,
		SweepInterval:     time.Hour,
		MaxRequest:        1 << 20,
	}
}

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

func TestSessionThatNobodyIsHeardOfEndsOnATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(testConfig())
		defer s.Close()
		c := newClient(t, s.Member(1))
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
