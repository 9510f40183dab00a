package curatortest

import (
	"errors"
	"fmt"
	"time"

	"github.com/gocurator/curator/internal/zkserver"
)

// ServerOption changes a [Server], or all servers of a [Cluster].
type ServerOption interface{ applyServer(*serverOptions) }

type serverOptions struct {
	config   zkserver.Config
	addrs    []string // nil if there are none given
	inMemory bool
}

type serverOption func(*serverOptions)

func (o serverOption) applyServer(s *serverOptions) { o(s) }

// The default limits of a server.
const (
	defaultTick       = 100 * time.Millisecond
	defaultMaxTimeout = time.Hour
	defaultSweep      = time.Minute
	defaultMaxBuffer  = 0xfffff // jute.maxbuffer of Java
	minTimeoutTicks   = 2
)

func serverOptionsOf(opts []ServerOption) (*serverOptions, error) {
	o := &serverOptions{
		config: zkserver.Config{
			Members:           1,
			Tick:              defaultTick,
			MaxSessionTimeout: defaultMaxTimeout,
			SweepInterval:     defaultSweep,
			MaxRequest:        defaultMaxBuffer,
		},
	}
	for _, opt := range opts {
		opt.applyServer(o)
	}
	c := &o.config
	if c.MinSessionTimeout == 0 {
		c.MinSessionTimeout = min(minTimeoutTicks*c.Tick, c.MaxSessionTimeout)
	}
	switch {
	case c.Tick <= 0:
		return nil, errors.New("curatortest: the tick is not positive")
	case c.SyncLimit < 0:
		return nil, errors.New("curatortest: the sync limit is negative")
	case c.MinSessionTimeout < time.Millisecond || c.MinSessionTimeout > c.MaxSessionTimeout:
		return nil, fmt.Errorf("curatortest: session timeouts from %v to %v", c.MinSessionTimeout, c.MaxSessionTimeout)
	case c.SweepInterval <= 0:
		return nil, errors.New("curatortest: the sweep interval is not positive")
	case c.MaxNeverUsed < 0:
		return nil, errors.New("curatortest: the time of containers that were never used is negative")
	case c.MaxRequest <= 0:
		return nil, errors.New("curatortest: the longest request has no bytes")
	}
	return o, nil
}

// check reports what does not go with n servers.
func (o *serverOptions) check(n int) error {
	switch {
	case n < 1:
		return fmt.Errorf("curatortest: a cluster of %d servers", n)
	case n == 1 && o.config.ReadOnly:
		return errors.New("curatortest: read-only mode needs a cluster: a single server is never cut off from a majority")
	}
	return nil
}

// TickTime is an option of both kinds of servers.
type TickTime time.Duration

// WithTickTime sets the server's unit of time; the default is 100 ms. Sessions end on a tick.
func WithTickTime(d time.Duration) TickTime { return TickTime(d) }

func (t TickTime) apply(s *RealServer) {
	s.config["tickTime"] = fmt.Sprint(time.Duration(t).Milliseconds())
}

func (t TickTime) applyServer(o *serverOptions) { o.config.Tick = time.Duration(t) }

// SyncLimit is an option of both kinds of servers.
type SyncLimit int

// WithSyncLimit sets for how many ticks a server of a cluster goes on without its leader. A follower that is cut off
// from its leader answers pings and reads of what it has until then, and so does a leader that is cut off from its
// majority: their clients find nothing wrong, while the others end their sessions. What needs the leader is not
// answered: writes, syncs and new sessions, and what the same session asks behind them. Then they end all connections.
//
// The default of a [Cluster] is 0: its servers find out at once. A [RealCluster] has 25 ticks; the configuration that
// comes with Apache ZooKeeper has 5. In Java: syncLimit.
func WithSyncLimit(ticks int) SyncLimit { return SyncLimit(ticks) }

func (l SyncLimit) apply(s *RealServer) { s.config["syncLimit"] = fmt.Sprint(int(l)) }

func (l SyncLimit) applyServer(o *serverOptions) { o.config.SyncLimit = int(l) }

