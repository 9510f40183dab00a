package nullserver

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// Server is a server in this process. [New] starts one.
type Server struct {
	ln net.Listener
	wg sync.WaitGroup // the accept loop and every connection

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
	s := &Server{ln: ln, conns: make(map[net.Conn]struct{})}
	s.wg.Go(s.accept)
	return s, nil
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
func (s *Server) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
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
