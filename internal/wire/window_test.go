package wire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// takes makes the server serve one request after the other, each in its time.
func (s *server) takes(serviceTime func(r *request) time.Duration) {
	s.serve = func(_ *peer, r *request) bool {
		<-time.After(serviceTime(r))
		return false
	}
}

// rely has c send heartbeats until stop.
func rely(c *client) (stop func()) {
	c.RequireQuorum()
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-time.After(c.SessionTimeout() / 20):
				c.Heartbeat()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// stale submits requests of the kinds of ops, n of each, and returns how old the session clock got before all were
// answered, that of heartbeats included.
func stale(t *testing.T, c *client, n int, ops ...jute.Op) (most time.Duration) {
	t.Helper()
	defer rely(c)()
	done := newAnswers()
	for _, op := range ops {
		for range n {
			c.submit(t, &wire.Request{Request: jute.Request{Op: op, Path: "/n"}, Handler: done})
		}
	}
	for range n * len(ops) {
		if r := receive(t, done); r.Err != nil {
			t.Fatal(r.Err)
		}
		synctest.Wait()
		most = max(most, time.Since(c.LastAnswer()), c.QuorumSilence())
	}
	return most
}

// The session clock counts from when the request was sent that the server has answered last. However much is submitted,
// and however slow the server is, what is in flight must not get as old as the session may be.
func TestWindowKeepsTheSessionClockYoung(t *testing.T) {
	tests := []struct {
		name     string
		timeout  time.Duration
		service  time.Duration
		requests int
	}{
		{"400 answers a second, 6 s session", 6 * time.Second, 2500 * time.Microsecond, 6000},
		{"68 answers a second, 60 s session", 60 * time.Second, time.Second / 68, 6000},
		{"1,024 answers a second, 4 s session", 4 * time.Second, time.Second / 1024, 10_000},
		{"10 answers a second, 4 s session", 4 * time.Second, 100 * time.Millisecond, 200},
		{"100 answers a second, 1 s session", time.Second, 10 * time.Millisecond, 1000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.takes(func(*request) time.Duration { return tt.service })
				cfg := dialTo(network{"a:1": s})
				cfg.SessionTimeout = tt.timeout
				c := open(t, cfg)
				c.want(t, wire.Connected)
				if most := stale(t, c, tt.requests, jute.OpGetData); most > tt.timeout*9/10 {
					t.Errorf("the session clock is %v old", most)
				} else {
					t.Logf("at most %v", most)
				}
			})
		})
	}
}

// The duration of a kind of request is unknown before one was answered.
func TestWindowOfEachKindBeginsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 4 * time.Second
		s := newServer(t)
		s.takes(func(r *request) time.Duration {
			if r.Op == jute.OpGetChildren2 {
				return 10 * time.Millisecond
			}
			return 20 * time.Microsecond
		})
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = timeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		if most := stale(t, c, 3000, jute.OpGetData, jute.OpGetChildren2); most > timeout*7/10 {
			t.Errorf("the session clock is %v old", most)
		}
	})
}

// A server that stalls for a while and goes on makes windows close, and they open again.
func TestWindowClosesWhenAnswersGetOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 4 * time.Second
		service := 20 * time.Microsecond
		s := newServer(t)
		served := 0
		s.takes(func(*request) time.Duration {
			switch served++; {
			case served > 5000 && served <= 6000:
				return time.Millisecond
			default:
				return service
			}
		})
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = timeout
		c := open(t, cfg)
		c.want(t, wire.Connected)
		start := time.Now()
		if most := stale(t, c, 20_000, jute.OpGetData); most > timeout*9/10 {
			t.Errorf("the session clock is %v old", most)
		}
		if took, least := time.Since(start), time.Second+19_000*service; took > 2*least {
			t.Errorf("all took %v, the server needs %v", took, least)
		}
	})
}

// Requests that take long together, on a slow network, are not held back: that their answers are old does not come from
// their number.
func TestWindowOpensOnASlowNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const roundTrip = 300 * time.Millisecond
		type late struct {
			p  *peer
			r  *request
			at time.Time
		}
		line := make(chan late, 100_000)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for l := range line {
				<-time.After(time.Until(l.at))
				l.p.yes(l.r)
			}
		}()
		s := newServer(t)
		s.serve = func(p *peer, r *request) bool {
			if r.Op == jute.OpCloseSession {
				return false
			}
			line <- late{p, r, time.Now().Add(roundTrip)}
			return true
		}
		cfg := dialTo(network{"a:1": s})
		cfg.SessionTimeout = 4 * time.Second
		c := open(t, cfg)
		c.want(t, wire.Connected)
		start := time.Now()
		stale(t, c, 20_000, jute.OpGetData)
		if took := time.Since(start); took > 20*roundTrip {
			t.Errorf("20,000 requests took %v, with round trips of %v", took, roundTrip)
		}
		c.Close()
		close(line)
		<-done
	})
}

// One request at a time does not open the window for a burst.
func TestWindowStaysWhileItIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		c, p := connectPiped(t, s)
		for range 1000 {
			c.ask(t, get("/n", nil))
		}
		held := make(chan *request, 10_000)
		s.serve = func(_ *peer, r *request) bool {
			held <- r
			return r.Xid >= wire.FirstXid
		}
		done := newAnswers()
		for range 2 * firstWindow {
			c.submit(t, get("/n", done))
		}
		synctest.Wait()
		if got := len(held); got != firstWindow {
			t.Errorf("%d requests are in flight, want %d", got, firstWindow)
		}
		for range 2 * firstWindow {
			p.yes(receive(t, held))
		}
		done.collect(t, 0)
	})
}

// opened returns a client whose window was opened by many fast answers, and has the server hold what comes then.
func opened(t *testing.T) (c *client, p *peer, held chan *request) {
	t.Helper()
	s := newServer(t)
	c, p = connectPiped(t, s)
	stale(t, c, 10*firstWindow, jute.OpGetData)
	held = make(chan *request, 10_000)
	s.serve = func(_ *peer, r *request) bool {
		if r.Xid >= wire.FirstXid {
			held <- r
		}
		return r.Xid >= wire.FirstXid
	}
	return c, p, held
}

// What was learnt of a server is forgotten after a while without a request.
func TestWindowIsForgotten(t *testing.T) {
	for idle, want := range map[time.Duration]int{0: 2 * firstWindow, 2 * time.Second: firstWindow} {
		synctest.Test(t, func(t *testing.T) {
			c, p, held := opened(t)
			<-time.After(idle)
			done := newAnswers()
			for range 2 * firstWindow {
				c.submit(t, get("/n", done))
			}
			synctest.Wait()
			if got := len(held); got != want {
				t.Errorf("after %s: %d requests are in flight, want %d", idle, got, want)
			}
			for range 2 * firstWindow {
				p.yes(receive(t, held))
			}
			done.collect(t, 0)
		})
	}
}

// While the oldest answer is overdue nothing is sent behind it, however far the window is open.
func TestNothingIsSentBehindAnOldRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p, held := opened(t)
		done := newAnswers()
		c.submit(t, get("/old", done))
		<-time.After(15 * time.Second) // half of the session timeout
		for range 10 {
			c.submit(t, get("/new", done))
		}
		synctest.Wait()
		if got := len(held); got != 1 {
			t.Errorf("%d requests are in flight", got)
		}
		p.yes(receive(t, held))
		for range 10 {
			p.yes(receive(t, held))
		}
		for range 11 {
			if r := receive(t, done); r.Err != nil {
				t.Error(r.Err)
			}
		}
	})
}
