package kerberos

import (
	"context"
	"fmt"
	"strings"

	"github.com/gocurator/curator/sasl"
)

// Mechanism is a [sasl.Mechanism] that logs in by Kerberos. It prints the principal and where its secret is, not the
// secret. One Mechanism may serve several clients, and then asks the KDC less often.
type Mechanism struct {
	state *state
}

var _ sasl.Mechanism = (*Mechanism)(nil)

// FromKeytab returns a mechanism for a principal, as alice@EXAMPLE.TEST, whose key is in a file. Without a realm it is
// the default realm of krb5.conf. In Java: a Krb5LoginModule with useKeyTab=true.
func FromKeytab(file, principal string, opts ...Option) (*Mechanism, error) {
	if file == "" {
		return nil, fmt.Errorf("kerberos: keytab: %w", errEmpty)
	}
	return newMechanism(principal, &source{
		name:       "keytab " + file,
		unreadable: "no key of a keytab",
		wrong:      "the KDC has another key than " + file + ": make that file anew, as with ktadd of kadmin",
		read:       func(who principalName) (*account, error) { return readKeytab(file, who) },
	}, opts)
}

// FromPassword returns a mechanism for a principal with a password. Not in Java.
func FromPassword(principal, password string, opts ...Option) (*Mechanism, error) {
	p := passwordSecret(func() string { return password })
	return newMechanism(principal, &source{
		name:  "password",
		wrong: "the password is wrong",
		read:  func(who principalName) (*account, error) { return &account{client: who, secret: p}, nil },
	}, opts)
}

// FromCache returns a mechanism for the principal that has logged in with kinit: its tickets are in a file. If that is
// "", it is the one that the variable KRB5CCNAME names, or else /tmp/krb5cc_ and the number of the user. Other caches
// than files, as KEYRING: and KCM:, are an error. In Java: a Krb5LoginModule with useTicketCache=true.
//
// The tickets end, and others have to keep the file up to date, as k5start or a timer with kinit do. A renewable one is
// renewed too, in memory, by a login late in its life.
func FromCache(file string, opts ...Option) (*Mechanism, error) { return fromCache(file, "", opts) }

// fromCache is FromCache that fails if the file is of another principal, unless that is "".
func fromCache(file, principal string, opts []Option) (*Mechanism, error) {
	if _, err := cacheFile(file); err != nil && file != "" {
		return nil, fmt.Errorf("kerberos: %w", err)
	}
	name := "ticket cache"
	if file != "" {
		name += " " + file
	}
	return newMechanism(principal, &source{
		name:       name,
		unreadable: "no ticket of a cache: log in, as with kinit",
		isCache:    true,
		read:       func(who principalName) (*account, error) { return readCache(file, who) },
	}, opts)
}

// krb5Module is the class of Java's module.
const krb5Module = "com.sun.security.auth.module.Krb5LoginModule"

// FromLogin returns a mechanism for a section of a JAAS file with a Krb5LoginModule: with its keytab if it has
// useKeyTab=true, and otherwise its ticket cache. Java takes the cache first where there are both.
func FromLogin(l sasl.Login, opts ...Option) (*Mechanism, error) {
	if l.Module() != krb5Module {
		return nil, fmt.Errorf("kerberos: %s: want the module %s", l, krb5Module)
	}
	principal, _ := l.Option("principal")
	if l.IsOn("useKeyTab") {
		file, _ := l.Option("keyTab")
		if file == "" || principal == "" {
			return nil, fmt.Errorf("kerberos: %s: useKeyTab=true needs keyTab and principal", l)
		}
		return FromKeytab(strings.TrimPrefix(file, "FILE:"), principal, opts...)
	}
	if !l.IsOn("useTicketCache") {
		return nil, fmt.Errorf("kerberos: %s: neither useKeyTab=true nor useTicketCache=true", l)
	}
	file, _ := l.Option("ticketCache")
	return fromCache(file, principal, opts)
}

func newMechanism(name string, from *source, opts []Option) (*Mechanism, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	st := &state{settings: s, source: from, lock: make(chan struct{}, 1)}
	if name != "" || !from.isCache {
		p, err := parsePrincipal(name)
		if err != nil {
			return nil, fmt.Errorf("kerberos: principal %q: %w", name, err)
		}
		st.principal = &p
	}
	return &Mechanism{st}, nil
}

// Format prints the principal and where its secret is, whatever the verb is.
func (m *Mechanism) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "GSSAPI (%s)", m.state.describe())
}

// Start begins the login of a connection, with a ticket for the server on the host, for which it may ask the KDC. What
// it needs of files it reads anew. The error matches zk.ErrAuthFailed if others have to do something about it, and not
// if no KDC answers.
func (m *Mechanism) Start(ctx context.Context, host string) (sasl.Exchange, error) {
	s := m.state
	host = s.serviceHost(ctx, host) // before the lock: the DNS may be slow
	select {                        // others wait for the ticket of the first
	case s.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, fault(s.describe(), false, "another login asks the KDC", ctx.Err())
	}
	defer func() { <-s.lock }()
	return s.start(ctx, host)
}
