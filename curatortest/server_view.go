package curatortest

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
)

// Node is a znode of a [Server] at one moment.
type Node struct {
	Data     []byte
	Stat     zk.Stat
	Children []string // sorted
	ACL      []zk.ACL
}

// Node returns a znode, and false if there is none. It reads the server itself, without a session, a watch or a
// permission.
func (s *Server) Node(path string) (Node, bool) {
	v, ok := s.member.Node(path)
	return Node(v), ok
}

// Exists reports whether a znode exists.
func (s *Server) Exists(path string) bool {
	_, ok := s.member.Node(path)
	return ok
}

// Children returns the sorted names of the children of a znode, and none if it does not exist.
func (s *Server) Children(path string) []string {
	v, _ := s.member.Node(path)
	return v.Children
}

// Watches returns the number of clients that watch a path on this server in any way. A recursive watch on a node above
// does not count.
func (s *Server) Watches(path string) int { return s.member.Watches(path) }

// Eventually waits until cond is true. It returns the error of ctx if that ends first. It calls cond at once, and again
// after each event of the server: it does not poll, and misses nothing. cond reads the server, with [Server.Children],
// [Server.Watches] or [Server.Sessions].
func (s *Server) Eventually(ctx context.Context, cond func() bool) error {
	for {
		changes := s.service.Changes()
		if cond() {
			return nil
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// EventuallyT is Eventually for a test: it fails the test if cond, which what describes, is not true within
// [Timing.Waiting]. It sees events of the server alone: a cond about the state of a client, which changes later, may
// not be called again.
func (s *Server) EventuallyT(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), DefaultTiming().Waiting())
	defer cancel()
	if s.Eventually(ctx, cond) != nil {
		tb.Fatalf("not in %v: %s\n%s", DefaultTiming().Waiting(), what, FormatTrace(s.Trace()))
	}
}
