package wire_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// answerIn has the server answer each request in its time after the one before, and at once then.
func (s *server) answerIn(serviceTime func(r *request) time.Duration) {
	s.serve = func(p *peer, r *request) bool {
		if r.Op == jute.OpCloseSession {
			return false
		}
		<-time.After(serviceTime(r))
		p.yes(r)
		p.cork(false)
		return true
	}
}

// answerAfter has the server answer in order, each request its time after it came: nothing waits for a processor.
func (s *server) answerAfter(t *testing.T, latency func(r *request) time.Duration) {
	t.Helper()
	type late struct {
		p  *peer
		r  *request
		at time.Time
	}
	line := make(chan late, 200_000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for l := range line {
			<-time.After(time.Until(l.at))
			l.p.yes(l.r)
			l.p.cork(false)
		}
	}()
	s.serve = func(p *peer, r *request) bool {
		if r.Op == jute.OpCloseSession {
			return false
		}
		line <- late{p, r, time.Now().Add(latency(r))}
		return true
	}
	t.Cleanup(func() { s.close(); close(line); <-done })
}

// askAll submits requests at once and returns how old the session clock got before all were answered, and what that
// took.
func askAll(t *testing.T, s *server, timeout time.Duration, requests []jute.Request) (clock, took time.Duration) {
	t.Helper()
	cfg := dialToSockets(network{"a:1": s})
	cfg.SessionTimeout = timeout
	cfg.CloseWait = time.Hour
	c := open(t, cfg)
	c.want(t, wire.Connected)
	start := time.Now()
	done := newAnswers()
	for _, r := range requests {
		c.submit(t, &wire.Request{Request: r, Handler: done})
	}
	for n := range requests {
		if r := receive(t, done); r.Err != nil {
			t.Fatalf("request %d: %v", n, r.Err)
		}
		synctest.Wait()
		clock = max(clock, time.Since(c.LastAnswer()))
	}
	took = time.Since(start)
	c.Close()
	return clock, took
}

// requestsOf returns requests of the kinds of ops in turn, n of each.
func requestsOf(n int, path string, ops ...jute.Op) []jute.Request {
	var round []jute.Request
	for _, op := range ops {
		round = append(round, jute.Request{Op: op, Path: path})
	}
	return slices.Repeat(round, n)
}

// A server that is slow with everything is not lost because several kinds of requests are under way.
func TestWindowsTogetherKeepTheSessionClockYoung(t *testing.T) {
	ops := []jute.Op{jute.OpGetData, jute.OpExists, jute.OpGetChildren2, jute.OpCreate2, jute.OpDelete}
	tests := []struct {
		name             string
		timeout, service time.Duration
	}{
		{"20 answers a second, 1 s session", time.Second, 50 * time.Millisecond},
		{"20 answers a second, 4 s session", 4 * time.Second, 50 * time.Millisecond},
		{"5 answers a second, 4 s session", 4 * time.Second, 200 * time.Millisecond},
		{"10 answers a second, 10 s session", 10 * time.Second, 100 * time.Millisecond},
		{"10 answers a second, 60 s session", time.Minute, 100 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.answerIn(func(*request) time.Duration { return tt.service })
				if clock, _ := askAll(t, s, tt.timeout, requestsOf(200, "/n", ops...)); clock >= tt.timeout {
					t.Errorf("the session clock is %v old", clock)
				}
			})
		})
	}
}

// Large answers over a slow network take longer than any server does.
func TestWindowOfVerySlowRequestsKeepsTheSessionClockYoung(t *testing.T) {
	for _, tt := range []struct{ timeout, service time.Duration }{
		{4 * time.Second, 500 * time.Millisecond},
		{time.Minute, 250 * time.Millisecond},
		{time.Minute, time.Second},
	} {
		t.Run(tt.service.String()+" of "+tt.timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.answerIn(func(*request) time.Duration { return tt.service })
				if clock, _ := askAll(t, s, tt.timeout, requestsOf(300, "/n", jute.OpGetData)); clock >= tt.timeout {
					t.Errorf("the session clock is %v old", clock)
				}
			})
		})
	}
}

// The children of most nodes are few, and then come those of nodes with many.
func TestWindowOutlivesDearRequestsBehindCheapOnes(t *testing.T) {
	for _, tt := range []struct{ timeout, dear time.Duration }{
		{time.Second, 2 * time.Millisecond},
		{4 * time.Second, 2 * time.Millisecond},
		{4 * time.Second, 5 * time.Millisecond},
		{10 * time.Second, 5 * time.Millisecond},
	} {
		t.Run(tt.dear.String()+" of "+tt.timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.answerIn(func(r *request) time.Duration {
					if r.path() == "/many" {
						return tt.dear
					}
					return 20 * time.Microsecond
				})
				requests := append(requestsOf(20_000, "/few", jute.OpGetChildren2),
					requestsOf(3000, "/many", jute.OpGetChildren2)...)
				if clock, _ := askAll(t, s, tt.timeout, requests); clock >= tt.timeout {
					t.Errorf("the session clock is %v old", clock)
				}
			})
		})
	}
}

// That a few answers were faster than all others does not keep a window small for ever.
func TestWindowOpensBehindFastAnswers(t *testing.T) {
	tests := []struct {
		name     string
		requests []jute.Request
		latency  func(n int, r *request) time.Duration
	}{
		{
			"the first answers are fast", requestsOf(20_000, "/n", jute.OpGetData),
			func(n int, _ *request) time.Duration {
				if n < 3 {
					return time.Millisecond
				}
				return 100 * time.Millisecond
			},
		},
		{
			"reads among slow writes", requestsOf(10_000, "/n", jute.OpGetData, jute.OpSetData),
			func(_ int, r *request) time.Duration {
				if r.Op == jute.OpGetData {
					return 200 * time.Microsecond
				}
				return 100 * time.Millisecond
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				n := 0
				s.answerAfter(t, func(r *request) time.Duration { n++; return tt.latency(n-1, r) })
				// A window of 4,096 takes half a second.
				if _, took := askAll(t, s, 4*time.Second, tt.requests); took > 5*time.Second {
					t.Errorf("20,000 requests took %v", took)
				}
			})
		})
	}
}
