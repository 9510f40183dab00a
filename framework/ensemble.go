package framework

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// EnsembleProvider returns the servers of a client, for programs that find them by other means than a connect string:
// see WithEnsembleProvider.
//
// Its methods are called from several goroutines.
//
// In Java: EnsembleProvider.
type EnsembleProvider interface {
	// Start is called once, when the client starts. The client's Start returns its error.
	Start() error
	// ConnectionString returns the servers to connect to, "h1:2181,h2:2181/chroot". It is called when the client
	// starts and before every try to connect, on a goroutine of its own: the client waits for the result up to a second.
	ConnectionString() string
	// SetConnectionString gets the servers whenever the ensemble changes its configuration.
	SetConnectionString(connectString string)
	// UpdateServerListEnabled reports whether a client keeps its session when the result of ConnectionString changes. It
	// then leaves a server that is not in the new list as soon as a server of the list accepts the session. Otherwise it
	// begins a new session.
	UpdateServerListEnabled() bool
	// Close is called once, when the client closes. The client waits for it as long as for a callback.
	Close() error
}

// ServerNotifier is an [EnsembleProvider] that notifies its client when its servers change. With another provider a
// client follows a change when it connects the next time. A notifier may start without servers: the client waits as
// long as its ConnectionString is empty. If the notifier has a method LastError() error, [Client.BlockUntilConnected]
// joins that error to its own meanwhile.
type ServerNotifier interface {
	EnsembleProvider
	// ServersChanged returns a channel that receives after the result of ConnectionString has changed; it may be
	// closed when nothing changes any more. It is called once, after Start.
	ServersChanged() <-chan struct{}
}

// FixedEnsembleProvider is the [EnsembleProvider] of a fixed list of servers, see [FixedEnsemble]. It is safe for
// concurrent use.
//
// In Java: FixedEnsembleProvider.
type FixedEnsembleProvider struct {
	connectString atomic.Pointer[string]
}

var _ EnsembleProvider = (*FixedEnsembleProvider)(nil)

// FixedEnsemble returns an [EnsembleProvider] for the servers of a connect string, "h1:2181,h2:2181/chroot".
// Only SetConnectionString changes them: a client that tracks its ensemble calls it.
//
// In Java: new FixedEnsembleProvider(connectionString).
func FixedEnsemble(connectString string) EnsembleProvider {
	p := new(FixedEnsembleProvider)
	p.connectString.Store(&connectString)
	return p
}

// Start does nothing.
func (p *FixedEnsembleProvider) Start() error { return nil }

// ConnectionString returns the last connect string that was set.
func (p *FixedEnsembleProvider) ConnectionString() string {
	if s := p.connectString.Load(); s != nil {
		return *s
	}
	return ""
}

// SetConnectionString replaces the connect string. An empty one is ignored: a client without servers would be
// lost.
func (p *FixedEnsembleProvider) SetConnectionString(connectString string) {
	if connectString != "" {
		p.connectString.Store(&connectString)
	}
}

// UpdateServerListEnabled returns true.
func (p *FixedEnsembleProvider) UpdateServerListEnabled() bool { return true }

// Close does nothing.
func (p *FixedEnsembleProvider) Close() error { return nil }

// configToConnectString returns the connect string of the text of /zookeeper/config, or "" if no server in it has an
// address for clients. Host names stay names: their addresses may change. In Java:
// EnsembleTracker.configToConnectionString, which writes IPv6 addresses without the brackets that they need.
func configToConnectString(config []byte, chroot string) (string, error) {
	var members []member
	for line := range strings.Lines(string(config)) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found || !strings.HasPrefix(key, "server.") {
			continue // the version, weights and groups
		}
		m, err := parseMember(strings.TrimSpace(value))
		if err != nil {
			return "", fmt.Errorf("curator: ensemble configuration: %s: %w", strings.TrimSpace(key), err)
		}
		if m.client != "" {
			members = append(members, m)
		}
	}
	if len(members) == 0 {
		return "", nil
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.order, b.order) })
	result := connectString{chroot: chroot}
	for _, m := range members {
		result.servers = append(result.servers, m.client)
	}
	return result.String(), nil
}

// member is one server of an ensemble.
type member struct {
	order  string // the key by which Java sorts the members
	client string // host:port for clients, "" without one
}

// parseMember reads "host:quorum:election[:role][;[address:]port]". There may be more of
// host:quorum:election, with "|" between them, for a server with several network cards.
func parseMember(s string) (member, error) {
	servers, client, hasClient := strings.Cut(s, ";")
	role := "participant"
	if i := strings.LastIndexByte(servers, ':'); i >= 0 && strings.Trim(servers[i+1:], "0123456789") != "" {
		servers, role = servers[:i], strings.ToLower(servers[i+1:])
	}
	if role != "participant" && role != "observer" {
		return member{}, fmt.Errorf("%q: bad role %q", s, role)
	}
	var host string // the first one
	for server := range strings.SplitSeq(servers, "|") {
		serverHost, rest, err := cutHost(server)
		if err != nil {
			return member{}, err
		}
		ports := strings.Split(rest, ":")
		if len(ports) != 3 { // the first one is empty, because rest starts with a colon
			return member{}, fmt.Errorf("%q: not host:port:port", s)
		}
		for _, port := range ports[1:] {
			if _, err := strconv.ParseUint(port, 10, 16); err != nil {
				return member{}, fmt.Errorf("%q: bad port %q", s, port)
			}
		}
		if host == "" {
			host = serverHost
		}
	}
	if !hasClient {
		return member{}, nil
	}
	address, port := "0.0.0.0", client
	if strings.ContainsAny(client, ":]") {
		var rest string
		var err error
		if address, rest, err = cutHost(client); err != nil {
			return member{}, err
		}
		port = strings.TrimPrefix(rest, ":")
	}
	bound, err := joinHostPort(address, port)
	if err != nil {
		return member{}, err
	}
	m := member{order: servers + ":" + role + ";" + bound, client: bound}
	switch {
	case !isWildcard(address):
	case isWildcard(host):
		m.client = "" // the wildcard would mean the client's own machine
	default:
		m.client, err = joinHostPort(host, port)
	}
	return m, err
}

func isWildcard(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsUnspecified()
}
