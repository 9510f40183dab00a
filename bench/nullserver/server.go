package nullserver

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// Server serves one listener. It is made by [New] or [Serve].
type Server struct {
	ln net.Listener
	wg sync.WaitGroup // the accept loop of New and every connection

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// New starts a server on a free port of the loopback interface.
func New() (*Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("nullserver: %w", err)
	}
	s := newServer(ln)
	s.wg.Go(func() { _ = s.accept() })
	return s, nil
}

// Serve answers the clients of ln until ln is closed; then it closes their connections and returns nil. Any
// other failure to accept ends it too and is returned.
func Serve(ln net.Listener) error {
	s := newServer(ln)
	err := s.accept()
	return errors.Join(err, s.Close())
}

func newServer(ln net.Listener) *Server {
	return &Server{ln: ln, conns: make(map[net.Conn]struct{})}
}

// Addr returns the address of the server, as host:port.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Close stops the server, cuts its connections and waits until its goroutines have ended.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	err := s.ln.Close()
	s.wg.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("nullserver: %w", err)
	}
	return nil
}

// accept takes connections until the listener is closed.
func (s *Server) accept() error {
	for {
		c, err := s.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("nullserver: %w", err)
		}
		s.serve(c)
	}
}

// serve answers one connection on a goroutine of its own.
func (s *Server) serve(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.wg.Go(func() {
		answerAll(c)
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	})
}
