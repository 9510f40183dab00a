package framework

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/zkpath"
)

// Defaults of [SRVEnsemble] and [DNSEnsemble].
const (
	DefaultDNSInterval = 30 * time.Second
	DefaultDNSTimeout  = 5 * time.Second
)

// DNSOption changes a default of [SRVEnsemble] and [DNSEnsemble].
type DNSOption interface{ applyDNS(*dnsEnsemble) }

type dnsOption func(*dnsEnsemble)

func (o dnsOption) applyDNS(e *dnsEnsemble) { o(e) }

// WithDNSResolver sets the resolver of the names; the default is net.DefaultResolver.
func WithDNSResolver(r Resolver) DNSOption { return dnsOption(func(e *dnsEnsemble) { e.resolver = r }) }

// WithDNSInterval sets the time between two lookups; the default is [DefaultDNSInterval].
func WithDNSInterval(d time.Duration) DNSOption {
	return dnsOption(func(e *dnsEnsemble) { e.interval = d })
}

// WithDNSTimeout bounds each lookup; the default is [DefaultDNSTimeout].
func WithDNSTimeout(d time.Duration) DNSOption {
	return dnsOption(func(e *dnsEnsemble) { e.timeout = d })
}

// SRVEnsemble returns an [EnsembleProvider] for the servers in the SRV records of a name, with their ports:
// "_zookeeper._tcp.example.com", or "_zookeeper._tcp.example.com/chroot". It ignores priorities and weights.
//
// It looks the name up at an interval, and a client follows a change at once, with its session. After a failed lookup
// the servers stay the same. The client starts before the first lookup has an answer. SetConnectionString does nothing:
// DNS decides. The result is a [ServerNotifier], for one client at a time.
func SRVEnsemble(name string, opts ...DNSOption) EnsembleProvider {
	host, chroot, _ := strings.Cut(name, "/")
	e := newDNSEnsemble(opts)
	switch {
	case host == "" || strings.ContainsFunc(host, notInHostName):
		e.invalid = fmt.Errorf("%w: SRV name %q", ErrBadArguments, name)
	case host != name:
		e.chroot = "/" + chroot
		if err := zkpath.Validate(e.chroot, false); err != nil {
			e.invalid = fmt.Errorf("%w: SRV name %q: chroot: %w", ErrBadArguments, name, err)
		}
	}
	e.lookUp = func(ctx context.Context) ([]string, error) {
		// The resolver leaves out records with invalid names, and returns an error about them.
		_, records, err := e.resolver.LookupSRV(ctx, "", "", host)
		var servers []string
		for _, r := range records {
			target := strings.TrimSuffix(r.Target, ".")
			if target != "" && r.Port != 0 { // no target: there is no such service
				servers = append(servers, net.JoinHostPort(target, strconv.Itoa(int(r.Port))))
			}
		}
		if len(servers) > 0 {
			err = nil
		}
		return servers, err
	}
	return e
}

// DNSEnsemble returns an [EnsembleProvider] for all addresses of the names in a connect string. Each address is a
// server: "zk-headless.namespace.svc:2181", the name of a headless service of Kubernetes, or several, or with a chroot.
//
// It looks the names up at an interval, and a client follows a change at once, with its session: it leaves a server
// whose address is gone. After a failed lookup the servers stay the same. The client starts before the first lookup has
// an answer. SetConnectionString does nothing: DNS decides. The result is a [ServerNotifier], for one client at a time.
//
// The servers are addresses, so TLS needs a ServerName in the configuration of [WithTLS], or certificates for
// addresses.
func DNSEnsemble(connectString string, opts ...DNSOption) EnsembleProvider {
	e := newDNSEnsemble(opts)
	target, err := parseConnectString(connectString)
	if err != nil {
		e.invalid = err
	}
	e.chroot = target.chroot
	e.lookUp = func(ctx context.Context) ([]string, error) {
		var servers []string
		var errs []error
		for _, server := range target.servers {
			found, err := e.addresses(ctx, server)
			servers, errs = append(servers, found...), append(errs, err)
		}
		return servers, errors.Join(errs...)
	}
	return e
}

