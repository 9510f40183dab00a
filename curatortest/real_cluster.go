package curatortest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// RealCluster is an ensemble of Apache ZooKeeper servers. Each of them can be stopped, killed and frozen by itself. All
// methods are safe for concurrent use.
//
// To test reconfigurations, permit them, without the password they need otherwise:
//
//	cluster, err := curatortest.NewRealCluster(3, curatortest.WithReconfig(), curatortest.WithoutACLs())
//
// In Java: TestingCluster.
type RealCluster struct {
	servers []*RealServer
	network *network // nil without WithPartitions
}

// clusterStartLimit bounds the start of an ensemble, until all its servers serve.
const clusterStartLimit = 60 * time.Second

// NewRealCluster starts an ensemble of n servers, each with the options, and returns when all of them serve. The error
// wraps [ErrNoZooKeeper] if there is none on this machine.
func NewRealCluster(n int, opts ...RealOption) (*RealCluster, error) {
	if n < 1 {
		return nil, fmt.Errorf("curatortest: a cluster of %d servers", n)
	}
	for try := 0; ; try++ {
		c, err := newRealCluster(n, opts)
		if err == nil {
			err = c.start()
		}
		if err == nil {
			return c, nil
		}
		if c != nil {
			err = errors.Join(err, c.Close())
		}
		if try > 0 || errors.Is(err, ErrNoZooKeeper) { // the first failure may be a port that another process took
			return nil, err
		}
	}
}

// WithObservers makes the last n servers of a [RealCluster] observers: they serve clients and have no vote.
func WithObservers(n int) RealOption { return realOption(func(s *RealServer) { s.observers = n }) }

// role is what the configuration says of the server behind its ports: nothing if it has a vote.
func (s *RealServer) role() string {
	if s.observes {
		return ":observer"
	}
	return ""
}

// clusterDefaults is the further configuration of a member.
var clusterDefaults = []RealOption{
	WithConfig("initLimit", "50"), // ticks, as syncLimit
	WithConfig("syncLimit", "25"),
	// The last server must not leave the protocol of the ensemble.
	WithConfig("standaloneEnabled", "false"),
	WithSystemProperty("zookeeper.fastleader.maxNotificationInterval", "400"), // ms until a lost vote is cast again
}

func newRealCluster(n int, opts []RealOption) (*RealCluster, error) {
	const portsEach = 3
	ports, held, err := freePorts(n * portsEach)
	if err != nil {
		return nil, err
	}
	opts = append(clusterDefaults[:len(clusterDefaults):len(clusterDefaults)], opts...)
	c := &RealCluster{}
	members := map[int]memberPorts{}
	for i := range n {
		s, err := newRealServer(opts)
		if err != nil {
			return c, errors.Join(err, held.Close())
		}
		c.servers = append(c.servers, s)
		p := ports[i*portsEach:]
		s.held, held = held[:portsEach], held[portsEach:]
		s.main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
		s.id, s.port = i+1, p[0]
		s.observes = i >= n-s.observers
		s.spec = fmt.Sprintf("server.%d=%s:%d:%d%s;%s:%d", s.id, loopback, p[1], p[2], s.role(), loopback, s.port)
		members[s.id] = memberPorts{quorum: p[1], election: p[2]}
	}
	if observers := c.servers[0].observers; observers < 0 || observers >= n {
		return c, fmt.Errorf("curatortest: %d observers among %d servers", observers, n)
	}
	if c.servers[0].partitions {
		if c.servers[0].config["reconfigEnabled"] == "true" {
			return c, errors.New("curatortest: a cluster with partitions cannot be reconfigured")
		}
		if c.network, err = newNetwork(members); err != nil {
			return c, err
		}
	}
	for _, s := range c.servers {
		if err := s.writeConfig(c.specsFor(s)...); err != nil {
			return c, err
		}
		file := filepath.Join(s.config["dataDir"], "myid")
		if err := os.WriteFile(file, fmt.Appendln(nil, s.id), 0o600); err != nil {
			return c, err
		}
	}
	return c, nil
}

// specsFor returns the lines of the ensemble for one server.
func (c *RealCluster) specsFor(s *RealServer) []string {
	var specs []string
	for _, other := range c.servers {
		spec := other.spec
		if c.network != nil && other != s {
			spec = c.network.spec(s, other)
		}
		specs = append(specs, spec)
	}
	return specs
}

