package curatortest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gocurator/curator/internal/zkserver"
)

// ServerOption changes a [Server], or all servers of a [Cluster].
type ServerOption interface{ applyServer(*serverOptions) }

// Option changes a [Server] or a [RealServer], or all servers of a [Cluster] or a [RealCluster].
type Option interface {
	ServerOption
	RealOption
}

type serverOptions struct {
	config   zkserver.Config
	addrs    []string // nil for the default
	inMemory bool
	secure   *tls.Config // nil without TLS
	// requireAuth reports whether there is a WithRequiredAuth, with schemes or without.
	requireAuth bool
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
	case c.Secure && o.secure == nil:
		return nil, errors.New("curatortest: no config of TLS")
	case c.Secure && o.inMemory:
		return nil, errors.New("curatortest: WithTLS does not go with WithoutPort")
	case o.requireAuth && len(c.RequiredAuth) == 0:
		return nil, errors.New("curatortest: the required authentication has no schemes")
	}
	for _, scheme := range c.RequiredAuth {
		if !c.HasScheme(scheme) {
			return nil, fmt.Errorf("curatortest: required authentication: the server has no scheme %q", scheme)
		}
	}
	return o, nil
}

// check returns an error if the options do not fit n servers.
func (o *serverOptions) check(n int) error {
	switch {
	case n < 1:
		return fmt.Errorf("curatortest: a cluster of %d servers", n)
	case n == 1 && o.config.ReadOnly:
		return errors.New("curatortest: read-only mode needs a cluster: a single server is never cut off from a majority")
	}
	return nil
}

type tickTime time.Duration

// WithTickTime sets the server's unit of time; the default is 100 ms. Sessions end on a tick.
func WithTickTime(d time.Duration) Option { return tickTime(d) }

func (t tickTime) apply(s *RealServer) {
	s.config["tickTime"] = fmt.Sprint(time.Duration(t).Milliseconds())
}

func (t tickTime) applyServer(o *serverOptions) { o.config.Tick = time.Duration(t) }

type syncLimit int

// WithSyncLimit sets the number of ticks for which a server of a cluster continues without its leader. Until then a
// follower that is cut off from its leader answers pings and reads of its own data. So does a leader that is cut off
// from its majority. Their clients notice nothing, while the others end their sessions. They do not answer requests
// that need the leader: writes, syncs and new sessions, and later requests of the same session. After the limit they
// end all connections.
//
// The default of a [Cluster] is 0: its servers notice at once. A [RealCluster] has 25 ticks; the configuration that
// comes with Apache ZooKeeper has 5. In Java: syncLimit.
func WithSyncLimit(ticks int) Option { return syncLimit(ticks) }

func (l syncLimit) apply(s *RealServer) { s.config["syncLimit"] = fmt.Sprint(int(l)) }

func (l syncLimit) applyServer(o *serverOptions) { o.config.SyncLimit = int(l) }

// WithSessionTimeouts sets the bounds of the session timeout of a client; the default is from two ticks to an hour.
func WithSessionTimeouts(least, most time.Duration) ServerOption {
	return serverOption(func(o *serverOptions) { o.config.MinSessionTimeout, o.config.MaxSessionTimeout = least, most })
}

// Version is a release of Apache ZooKeeper.
type Version int

