package kerberos

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/types"
)

// principalName is a name in a realm, as "alice@EXAMPLE.TEST" or "zookeeper/host@EXAMPLE.TEST".
type principalName struct {
	parts []string
	realm string // "" if it is not known yet
}

var errPrincipal = errors.New("want name@REALM, name/host@REALM, or the same without the realm")

func parsePrincipal(s string) (principalName, error) {
	name, realm := s, ""
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		if name, realm = s[:i], s[i+1:]; realm == "" {
			return principalName{}, errPrincipal
		}
	}
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if part == "" || strings.ContainsAny(part, "@ \t\r\n") {
			return principalName{}, errPrincipal
		}
	}
	return principalName{parts, realm}, nil
}

// String returns the principal as one writes it.
func (p principalName) String() string {
	name := strings.Join(p.parts, "/")
	if p.realm != "" {
		name += "@" + p.realm
	}
	return name
}

// withRealm returns the principal with a realm, if it has none.
func (p principalName) withRealm(realm string) principalName {
	if p.realm == "" {
		p.realm = realm
	}
	return p
}

func (p principalName) equal(q principalName) bool { return p.String() == q.String() }

// client and service return the name for messages. The types of names do not matter to KDCs, but are those of Java.
func (p principalName) client() types.PrincipalName {
	return types.PrincipalName{NameType: nametype.KRB_NT_PRINCIPAL, NameString: p.parts}
}

func (p principalName) service() types.PrincipalName {
	return types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: p.parts}
}

// ticketGranting returns the principal of the KDC of a realm, in another realm or in the same.
func ticketGranting(of, in string) principalName { return principalName{[]string{"krbtgt", of}, in} }

// resolver is the part of [net.Resolver] that names of hosts need.
type resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

var _ resolver = net.DefaultResolver

// serviceHost returns the host of the server's principal.
func (s *settings) serviceHost(ctx context.Context, host string) string {
	if s.service == nil && s.canonical {
		host = canonicalHost(ctx, s.resolver, host)
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// servicePrincipal returns the principal of the server on a host, by Java's rule.
func (s *settings) servicePrincipal(conf *config, host, clientRealm string) principalName {
	if s.service != nil {
		return s.service.withRealm(s.realm).withRealm(clientRealm)
	}
	return principalName{parts: []string{s.serviceName, host}, realm: s.realm}.
		withRealm(conf.realmOf(host)).withRealm(clientRealm)
}

// canonicalHost returns the name that the address of the host has in the DNS. As in Java it is the host itself if the
// address has no name, or one that does not lead back to it.
func canonicalHost(ctx context.Context, r resolver, host string) string {
	addrs, err := r.LookupHost(ctx, host)
	if err != nil || len(addrs) == 0 {
		return host
	}
	names, err := r.LookupAddr(ctx, addrs[0])
	if err != nil || len(names) == 0 {
		return host
	}
	name := strings.TrimSuffix(names[0], ".")
	back, err := r.LookupHost(ctx, name)
	if err != nil || net.ParseIP(name) != nil {
		return host
	}
	for _, addr := range back {
		if addr == addrs[0] {
			return name
		}
	}
	return host
}
