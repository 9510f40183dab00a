package wire_test

import (
	"context"
	"net"
	"sync"

	"github.com/gocurator/curator/internal/wire"
)

// socket is a client's end of a connection in memory that takes what is written at once, as the kernel does.
type socket struct {
	net.Conn
	written chan []byte
	closed  chan struct{}
	once    sync.Once
}

func (s *socket) Write(p []byte) (int, error) {
	select {
	case s.written <- append([]byte(nil), p...):
		return len(p), nil
	case <-s.closed:
		return 0, net.ErrClosed
	}
}

func (s *socket) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

func (s *socket) pump() {
	for {
		select {
		case p := <-s.written:
			if _, err := s.Conn.Write(p); err != nil {
				return
			}
		case <-s.closed:
			return
		}
	}
}

// dialToSockets is dialTo with connections that buffer what the client writes.
func dialToSockets(n network) wire.Config {
	cfg := dialTo(n)
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := n.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s := &socket{Conn: nc, written: make(chan []byte, 100_000), closed: make(chan struct{})}
		go s.pump()
		return s, nil
	}
	return cfg
}
