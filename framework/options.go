package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/sasl"
	"github.com/gocurator/curator/zkpath"
)

// Option changes a default of [New].
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

// Defaults of [New], as in Java.
const (
	DefaultSessionTimeout    = 60 * time.Second
	DefaultConnectionTimeout = 15 * time.Second
	DefaultMaxCloseWait      = time.Second
	// DefaultMaxBuffer is the server's own default.
	DefaultMaxBuffer = 0xfffff
	DefaultMaxReply  = 64 << 20
)

type config struct {
	ensemble          EnsembleProvider
	sessionTimeout    time.Duration
	tickTime          time.Duration // tickTime of the servers; 0 if not set
	noHeartbeats      bool
	connectionTimeout time.Duration
	maxCloseWait      time.Duration
	maxBuffer         int
	maxReply          int
	maxPending        int // 0 means no limit
	retryPolicy       retry.Policy
	namespace         string
	auth              []jute.Auth
	sasl              sasl.Mechanism // nil without a login
	hasSASL           bool
	acl               builders.ACLProvider
	defaultData       func() []byte
	compression       builders.CompressionProvider
	compressAll       bool
	tracker           bool
	readOnly          bool
	noContainers      bool
	errorPolicy       ErrorPolicy
	breaker           retry.Policy // nil means no circuit breaker
	expirationPercent int
	useTLS            bool
	tls               *tls.Config
	files             *tlsFiles // nil without WithTLSFromFiles
	needsCertificate  bool
	dial              func(ctx context.Context, network, address string) (net.Conn, error)
	hasDialer         bool // dial is the program's: it gets names unresolved
	resolver          Resolver
	order             ServerOrder                            // zero means shuffled
	wall              func() time.Time                       // for tests; nil means the clock of the system
	beforeSession     func(client any)                       // for tests; may be nil
	jitter            func(most time.Duration) time.Duration // for tests; nil means random
	target            connectString                          // empty if it is not known before the start
	logger            *slog.Logger
	telemetry         telemetry.Config
}

func newConfig(connectString string, opts []Option) (*config, error) {
	c := &config{
		sessionTimeout:    DefaultSessionTimeout,
		connectionTimeout: DefaultConnectionTimeout,
		maxCloseWait:      DefaultMaxCloseWait,
		maxBuffer:         DefaultMaxBuffer,
		maxReply:          DefaultMaxReply,
		retryPolicy:       retry.ExponentialBackoff(time.Second, 3),
		acl:               builders.FixedACL(builders.OpenACL),
		compression:       builders.GzipCompression{},
		tracker:           true,
		errorPolicy:       StandardErrorPolicy{},
		expirationPercent: 100,
		defaultData:       localAddress, // not looked up before it is needed
		dial:              (&net.Dialer{}).DialContext,
		resolver:          net.DefaultResolver,
		logger:            slog.New(slog.DiscardHandler),
	}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	if name, isSRV := strings.CutPrefix(connectString, "dns-srv://"); isSRV && c.ensemble == nil {
		c.ensemble = SRVEnsemble(name, WithDNSResolver(c.resolver))
	} else if c.ensemble == nil {
		c.ensemble = FixedEnsemble(connectString)
	} else if connectString != "" {
		return nil, fmt.Errorf("%w: both a connect string and an ensemble provider", ErrBadArguments)
	}
	err := c.validate()
	if err == nil {
		c.target, _ = parseConnectString(c.ensemble.ConnectionString()) // the start returns the error
	}
	return c, err
}

