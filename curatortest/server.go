package curatortest

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/zkserver"
)

// Server is a ZooKeeper server in memory, for tests. It starts in less than a millisecond, needs no Java and no files,
// and fails on demand, see [Server.Faults]. Clients see an Apache ZooKeeper, with its permissions and errors;
// docs/curatortest.md lists the known differences. It is not for production.
//
// All methods are safe for concurrent use. In Java: TestingServer.
type Server struct {
	service *zkserver.Service
	member  *zkserver.Member
	faults  *Faults
	memory  string         // its address if it does not listen
	cluster *Cluster       // nil for a server that stands alone
	joined  chan struct{}  // closed when service and member are set
	serving sync.WaitGroup // the member's connections

	mu      sync.Mutex
	stopped bool
	closed  bool
	thaw    func() // ends Freeze; nil if the server is not frozen
}

// NewServer starts a server on a free port of the loopback interface. The error is about the options or the port.
func NewServer(opts ...ServerOption) (*Server, error) {
	servers, o, err := listenAll(1, opts)
	if err != nil {
		return nil, err
	}
	service := zkserver.New(o.config)
	servers[0].join(service, service.Member(1))
	return servers[0], nil
}

// listenAll returns n servers that listen and are not yet members of a service.
func listenAll(n int, opts []ServerOption) ([]*Server, *serverOptions, error) {
	o, err := serverOptionsOf(opts)
	if err != nil {
		return nil, nil, err
	}
	if err := o.check(n); err != nil {
		return nil, nil, err
	}
	addrs, err := o.listenAddrs(n)
	if err != nil {
		return nil, nil, err
	}
	var servers []*Server
	for i, addr := range addrs {
		s := newServer(memoryAddr(i))
		s.faults.maxRequest = o.config.MaxRequest
		s.faults.secure = o.secure
		servers = append(servers, s)
		if o.inMemory {
			continue
		}
		if err = s.faults.listen(addr); err != nil {
			err = fmt.Errorf("curatortest: listen on %q: %w", addr, err)
			break
		}
	}
	if err == nil {
		o.config.Members = n
		o.config.Addresses, err = addressesOf(servers)
	}
	if err != nil {
		for _, s := range servers {
			s.faults.close() //nolint:errcheck // nothing was accepted
		}
		return nil, nil, err
	}
	return servers, o, nil
}

// newServer returns a server with this address as long as it does not listen.
func newServer(memory string) *Server {
	s := &Server{memory: memory, joined: make(chan struct{})}
	s.faults = newFaults(s.connect)
	return s
}

// join makes the server a member of a service, which needs the addresses of its servers first.
func (s *Server) join(service *zkserver.Service, member *zkserver.Member) {
	s.service, s.member = service, member
	close(s.joined)
}

// connect connects the faults to the member.
func (s *Server) connect(ctx context.Context, cert *x509.Certificate) (net.Conn, error) {
	select {
	case <-s.joined:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	near, far := newPipe()
	s.serving.Go(func() { s.member.ServeCertified(far, cert) })
	return near, nil
}

// NewServerT is [NewServer] for a test: it fails the test if there is an error, and closes the server when the test
// ends. A [Rule] that is not valid or has not hit fails the test then.
func NewServerT(tb testing.TB, opts ...ServerOption) *Server {
	tb.Helper()
	s, err := NewServer(opts...)
	return forTest(tb, s, err)
}

// forTest returns c, which a constructor has made for a test: an error fails the test, and c is closed when the test
// ends.
func forTest[C io.Closer](tb testing.TB, c C, err error) C {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Addr returns host and port for clients. A server made by [WithoutPort] has an address that no machine has.
func (s *Server) Addr() string {
	if addr := s.faults.addr(); addr != "" {
		return dialable(addr)
	}
	return s.memory
}

// ID returns the number of the server in its cluster, from 1 on; 0 if it stands alone.
func (s *Server) ID() int { return s.member.ID() }

// Spec returns the line of the cluster's configuration that describes the server, as "server.1=...", which a
// reconfiguration takes; "" if it stands alone. It is that from the start, also for a server that has left.
func (s *Server) Spec() string { return s.member.Spec() }

// ConnectString returns the connect string of the server.
func (s *Server) ConnectString() string { return s.Addr() }

// DialContext connects to the server without the network, whatever the arguments. It is for framework.WithDialer, and
// works within a bubble of testing/synctest.
func (s *Server) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	return s.faults.connect(ctx)
}

// Faults returns the faults between the clients and the server.
func (s *Server) Faults() *Faults { return s.faults }

// Trace returns the last requests, replies and watch events, see [Faults.Trace].
func (s *Server) Trace() []TraceEntry { return s.faults.Trace() }

var (
	errClosed  = errors.New("curatortest: server is closed")
	errStopped = errors.New("curatortest: server does not run")
)

// Stop ends all connections and refuses new ones until Restart. Nodes and sessions stay. While no server of a service
// runs, no time passes for its sessions. A second Stop does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.stop()
	return nil
}

func (s *Server) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	s.faults.stopListening()
	s.member.Stop()
	s.unfreeze() // a server that starts again is not frozen
}

