package curatortest

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
)

// Node is a znode as a [Server] has it at one moment.
type Node struct {
	Data     []byte
	Stat     zk.Stat
	Children []string // sorted
	ACL      []zk.ACL
}

// Node returns a znode, and false if there is none. It asks the server itself: no session, no watch and no permission
// has a part in it.
func (s *Server) Node(path string) (Node, bool) {
	v, ok := s.member.View(path)
	return Node(v), ok
}

// Exists reports whether there is a znode.
func (s *Server) Exists(path string) bool {
	_, ok := s.member.View(path)
	return ok
}

// Children returns the names of the children of a znode, sorted; none if there is no such node.
func (s *Server) Children(path string) []string {
	v, _ := s.member.View(path)
	return v.Children
}

// Watches returns how many clients watch a path of this server, for whatever happens to it. A recursive watch on a node
// above is none of the path.
func (s *Server) Watches(path string) int { return s.member.Watches(path) }

// Eventually waits until cond is true, and returns the error of ctx if that ends first. It calls cond at once, and
// again after everything that happens on the server: nothing is polled and nothing is missed. cond is to ask the
// server, as [Server.Children], [Server.Watches] and [Server.Sessions] do.
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
// [Timing.Waiting].
func (s *Server) EventuallyT(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), DefaultTiming().Waiting())
	defer cancel()
	if s.Eventually(ctx, cond) != nil {
		tb.Fatalf("not in %v: %s\n%s", DefaultTiming().Waiting(), what, FormatTrace(s.Trace()))
	}
}