func (c *RealCluster) start() error {
	for _, s := range c.servers {
		if err := s.Launch(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), clusterStartLimit)
	defer cancel()
	for _, s := range c.servers {
		if err := s.AwaitServing(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ConnectString returns the connect string of all servers.
func (c *RealCluster) ConnectString() string {
	addrs := make([]string, len(c.servers))
	for i, s := range c.servers {
		addrs[i] = s.Addr()
	}
	return strings.Join(addrs, ",")
}

// Servers returns all servers, stopped ones too.
func (c *RealCluster) Servers() []*RealServer { return append([]*RealServer(nil), c.servers...) }

// Leader returns the leader. The error wraps [ErrNoServer] if there is none now; AwaitQuorum waits for one.
func (c *RealCluster) Leader() (*RealServer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	return c.find(ctx, "srvr", isLeader, "leads")
}

// FindConnectionInstance returns the server that a session is connected to. The error wraps [ErrNoServer] if it is
// connected to none. In Java: findConnectionInstance.
func (c *RealCluster) FindConnectionInstance(sessionID int64) (*RealServer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	sid := fmt.Sprintf("sid=0x%x,", uint64(sessionID))
	return c.find(ctx, "cons", func(answer string) bool { return strings.Contains(answer, sid) },
		fmt.Sprintf("has session %#x", uint64(sessionID)))
}

// ErrNoServer is wrapped by the error of a method that finds no such server.
var ErrNoServer = errors.New("curatortest: no such server")

const (
	// askLimit bounds a command to all servers: a frozen one does not answer.
	askLimit = 2 * time.Second
	// quorumPoll is the pause between two of them.
	quorumPoll = 20 * time.Millisecond
)

// answer is a server's reply to a four-letter word.
type answer struct {
	server *RealServer
	text   string
	err    error
}

// ask sends the command to all servers at once. The channel is closed when all have answered or ctx has ended.
func (c *RealCluster) ask(ctx context.Context, word string) <-chan answer {
	answers := make(chan answer, len(c.servers))
	var wg sync.WaitGroup
	for _, s := range c.servers {
		wg.Go(func() {
			text, err := s.FourLetterWord(ctx, word)
			answers <- answer{s, text, err}
		})
	}
	go func() {
		wg.Wait()
		close(answers)
	}()
	return answers
}

// find returns the first server with the right answer.
func (c *RealCluster) find(
	ctx context.Context, word string, right func(string) bool, what string,
) (*RealServer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var found *RealServer
	var failures []error
	for a := range c.ask(ctx, word) { // all answers: no goroutine is left
		switch {
		case found != nil:
		case a.err != nil:
			failures = append(failures, a.err)
		case right(a.text):
			found = a.server
			cancel()
		}
	}
	if found == nil {
		return nil, errors.Join(append([]error{fmt.Errorf("%w: none that %s", ErrNoServer, what)}, failures...)...)
	}
	return found, nil
}

func isLeader(srvr string) bool { return strings.Contains(srvr, "Mode: leader") }

// AwaitQuorum returns nil when a leader and a majority of the servers that have a vote serve. It does not wait for the
// others: that is [RealServer.AwaitServing].
func (c *RealCluster) AwaitQuorum(ctx context.Context) error {
	t := time.NewTicker(quorumPoll)
	defer t.Stop()
	for {
		if c.hasQuorum(ctx) {
			return nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("curatortest: no quorum: %w", ctx.Err())
		}
	}
}

func (c *RealCluster) hasQuorum(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, serveAsk)
	defer cancel()
	leaders, serving := 0, 0
	for a := range c.ask(ctx, "srvr") {
		if !a.server.observes && a.err == nil && strings.Contains(a.text, "Mode:") {
			serving++
			if isLeader(a.text) {
				leaders++
			}
		}
	}
	return leaders == 1 && serving > (len(c.servers)-c.servers[0].observers)/2
}

// ExpireSession ends a session as the function [ExpireSession] does, through any server that serves.
func (c *RealCluster) ExpireSession(sessionID int64) error {
	return c.expireSession(sessionID)
}

// KillSession is ExpireSession, see the function [KillSession].
func (c *RealCluster) KillSession(sessionID int64) error {
	return c.expireSession(sessionID)
}

// DropConnection closes the connection of a session as the function [DropConnection] does, on the session's server.
func (c *RealCluster) DropConnection(sessionID int64) error {
	s, err := c.FindConnectionInstance(sessionID)
	if err != nil {
		return err
	}
	return s.DropConnection(sessionID)
}

func (c *RealCluster) expireSession(sessionID int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), sessionLimit)
	defer cancel()
	if err := c.AwaitQuorum(ctx); err != nil {
		return err
	}
	s, err := c.Leader()
	if err != nil {
		return err
	}
	return s.expireSession(ctx, sessionID)
}

// Close ends all servers and removes their data. A second Close does nothing.
func (c *RealCluster) Close() error {
	errs := make([]error, len(c.servers))
	var wg sync.WaitGroup
	for i, s := range c.servers {
		wg.Go(func() { errs[i] = s.Close() })
	}
	wg.Wait()
	if c.network != nil {
		errs = append(errs, c.network.close())
	}
	return errors.Join(errs...)
}
