package testenv

import (
	"strings"
	"sync"
	"testing"

	"github.com/gocurator/curator/curatortest"
)

// LateServer is the output of a program that begins without a server: the server is there as soon as the program has
// written that it waits for it.
type LateServer struct {
	connect string
	arrive  func()

	mu      sync.Mutex
	written strings.Builder
}

// NewLateServer returns a server that nobody reaches yet.
func NewLateServer(tb testing.TB) *LateServer {
	tb.Helper()
	addr := Addr(tb)
	proxy := curatortest.NewProxyT(tb, addr)
	proxy.SetTarget("127.0.0.1:1") // where nothing listens
	return &LateServer{
		connect: proxy.Addr() + Chroot(tb),
		arrive:  func() { proxy.SetTarget(addr) },
	}
}

// ConnectString returns what the program connects to.
func (s *LateServer) ConnectString() string { return s.connect }

// Write takes output of the program.
func (s *LateServer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written.Write(p)
	if strings.Contains(s.written.String(), "waiting for a ZooKeeper server at "+s.connect+"\n") {
		s.arrive()
	}
	return len(p), nil
}

// String returns all output.
func (s *LateServer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.String()
}