// Kill is Stop: the server has stored each change before its answer.
func (s *Server) Kill() error { return s.Stop() }

// Freeze halts the server until Thaw, as if its machine stood still: connections stay open, the system accepts new
// ones, and the server answers nothing and ends no session. The other servers of a [Cluster] continue, and end the
// sessions of its clients. A second Freeze does nothing.
func (s *Server) Freeze() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.thaw == nil {
		resume, thaw := func() {}, s.faults.Freeze()
		if s.cluster == nil {
			resume = s.service.Pause()
		}
		s.thaw = func() {
			thaw()
			resume()
		}
	}
	return nil
}

// Thaw ends Freeze. A second Thaw does nothing.
func (s *Server) Thaw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unfreeze()
	return nil
}

func (s *Server) unfreeze() {
	if s.thaw != nil {
		s.thaw()
		s.thaw = nil
	}
}

// Restart starts the server again, with the same address and data. It stops a server that runs first. Every session
// gets its whole timeout again. In Java: restart.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.stop()
	s.member.Start()
	if err := s.faults.listenAgain(); err != nil {
		s.member.Stop()
		return err
	}
	s.stopped = false
	return nil
}

// Close ends the server and all its connections and waits for them. The error names the rules that are not valid or
// have not hit, see [Faults.Add]. A second Close only returns that error again. Close of a [Cluster] closes its
// servers.
func (s *Server) Close() error {
	if s.cluster != nil {
		return s.cluster.Close()
	}
	err := s.shut()
	s.service.Close()
	return err
}

// shut ends the connections of the clients and the member.
func (s *Server) shut() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.faults.missed()
	}
	s.closed = true
	err := s.faults.close()
	s.member.Stop()
	s.serving.Wait()
	return err
}

// ExpireSession ends a session on the server, as if its time were over, and returns when its ephemeral nodes are gone.
// Its client finds out when it reconnects. The error wraps [zk.ErrSessionExpired] if there is no such session.
//
// [zk.ErrSessionExpired]: https://pkg.go.dev/github.com/go-zookeeper/zk#ErrSessionExpired
func (s *Server) ExpireSession(sessionID int64) error { return expireIn(s.service, sessionID) }

// KillSession lets the client of a session find it expired. The server has no part in this: the ephemeral nodes stay
// until the session times out. In Java: KillSession.
func (s *Server) KillSession(sessionID int64) error {
	s.faults.KillSession(sessionID)
	return nil
}

// DropConnection closes the connection of a session. The session lives on if its client comes back in time. If the
// client is not connected to this server nothing happens.
func (s *Server) DropConnection(sessionID int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.closed {
		return errStopped
	}
	s.faults.Cut(sessionID)
	return nil
}

// KeepSession keeps a session from expiring until release, also without a client.
func (s *Server) KeepSession(sessionID int64) (release func(), err error) {
	release, err = s.service.Keep(sessionID)
	return release, sessionError("keep", sessionID, err)
}

// MoveSession makes the server believe that the session has moved to another server: it closes the session's connection
// instead of executing the next write on it.
func (s *Server) MoveSession(sessionID int64) error {
	return sessionError("move", sessionID, s.service.Move(sessionID))
}

// Sessions returns the ids of the sessions, in the order of their beginnings.
func (s *Server) Sessions() []int64 { return s.service.Sessions() }

// SetSequence makes n the number of the next sequential child of a node. It can only be raised.
func (s *Server) SetSequence(path string, n int32) error {
	return nodeError("set sequence", path, s.service.SetSequence(path, n))
}

// SetSASLUsers replaces the users of [WithSASLUsers], on this server of a [Cluster] alone: secrets are rotated.
// Connections that are logged in stay so. A server without users has SASL from now on.
func (s *Server) SetSASLUsers(users map[string]string) { s.member.SetUsers(users) }

// Advance moves the server's clock forward. It returns when the sessions and nodes that are due then have ended.
// Clients notice nothing.
func (s *Server) Advance(d time.Duration) { s.service.Advance(d) }

// Sweep removes the containers that are empty again and the nodes whose time to live is over. The server also does so
// by itself, see [WithSweepInterval].
func (s *Server) Sweep() { s.service.Sweep() }

// Snapshot is the state of a server at one moment.
type Snapshot struct{ state *zkserver.Snapshot }

// Snapshot returns the nodes and sessions of this moment.
func (s *Server) Snapshot() *Snapshot { return &Snapshot{s.service.Snapshot()} }

// Restore brings back a state, as an operator does from a backup. All connections end, and later writes are lost. The
// server refuses a client that has seen later writes until it has as many writes again.
func (s *Server) Restore(from *Snapshot) { s.service.Restore(from.state) }

// FourLetterWord sends a four-letter word, such as "ruok", "srvr" or "wchp", and returns the answer.
func (s *Server) FourLetterWord(ctx context.Context, word string) (string, error) {
	conn, err := s.faults.connect(ctx)
	if err != nil {
		return "", err
	}
	return ask(ctx, conn, word)
}