// dnsEnsemble is a [ServerNotifier] that looks up its servers.
type dnsEnsemble struct {
	lookUp   func(ctx context.Context) ([]string, error) // servers beside an error are used if there are none yet
	chroot   string
	resolver Resolver
	interval time.Duration
	timeout  time.Duration
	invalid  error // set if the name is invalid
	changed  chan struct{}

	mu      sync.Mutex
	servers []string
	failure error // error of the last lookup
	cancel  context.CancelFunc
	ended   chan struct{}
}

var _ ServerNotifier = (*dnsEnsemble)(nil)

func newDNSEnsemble(opts []DNSOption) *dnsEnsemble {
	e := &dnsEnsemble{
		resolver: net.DefaultResolver, interval: DefaultDNSInterval, timeout: DefaultDNSTimeout,
		changed: make(chan struct{}, 1),
	}
	for _, o := range opts {
		if o != nil {
			o.applyDNS(e)
		}
	}
	return e
}

// validate returns an error for invalid arguments.
func (e *dnsEnsemble) validate() error {
	switch {
	case e.invalid != nil:
		return e.invalid
	case e.resolver == nil:
		return fmt.Errorf("%w: no resolver", ErrBadArguments)
	case e.interval <= 0:
		return fmt.Errorf("%w: interval of %v between lookups", ErrBadArguments, e.interval)
	case e.timeout <= 0:
		return fmt.Errorf("%w: timeout of %v for lookups", ErrBadArguments, e.timeout)
	}
	return nil
}

// Start begins to look up the servers.
func (e *dnsEnsemble) Start() error {
	if err := e.validate(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel != nil {
		return ErrStarted
	}
	ctx, cancel := context.WithCancel(exec.Root)
	ended := make(chan struct{})
	e.cancel, e.ended = cancel, ended
	go func() {
		defer close(ended)
		e.run(ctx)
	}()
	return nil
}

// Close ends the lookups, and waits for one that is under way.
func (e *dnsEnsemble) Close() error {
	e.mu.Lock()
	cancel, ended := e.cancel, e.ended
	e.cancel = nil
	e.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
	return nil
}

// ConnectionString returns the servers that were found last, "" before the first.
func (e *dnsEnsemble) ConnectionString() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.servers) == 0 {
		return ""
	}
	return connectString{e.servers, e.chroot}.String()
}

// SetConnectionString does nothing.
func (e *dnsEnsemble) SetConnectionString(string) {}

// UpdateServerListEnabled returns true.
func (e *dnsEnsemble) UpdateServerListEnabled() bool { return true }

// ServersChanged returns a channel that receives when a lookup has found other servers.
func (e *dnsEnsemble) ServersChanged() <-chan struct{} { return e.changed }

// LastError returns the error of the last lookup, or nil.
func (e *dnsEnsemble) LastError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failure
}

// run looks up the servers at the interval, and more often until the first lookup has found some.
func (e *dnsEnsemble) run(ctx context.Context) {
	for pause := min(time.Second, e.interval); ; pause = min(2*pause, e.interval) {
		if e.refresh(ctx) {
			pause = e.interval
		}
		t := time.NewTimer(pause - rand.N(pause/10+1)) // not all clients at once
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// refresh looks up the servers once, and reports whether there are any.
func (e *dnsEnsemble) refresh(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	servers, err := e.lookUp(ctx)
	slices.Sort(servers)
	servers = slices.Compact(servers)
	if err == nil && len(servers) == 0 {
		err = errors.New("no servers")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure = err
	known := len(e.servers) > 0
	if len(servers) == 0 || err != nil && known || slices.Equal(servers, e.servers) {
		return known
	}
	e.servers = servers
	select {
	case e.changed <- struct{}{}:
	default: // the last change was not received yet
	}
	return true
}

// addresses returns the addresses of a server, with its port.
func (e *dnsEnsemble) addresses(ctx context.Context, server string) ([]string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{server}, nil
	}
	found, err := e.resolver.LookupHost(ctx, host)
	servers := make([]string, len(found))
	for i, address := range found {
		servers[i] = net.JoinHostPort(address, port)
	}
	return servers, err
}