func (c *config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrBadArguments}, args...)...))
		}
	}
	bounded := func(what string, d, least, most time.Duration) {
		if wrong := errtext.TooShort(d); wrong != "" {
			check(false, "%s %s", what, wrong)
			return
		}
		check(least <= d && d <= most, "%s %v", what, d)
	}
	if _, fixed := c.ensemble.(*FixedEnsembleProvider); fixed { // other providers may have no servers before their start
		if _, err := parseConnectString(c.ensemble.ConnectionString()); err != nil {
			errs = append(errs, err)
		}
	}
	if v, ok := c.ensemble.(interface{ validate() error }); ok {
		if err := v.validate(); err != nil {
			errs = append(errs, err)
		}
	}
	bounded("session timeout", c.sessionTimeout, time.Millisecond, math.MaxInt32*time.Millisecond)
	check(c.tickTime >= 0, "tick time %v", c.tickTime)
	bounded("connection timeout", c.connectionTimeout, time.Millisecond, math.MaxInt64)
	bounded("maximum wait for close", c.maxCloseWait, 0, math.MaxInt64)
	check(c.maxBuffer > 0, "maximum buffer of %d bytes", c.maxBuffer)
	check(c.maxReply > 0, "maximum reply of %d bytes", c.maxReply)
	check(c.maxPending >= 0, "maximum of %d pending operations", c.maxPending)
	check(c.expirationPercent >= 1 && c.expirationPercent <= 100,
		"simulated session expiration of %d percent", c.expirationPercent)
	check(c.retryPolicy != nil, "no retry policy")
	check(c.acl != nil, "no ACL provider")
	check(c.compression != nil, "no compression provider")
	check(c.errorPolicy != nil, "no error policy")
	check(c.dial != nil, "no dialer")
	check(c.resolver != nil, "no resolver")
	check(c.logger != nil, "no logger")
	check(c.sasl != nil || !c.hasSASL, "no SASL mechanism")                    // a nil one must not turn the login off
	check(c.tls != nil || c.files != nil || !c.useTLS, "no TLS configuration") // a nil one must not turn TLS off
	check(c.hasCertificate() || !c.needsCertificate, "a required client certificate, and none in the options of TLS")
	if f := c.files; f != nil {
		f.logger = c.logger
		check(f.wrong() == "", "%s", f.wrong())
	}
	for _, p := range []retry.Policy{c.retryPolicy, c.breaker} {
		if v, ok := p.(retry.Validator); ok {
			if err := v.Validate(); err != nil {
				errs = append(errs, errtext.Join(ErrBadArguments, err))
			}
		}
	}
	if err := zkpath.ValidateNamespace(c.namespace); err != nil {
		errs = append(errs, errtext.Join(ErrBadArguments, err))
	}
	for _, a := range c.auth {
		wrong := checkAuth(a)
		check(wrong == "", "%s", wrong)
	}
	return errors.Join(errs...)
}

// checkAuth returns the fault of invalid credentials, or "". A scheme that Apache ZooKeeper lacks may belong to a
// plug-in of the server.
func checkAuth(a jute.Auth) string {
	known := strings.ToLower(strings.TrimSpace(a.Scheme))
	switch {
	case known == "":
		return "authorization without a scheme"
	case known == "sasl":
		return fmt.Sprintf("authorization scheme %q: it needs a mechanism, by WithSASL", a.Scheme)
	case known == "world", known == "auth":
		return fmt.Sprintf("authorization scheme %q: it is for ACLs and has no credentials", a.Scheme)
	case slices.Contains([]string{"digest", "ip", "x509"}, known) && a.Scheme != known:
		return fmt.Sprintf("authorization scheme %q: did you mean %q?", a.Scheme, known)
	case known == "digest" && len(a.Auth) == 0:
		return `authorization scheme "digest" without credentials: they are "user:password"`
	}
	return ""
}

// secure returns the function that wraps a connection to a host in TLS, nil without TLS. It stores why the client's
// certificate was not sent on the newest connection, nil if it was or if there is none.
func (c *config) secure(
	unsent *atomic.Pointer[error],
) func(ctx context.Context, nc net.Conn, host string) (net.Conn, error) {
	if !c.useTLS {
		return nil
	}
	return func(ctx context.Context, nc net.Conn, host string) (net.Conn, error) {
		conf, err := c.tlsConfig(host)
		if err != nil {
			return nil, err
		}
		s, err := secureConn(ctx, nc, conf, c.needsCertificate)
		if err != nil {
			return nil, err
		}
		unsent.Store(s.unsent())
		return s, nil
	}
}

// tlsConfig returns the configuration of one connection, which belongs to the caller.
func (c *config) tlsConfig(host string) (*tls.Config, error) {
	if c.files != nil {
		return c.files.config(host)
	}
	conf := c.tls.Clone()
	if conf.ServerName == "" && !conf.InsecureSkipVerify {
		conf.ServerName = host
	}
	return conf, nil
}

