package kerberos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Option configures a [Mechanism].
type Option func(*settings) error

type settings struct {
	configFile  string // "" is that of the system
	service     *principalName
	serviceName string
	realm       string // of the servers
	canonical   bool
	mutual      bool

	now      func() time.Time
	resolver resolver
	ask      func(ctx context.Context, c *config, realm string, request []byte) ([]byte, error)
}

func newSettings(opts []Option) (settings, error) {
	s := settings{canonical: true, now: time.Now, resolver: net.DefaultResolver, ask: ask}
	for _, o := range opts {
		if err := o(&s); err != nil {
			return s, fmt.Errorf("kerberos: %w", err)
		}
	}
	if s.service != nil && (s.serviceName != "" || !s.canonical || s.service.realm != "" && s.realm != "") {
		return s, errors.New("kerberos: WithServicePrincipal excludes the other options about the principal of the server")
	}
	if s.serviceName == "" {
		s.serviceName = "zookeeper"
	}
	return s, nil
}

var errEmpty = errors.New("an empty value")

func option(name, value string, set func(*settings)) Option {
	return func(s *settings) error {
		if value == "" {
			return fmt.Errorf("%s: %w", name, errEmpty)
		}
		set(s)
		return nil
	}
}

// WithConfigFile sets the file with the realms and their KDCs. The default is KRB5_CONFIG, which may be several files
// with colons between them, or /etc/krb5.conf. In Java: the system property java.security.krb5.conf.
func WithConfigFile(file string) Option {
	return option("WithConfigFile", file, func(s *settings) { s.configFile = file })
}

// WithServicePrincipal sets the principal of all servers, as zookeeper/zk.example.com@EXAMPLE.COM. Without a realm it
// is in that of the client. In Java: the property zookeeper.server.principal.
func WithServicePrincipal(name string) Option {
	return func(s *settings) error {
		p, err := parsePrincipal(name)
		if err != nil {
			return fmt.Errorf("WithServicePrincipal(%q): %w", name, err)
		}
		s.service = &p
		return nil
	}
}

// WithServiceName sets the first part of the principal of a server, before the host. The default is zookeeper. In Java:
// the property zookeeper.sasl.client.username.
func WithServiceName(name string) Option {
	return option("WithServiceName", name, func(s *settings) { s.serviceName = name })
}

// WithServiceRealm sets the realm of the servers. The default is that of [domain_realm] in krb5.conf, or else the
// client's. In Java: the system property zookeeper.server.realm.
func WithServiceRealm(realm string) Option {
	return option("WithServiceRealm", realm, func(s *settings) { s.realm = realm })
}

// WithoutCanonicalHost takes hosts as they are in the connect string. By default, and by default in Java, they are
// replaced by the name that their address has in the DNS: a host that resolves to several addresses with names of their
// own needs this option. In Java: the property zookeeper.sasl.client.canonicalize.hostname.
func WithoutCanonicalHost() Option {
	return func(s *settings) error {
		s.canonical = false
		return nil
	}
}

// WithMutualAuthentication asks a server to prove its identity before the client goes on. That costs a round trip. A
// server proves it without this option too, in what it sends next. Not in Java.
func WithMutualAuthentication() Option {
	return func(s *settings) error {
		s.mutual = true
		return nil
	}
}