// WithSessionTimeouts sets the bounds of what a client can have for a session timeout; the default is from two ticks to
// an hour.
func WithSessionTimeouts(least, most time.Duration) ServerOption {
	return serverOption(func(o *serverOptions) { o.config.MinSessionTimeout, o.config.MaxSessionTimeout = least, most })
}

// Version is a release of Apache ZooKeeper.
type Version int

// The releases that a [Server] can be, where they differ.
const (
	// Version38 is 3.8.0 as Debian 12 has it, the default.
	Version38 Version = iota
	// Version39 is 3.9.3 as Debian 13 has it. A client can watch one path in several modes at once, a watch event has the
	// zxid of its change, exists needs the permission to read, and a transaction gives the stat of what it creates.
	Version39
)

// WithVersion makes the server behave as a release does.
func WithVersion(v Version) ServerOption {
	return serverOption(func(o *serverOptions) {
		o.config.Version = zkserver.V38
		if v >= Version39 {
			o.config.Version = zkserver.V39
		}
	})
}

// WithAddr sets host and port that the server listens on; the default is port 0, a free one, of the loopback interface.
// A [Cluster] takes an address for each server, or one with port 0 for all of them. A server that listens on all
// interfaces, as "0.0.0.0:0", has an address of the loopback interface for its clients.
func WithAddr(addrs ...string) ServerOption {
	return serverOption(func(o *serverOptions) { o.addrs = append([]string{}, addrs...) })
}

// InMemory has the server listen on no port: clients reach it by [Server.DialContext] or [Server.DialTimeout] only. A
// bubble of testing/synctest needs it.
func InMemory() ServerOption { return serverOption(func(o *serverOptions) { o.inMemory = true }) }

// SweepInterval is an option of both kinds of servers.
type SweepInterval time.Duration

// WithSweepInterval sets how often the server removes containers that are empty again and nodes whose time to live is
// over; the default is that of Apache ZooKeeper, a minute. In Java: znode.container.checkIntervalMs.
func WithSweepInterval(d time.Duration) SweepInterval { return SweepInterval(d) }

func (i SweepInterval) apply(s *RealServer) {
	s.props["znode.container.checkIntervalMs"] = fmt.Sprint(time.Duration(i).Milliseconds())
}

func (i SweepInterval) applyServer(o *serverOptions) { o.config.SweepInterval = time.Duration(i) }

// MaxNeverUsed is an option of both kinds of servers.
type MaxNeverUsed time.Duration

// WithMaxNeverUsed has the server remove containers too that never had a child, once they are older. By default they
// stay, as in Apache ZooKeeper. In Java: znode.container.maxNeverUsedIntervalMs.
func WithMaxNeverUsed(d time.Duration) MaxNeverUsed { return MaxNeverUsed(d) }

func (m MaxNeverUsed) apply(s *RealServer) {
	s.props["znode.container.maxNeverUsedIntervalMs"] = fmt.Sprint(time.Duration(m).Milliseconds())
}

func (m MaxNeverUsed) applyServer(o *serverOptions) { o.config.MaxNeverUsed = time.Duration(m) }

// WithMaxBuffer sets how many bytes a request may have; the default is that of Apache ZooKeeper, 1,048,575. A longer
// one ends its connection. In Java: jute.maxbuffer.
func WithMaxBuffer(bytes int) ServerOption {
	return serverOption(func(o *serverOptions) { o.config.MaxRequest = bytes })
}

// WithSuperUser gives all permissions to a client that authenticates with the scheme "digest" and these credentials,
// "user:password".
func WithSuperUser(credentials string) ServerOption {
	return serverOption(func(o *serverOptions) { o.config.SuperDigest = zkserver.Digest(credentials) })
}

// WithReadOnlyMode lets the servers of a [Cluster] serve clients that are content with reading while they are cut off
// from the majority. A server that stands alone, or a cluster of one, always has its majority: there the option is an
// error.
func WithReadOnlyMode() ServerOption {
	return serverOption(func(o *serverOptions) { o.config.ReadOnly = true })
}

// WithoutTTL has the server refuse nodes with a time to live, as Apache ZooKeeper does by default.
func WithoutTTL() ServerOption { return serverOption(func(o *serverOptions) { o.config.NoTTL = true }) }