// resolve returns the function that looks up the names of servers, nil if the dialer of the program does.
func (c *config) resolve() func(ctx context.Context, host string) ([]string, error) {
	if c.hasDialer {
		return nil
	}
	return c.resolver.LookupHost
}

// WithRetryPolicy sets when failed operations are tried again; the default is ExponentialBackoff(1 s, 3). Without a
// connection the policy decides only when the time of [WithConnectionTimeout] has passed, so with the default of 15 s a
// short policy does not make an operation fail fast.
func WithRetryPolicy(p retry.Policy) Option { return option(func(c *config) { c.retryPolicy = p }) }

// WithSessionTimeout sets the requested session timeout; the default is 60 s. The server has its own limits: see
// [Client.SessionTimeout].
func WithSessionTimeout(d time.Duration) Option {
	return option(func(c *config) { c.sessionTimeout = d })
}

// WithConnectionTimeout sets how long an operation waits for a connection, and how long a server may take to accept
// one; the default is 15 s.
func WithConnectionTimeout(d time.Duration) Option {
	return option(func(c *config) { c.connectionTimeout = d })
}

// WithMaxCloseWait bounds each of the waits of Close: for the server, for callbacks, and for the ensemble provider if
// it is the program's; the default is 1 s.
func WithMaxCloseWait(d time.Duration) Option { return option(func(c *config) { c.maxCloseWait = d }) }

// WithMaxBuffer sets the size in bytes of the largest request that the server reads; the default is 1 MiB - 1. Larger
// requests fail with [ErrRequestTooLarge] without being sent, because the server would close the connection. In
// Java: the property jute.maxbuffer, of the server.
func WithMaxBuffer(bytes int) Option { return option(func(c *config) { c.maxBuffer = bytes }) }

// WithMaxReply sets the size in bytes of the largest answer that the client reads; the default is 64 MiB. A larger one
// fails its own operation with [ErrReplyTooLarge], which is not tried again, and leaves the others alone. In Java: the
// property jute.maxbuffer, of the client, where such an answer ends the connection.
func WithMaxReply(bytes int) Option { return option(func(c *config) { c.maxReply = bytes }) }

// WithMaxPending bounds the operations that the client has accepted and not finished; the default, and 0, is no bound.
// At the bound an operation of the foreground waits until there is room or its context ends, and one of the background
// is refused with [ErrTooManyPending], but for guaranteed deletes and removals, which are promised. For the background,
// operations whose callback has not begun count too, so that a blocked callback does not fill the memory.
func WithMaxPending(operations int) Option {
	return option(func(c *config) { c.maxPending = operations })
}

// WithNamespace puts the client into a namespace, "app" or "team/app": see [Client.UsingNamespace].
func WithNamespace(ns string) Option { return option(func(c *config) { c.namespace = ns }) }

// WithAuth adds credentials, which every new connection sends: ("digest", "user:password"). Unlike Java's
// authorization() it adds to earlier ones. The scheme may belong to a plug-in of the server; "sasl" is an error of
// [New]: see [WithSASL].
func WithAuth(scheme string, auth []byte) Option {
	auth = slices.Clone(auth)
	return option(func(c *config) { c.auth = append(c.auth, jute.Auth{Scheme: scheme, Auth: auth}) })
}

// WithSASL logs in with a mechanism on every new connection, before anything else: package sasl/digest has one for a
// user and a password, and the module sasl/kerberos has one for Kerberos. The nodes of the client can then have ACLs of
// the scheme "sasl". The login counts as part of the connect, for which [WithConnectionTimeout] is the limit.
//
// A server that refuses the login is tried again as one that cannot be reached. If all of them refuse it,
// [Client.BlockUntilConnected] and the operations fail at once with an error that matches zk.ErrAuthFailed and has the
// reason. The client goes on trying, and is connected as soon as a server accepts the login. In Java: a JAAS file, the
// property java.security.auth.login.config, and a client that does not recover.
func WithSASL(m sasl.Mechanism) Option {
	return option(func(c *config) { c.sasl, c.hasSASL = m, true })
}

