package curatortest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestServer is the server of a test that [OnBoth] runs. Its methods are those that both kinds of server have. Where
// the method of a server returns an error, that of TestServer fails the test.
type TestServer struct {
	// Server is the server in memory, for what it alone can do; nil if the test runs on Apache ZooKeeper.
	Server *Server
	// Real is Apache ZooKeeper; nil if the test runs in memory.
	Real *RealServer

	tb   testing.TB
	both interface {
		Addr() string
		ConnectString() string
		Stop() error
		Kill() error
		Restart() error
		Freeze() error
		Thaw() error
		ExpireSession(sessionID int64) error
		DropConnection(sessionID int64) error
	}
}

// OnBoth runs a test on a [Server], as the subtest "memory", and on a [RealServer], as the subtest "real". Each has a
// new server with the options, which is closed when it ends. Without Apache ZooKeeper on the machine the second one
// fails. With the flag -short of go test there is only the first one.
func OnBoth(t *testing.T, test func(t *testing.T, server *TestServer), opts ...Option) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		var inMemory []ServerOption
		for _, o := range opts {
			inMemory = append(inMemory, o)
		}
		s := NewServerT(t, inMemory...)
		test(t, &TestServer{Server: s, tb: t, both: s})
	})
	if testing.Short() {
		return
	}
	t.Run("real", func(t *testing.T) {
		var apache []RealOption
		for _, o := range opts {
			apache = append(apache, o)
		}
		s, err := NewRealServer(apache...)
		if errors.Is(err, ErrNoZooKeeper) {
			t.Fatalf("%v; go test -short runs the tests in memory only", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		r := &TestServer{Real: s, tb: t, both: s}
		t.Cleanup(func() { r.check(s.Close()) })
		test(t, r)
	})
}

func (s *TestServer) check(err error) {
	s.tb.Helper()
	if err != nil {
		s.tb.Fatal(err)
	}
}

// Addr returns host and port of the server.
func (s *TestServer) Addr() string { return s.both.Addr() }

// ConnectString returns the connect string of the server.
func (s *TestServer) ConnectString() string { return s.both.ConnectString() }

// Stop ends all connections and refuses new ones until Restart. Nodes and sessions stay.
func (s *TestServer) Stop() {
	s.tb.Helper()
	s.check(s.both.Stop())
}

// Kill ends the server as a crash does.
func (s *TestServer) Kill() {
	s.tb.Helper()
	s.check(s.both.Kill())
}

// Restart starts the server again, with the same address and data, and returns when it serves. It stops a server that
// runs first.
func (s *TestServer) Restart() {
	s.tb.Helper()
	s.check(s.both.Restart())
}

// Freeze halts the server until Thaw, as if its machine stood still.
func (s *TestServer) Freeze() {
	s.tb.Helper()
	s.check(s.both.Freeze())
}

// Thaw continues a frozen server.
func (s *TestServer) Thaw() {
	s.tb.Helper()
	s.check(s.both.Thaw())
}

// ExpireSession ends a session, and returns when its ephemeral nodes are gone. Its client finds out when it reconnects.
func (s *TestServer) ExpireSession(sessionID int64) {
	s.tb.Helper()
	s.check(s.both.ExpireSession(sessionID))
}

// DropConnection closes the connection of a session. The session lives on if its client comes back in time.
func (s *TestServer) DropConnection(sessionID int64) {
	s.tb.Helper()
	s.check(s.both.DropConnection(sessionID))
}

// Node returns a znode, and false if there is none. It needs no permission. Apache ZooKeeper must serve.
func (s *TestServer) Node(path string) (Node, bool) {
	s.tb.Helper()
	if s.Server != nil {
		return s.Server.Node(path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), sessionLimit)
	defer cancel()
	n, ok, err := s.Real.Node(ctx, path)
	s.check(err)
	return n, ok
}

// Exists reports whether a znode exists.
func (s *TestServer) Exists(path string) bool {
	s.tb.Helper()
	_, ok := s.Node(path)
	return ok
}

// Children returns the sorted names of the children of a znode, and none if it does not exist.
func (s *TestServer) Children(path string) []string {
	s.tb.Helper()
	n, _ := s.Node(path)
	return n.Children
}

// eventuallyPoll is the pause between two calls of a condition.
const eventuallyPoll = 20 * time.Millisecond

// Eventually waits until cond is true. It fails the test if cond, which what describes, is not true within
// [Timing.Waiting]. It calls cond after the events of a server in memory, and often: cond may also be about a client.
func (s *TestServer) Eventually(what string, cond func() bool) {
	s.tb.Helper()
	limit := time.NewTimer(DefaultTiming().Waiting())
	defer limit.Stop()
	poll := time.NewTicker(eventuallyPoll)
	defer poll.Stop()
	for {
		var changes <-chan struct{}
		if s.Server != nil {
			changes = s.Server.service.Changes()
		}
		if cond() {
			return
		}
		select {
		case <-changes:
		case <-poll.C:
		case <-limit.C:
			s.tb.Fatalf("not in %v: %s", DefaultTiming().Waiting(), what)
		}
	}
}
