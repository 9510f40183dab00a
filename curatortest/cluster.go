package curatortest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/zkserver"
)

// Cluster is an ensemble of servers in memory, for tests. They share one history, and each has a copy of the tree that
// may be behind. All methods are safe for concurrent use. In Java: TestingCluster.
type Cluster struct {
	service *zkserver.Service
	servers []*Server
}

// NewCluster starts an ensemble of n servers, each on a free port of the loopback interface. The error is about the
// options or the ports.
func NewCluster(n int, opts ...ServerOption) (*Cluster, error) {
	servers, o, err := listenAll(n, opts)
	if err != nil {
		return nil, err
	}
	o.config.Ensemble = true
	c := &Cluster{service: zkserver.New(o.config), servers: servers}
	for i, s := range servers {
		s.cluster = c
		s.join(c.service, c.service.Member(i+1))
	}
	return c, nil
}

// NewClusterT is [NewCluster] for a test: it fails the test if there is an error, and closes the cluster when the test
// ends. A [Rule] that is not valid or has not hit fails the test then.
func NewClusterT(tb testing.TB, n int, opts ...ServerOption) *Cluster {
	tb.Helper()
	c, err := NewCluster(n, opts...)
	return forTest(tb, c, err)
}

// ConnectString returns the connect string of all servers.
func (c *Cluster) ConnectString() string {
	addrs := make([]string, len(c.servers))
	for i, s := range c.servers {
		addrs[i] = s.Addr()
	}
	return strings.Join(addrs, ",")
}

// Servers returns all servers, stopped ones too. In Java: getInstances.
func (c *Cluster) Servers() []*Server { return append([]*Server(nil), c.servers...) }

// Leader returns the leader. The error wraps [ErrNoServer] if there is no majority.
func (c *Cluster) Leader() (*Server, error) {
	for _, s := range c.servers {
		if s.member.Leads() {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w leads", ErrNoServer)
}

// FindConnectionInstance returns the server that a session is connected to. The error wraps [ErrNoServer] if it is
// connected to none. In Java: findConnectionInstance.
func (c *Cluster) FindConnectionInstance(sessionID int64) (*Server, error) {
	for _, s := range c.servers {
		if s.member.Connected(sessionID) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w is connected to session %#x", ErrNoServer, sessionID)
}

// KillServer stops a server at once: its connections end, its data stays. In Java: killServer.
func (c *Cluster) KillServer(s *Server) error { return s.Stop() }

// RestartServer starts a server again. In Java: restartServer.
func (c *Cluster) RestartServer(s *Server) error { return s.Restart() }

// Partition separates the servers from each other. The servers of one group stay connected; a server in no group is
// alone. The group with a majority of all servers continues, with a new leader if necessary. The other servers end
// their connections and serve no client or, with [WithReadOnlyMode], only clients that read. With [WithSyncLimit] a
// server that has lost its leader does so later. Clients reach every server: to cut them off, see [Server.Faults]. heal
// ends the partition. It does nothing after another partition has replaced it.
func (c *Cluster) Partition(groups ...[]*Server) (heal func()) {
	sides := make([]int, len(c.servers))
	for i, s := range c.servers {
		sides[i] = -1 - i // alone
		for g, group := range groups {
			for _, member := range group {
				if member == s {
					sides[i] = g
				}
			}
		}
	}
	return c.service.Part(sides)
}

// SetLag delays the writes of other servers on their way to a server by d, or stops them if d is negative: its clients
// read old data. A write or a sync on the server brings it up to date, as in ZooKeeper. A leader that gets a lag leads
// no longer.
func (c *Cluster) SetLag(s *Server, d time.Duration) { s.member.SetLag(d) }

// ExpireSession ends a session as [Server.ExpireSession] does.
func (c *Cluster) ExpireSession(sessionID int64) error { return expireIn(c.service, sessionID) }

// KillSession lets the client of a session find it expired, as [Server.KillSession] does.
func (c *Cluster) KillSession(sessionID int64) error {
	for _, s := range c.servers {
		s.faults.KillSession(sessionID)
	}
	return nil
}

// DropConnection closes the connection of a session, on whichever server it is.
func (c *Cluster) DropConnection(sessionID int64) error {
	for _, s := range c.servers {
		s.faults.Cut(sessionID)
	}
	return nil
}

// Advance moves the clock of all servers forward, see [Server.Advance].
func (c *Cluster) Advance(d time.Duration) { c.service.Advance(d) }

// Close ends all servers and their connections and waits for them. The error names the rules that are not valid or have
// not hit, see [Faults.Add]. A second Close only returns that error again.
func (c *Cluster) Close() error {
	var errs []error
	for _, s := range c.servers {
		errs = append(errs, s.shut())
	}
	c.service.Close()
	return errors.Join(errs...)
}