// The releases of a [Server].
const (
	// Version38 is 3.8.0, the version of Debian 12. It is the default.
	Version38 Version = iota
	// Version39 is 3.9.3, the version of Debian 13. A client can watch one path in several modes at once, a watch event
	// has the zxid of its change, exists needs the permission to read, and a transaction returns the Stat of each node
	// that it creates.
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

// WithAddr sets the host and port of the server; the default is port 0, a free one, of the loopback interface. A
// [Cluster] takes an address for each server, or one with port 0 for all of them. A server that listens on all
// interfaces, as "0.0.0.0:0", has an address of the loopback interface for its clients.
func WithAddr(addrs ...string) ServerOption {
	addrs = append([]string{}, addrs...)
	return serverOption(func(o *serverOptions) { o.addrs = addrs })
}

// WithoutPort makes a server that listens on no port: clients reach it by [Server.DialContext] or [Server.DialTimeout]
// only. A bubble of testing/synctest needs it.
func WithoutPort() ServerOption { return serverOption(func(o *serverOptions) { o.inMemory = true }) }

type sweepInterval time.Duration

// WithSweepInterval sets how often the server removes containers that are empty again and nodes whose time to live is
// over. The default is a minute, as in Apache ZooKeeper. In Java: znode.container.checkIntervalMs.
func WithSweepInterval(d time.Duration) Option { return sweepInterval(d) }

func (i sweepInterval) apply(s *RealServer) {
	s.props["znode.container.checkIntervalMs"] = fmt.Sprint(time.Duration(i).Milliseconds())
}

func (i sweepInterval) applyServer(o *serverOptions) { o.config.SweepInterval = time.Duration(i) }

type maxNeverUsed time.Duration

// WithMaxNeverUsed lets the server remove also containers that never had a child, once they are older than d. By
// default they stay, as in Apache ZooKeeper before 3.10, where d is five minutes. In Java:
// znode.container.maxNeverUsedIntervalMs.
func WithMaxNeverUsed(d time.Duration) Option { return maxNeverUsed(d) }

func (m maxNeverUsed) apply(s *RealServer) {
	s.props["znode.container.maxNeverUsedIntervalMs"] = fmt.Sprint(time.Duration(m).Milliseconds())
}

func (m maxNeverUsed) applyServer(o *serverOptions) { o.config.MaxNeverUsed = time.Duration(m) }

// WithMaxBuffer sets the largest request in bytes. The default is 1,048,575, as in Apache ZooKeeper. A longer request
// ends its connection. In Java: jute.maxbuffer.
func WithMaxBuffer(bytes int) ServerOption {
	return serverOption(func(o *serverOptions) { o.config.MaxRequest = bytes })
}

type superUser string

// WithSuperUser gives all permissions to a client that authenticates with the scheme "digest" and these credentials,
// "user:password". In Java: zookeeper.DigestAuthenticationProvider.superDigest.
func WithSuperUser(credentials string) Option { return superUser(credentials) }

func (u superUser) apply(s *RealServer) {
	s.super = string(u)
	s.props[superProperty] = zkserver.Digest(s.super)
}

func (u superUser) applyServer(o *serverOptions) { o.config.SuperDigest = zkserver.Digest(string(u)) }

type saslUsers map[string]string

// WithSASLUsers lets users log in by SASL with the mechanism DIGEST-MD5; the map has their passwords. A user has the
// identity "sasl:name", which the ACLs of the scheme "sasl" name; all of them permit the user "super". Without the
// option a server answers each login with a null token, as Apache ZooKeeper does without a JAAS file, and accepts no
// ACL of the scheme. [Server.SetSASLUsers] and [RealServer.SetSASLUsers] replace the users.
//
// In Java: a section "Server" of a JAAS file with DigestLoginModule, and authProvider.sasl.
func WithSASLUsers(users map[string]string) Option { return saslUsers(copyUsers(users)) }

// copyUsers returns a copy that is not nil.
func copyUsers(users map[string]string) map[string]string {
	c := make(map[string]string, len(users))
	maps.Copy(c, users)
	return c
}

func (u saslUsers) applyServer(o *serverOptions) { o.config.Users = u }

type requiredAuth []string

// WithRequiredAuth makes the server refuse the requests and pings of a connection that has no identity of one of the
// schemes, with -124 and the end of the connection. The identity "ip" is one that every connection has. In Java:
// enforce.auth.enabled and enforce.auth.schemes; the scheme "sasl" is sessionRequireClientSASLAuth.
func WithRequiredAuth(schemes ...string) Option { return requiredAuth(slices.Clone(schemes)) }

func (a requiredAuth) apply(s *RealServer) {
	s.config["enforce.auth.enabled"], s.config["enforce.auth.schemes"] = "true", strings.Join(a, ",")
}

func (a requiredAuth) applyServer(o *serverOptions) { o.config.RequiredAuth, o.requireAuth = a, true }

// WithTLS makes the server accept connections by TLS only, as on the secureClientPort of Apache ZooKeeper. A client
// whose certificate the config verifies has the identity "x509:subject", as "x509:CN=me,O=example": the subject in the
// order and the form of RFC 2253, which is what Java prints. The scheme "auth" in an ACL stands for it, too.
// Connections of [Server.DialContext] are without TLS and certificates.
func WithTLS(config *tls.Config) ServerOption {
	config = config.Clone()
	return serverOption(func(o *serverOptions) { o.secure, o.config.Secure = config, true })
}

type reconfig struct{}

// WithReconfig lets clients with the permission, see [WithSuperUser] and [WithoutACLs], change the members of a
// cluster. A server that stands alone answers framework.ErrUnimplemented. A [Cluster] runs the servers that it was
// started with: one of them that leaves follows on without a vote, and may join again. Others that join are in the
// configuration and do not exist; those with a vote are missing from a majority. In Java: reconfigEnabled.
func WithReconfig() Option { return reconfig{} }

func (reconfig) apply(s *RealServer) { s.config["reconfigEnabled"] = "true" }

func (reconfig) applyServer(o *serverOptions) { o.config.Reconfig = true }

type withoutACLs struct{}

// WithoutACLs permits every client everything, whatever the ACLs say. In Java: zookeeper.skipACL.
func WithoutACLs() Option { return withoutACLs{} }

func (withoutACLs) apply(s *RealServer) { s.props["zookeeper.skipACL"] = "yes" }

func (withoutACLs) applyServer(o *serverOptions) { o.config.NoACL = true }

type enforcedQuotas struct{}

// WithEnforcedQuotas makes the hard limits of quotas hold: the server answers a write beyond one with
// framework.ErrQuotaExceeded. Without the option, and for other limits, it only counts nodes and bytes, as Apache
// ZooKeeper does. In Java: zookeeper.enforceQuota.
func WithEnforcedQuotas() Option { return enforcedQuotas{} }

func (enforcedQuotas) apply(s *RealServer) { s.props["zookeeper.enforceQuota"] = "true" }

func (enforcedQuotas) applyServer(o *serverOptions) { o.config.EnforceQuota = true }

// WithReadOnlyMode lets the servers of a [Cluster] serve read-only clients while they are cut off from the majority. A
// single server, or a cluster of one, always has its majority: there the option is an error.
func WithReadOnlyMode() ServerOption {
	return serverOption(func(o *serverOptions) { o.config.ReadOnly = true })
}

// WithoutTTL makes the server refuse nodes with a time to live, as Apache ZooKeeper does by default.
func WithoutTTL() ServerOption { return serverOption(func(o *serverOptions) { o.config.NoTTL = true }) }