// WithACLProvider sets the provider of the ACL of nodes that are created without one; by default everybody may do
// everything.
func WithACLProvider(p builders.ACLProvider) Option {
	if fixed, ok := p.(builders.FixedACL); ok {
		p = slices.Clone(fixed)
	}
	return option(func(c *config) { c.acl = p })
}

// WithDefaultData sets the data of nodes that are created with nil data; the default is the address of this host as
// text, as in Java. An empty slice creates empty nodes.
func WithDefaultData(data []byte) Option {
	data = append([]byte{}, data...)
	return option(func(c *config) { c.defaultData = func() []byte { return data } })
}

// WithCompressionProvider sets how data is compressed; the default is gzip, as Java reads it.
func WithCompressionProvider(p builders.CompressionProvider) Option {
	return option(func(c *config) { c.compression = p })
}

// WithCompression compresses data by default. A builder may override it. All clients of the data must agree. In Java:
// enableCompression().
func WithCompression() Option { return option(func(c *config) { c.compressAll = true }) }

// WithoutCompression compresses data only where a builder says so, which is the default.
func WithoutCompression() Option { return option(func(c *config) { c.compressAll = false }) }

// WithEnsembleProvider sets the source of the connect string. The connect string of New must be empty then.
func WithEnsembleProvider(p EnsembleProvider) Option {
	return option(func(c *config) { c.ensemble = p })
}

// WithEnsembleTracker follows dynamic reconfigurations of the ensemble, which is the default.
func WithEnsembleTracker() Option { return option(func(c *config) { c.tracker = true }) }

// WithoutEnsembleTracker ignores dynamic reconfigurations.
func WithoutEnsembleTracker() Option { return option(func(c *config) { c.tracker = false }) }

// WithReadOnly lets the client connect to a server without a quorum when there is no other, for reading. In Java:
// canBeReadOnly.
func WithReadOnly() Option { return option(func(c *config) { c.readOnly = true }) }

// WithoutReadOnly connects only to servers with a quorum, which is the default.
func WithoutReadOnly() Option { return option(func(c *config) { c.readOnly = false }) }

// WithoutContainerParents creates persistent nodes instead of container parents. In Java: dontUseContainerParents.
func WithoutContainerParents() Option { return option(func(c *config) { c.noContainers = true }) }

// WithConnectionStateErrorPolicy sets the connection states in which recipes give up what they hold; the default is
// [StandardErrorPolicy].
func WithConnectionStateErrorPolicy(p ErrorPolicy) Option {
	return option(func(c *config) { c.errorPolicy = p })
}

// WithSimulatedSessionExpirationPercent sets the part of the session timeout after which a session without a connection
// counts as lost: 1 to 100, which is the default.
func WithSimulatedSessionExpirationPercent(percent int) Option {
	return option(func(c *config) { c.expirationPercent = percent })
}

// WithTLS uses TLS for connections to the servers. If conf has no ServerName, the host of the connect string is
// verified. The client does not send a certificate of conf whose issuer is none of the authorities that a server names:
// see [WithRequiredClientCertificate].
func WithTLS(conf *tls.Config) Option {
	return option(func(c *config) { c.useTLS, c.tls, c.files = true, conf.Clone(), nil })
}

// WithDialer sets the function that opens TCP connections, below TLS. It gets the servers of the connect string, with
// their names, and runs on a goroutine of its own: a dialer that ignores the end of its context delays nothing, but its
// late result is closed. Without it the client looks names up, each time before it tries the servers, and tries all
// addresses of each.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return option(func(c *config) { c.dial, c.hasDialer = dial, true })
}

// WithResolver sets the resolver of the names in the connect string; the default is net.DefaultResolver. A dialer of
// [WithDialer] gets the names instead.
func WithResolver(r Resolver) Option { return option(func(c *config) { c.resolver = r }) }

// WithLogger sets where the client logs; the default is nowhere. docs/outages.md has the lines of each outage.
func WithLogger(l *slog.Logger) Option { return option(func(c *config) { c.logger = l }) }
