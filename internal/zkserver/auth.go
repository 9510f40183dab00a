package zkserver

import (
	"crypto/sha1" //nolint:gosec // the digest scheme uses it
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// identity is a client's identity in one scheme.
type identity struct{ scheme, id string }

const (
	schemeWorld  = "world"
	schemeAuth   = "auth"
	schemeDigest = "digest"
	schemeIP     = "ip"
	schemeSASL   = "sasl"
	schemeSuper  = "super"
	schemeX509   = "x509"
	anyone       = "anyone"
)

// everybody is the identity of clients that may do everything because the service has no permissions. Clients do not
// see it.
var everybody identity

// identities are the identities of a connection.
type identities []identity

func (ids *identities) add(id identity) {
	if !slices.Contains(*ids, id) {
		*ids = append(*ids, id)
	}
}

// authenticate adds the identities of valid credentials.
func (ids *identities) authenticate(a *jute.Auth, super, remoteIP string) bool {
	switch a.Scheme {
	case schemeDigest:
		if a.Auth == nil {
			return false
		}
		id := Digest(string(a.Auth))
		if id == super {
			ids.add(identity{schemeSuper, ""})
		}
		ids.add(identity{schemeDigest, id})
		return true
	case schemeIP:
		ids.add(identity{schemeIP, remoteIP})
		return true
	case schemeX509: // the certificate is that of the connection, which has its identity already
		return ids.have(schemeX509)
	}
	return false
}

// have reports whether one of the identities is of a scheme.
func (ids *identities) have(scheme string) bool {
	return slices.ContainsFunc(*ids, func(id identity) bool { return id.scheme == scheme })
}

// Digest returns the id of the scheme "digest" for user:password.
func Digest(credentials string) string {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials)) //nolint:gosec // as above
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// allowed reports whether one of the identities has one of the permissions.
func allowed(acl []zk.ACL, perms int32, ids identities) bool {
	if len(acl) == 0 {
		return true
	}
	for _, id := range ids {
		if id.scheme == schemeSuper || id == everybody {
			return true
		}
	}
	for _, a := range acl {
		if a.Perms&perms == 0 {
			continue
		}
		if a.Scheme == schemeWorld && a.ID == anyone {
			return true
		}
		for _, id := range ids {
			if id.scheme == a.Scheme && id.matches(a.ID) {
				return true
			}
		}
	}
	return false
}

func (id identity) matches(expr string) bool {
	switch id.scheme {
	case schemeIP:
	case schemeSASL:
		return id.id == expr || id.id == saslSuper
	default:
		return id.id == expr
	}
	want, bits, ok := parseIP(expr)
	have, _, ok2 := parseIP(id.id)
	return ok && ok2 && want>>(32-bits) == have>>(32-bits)
}

// parseIP reads an IPv4 address with an optional prefix length.
func parseIP(s string) (addr uint64, bits int, ok bool) {
	host, mask, masked := strings.Cut(s, "/")
	parts := strings.Split(host, ".")
	if len(parts) != 4 {
		return 0, 0, false
	}
	for _, p := range parts {
		b, err := strconv.ParseUint(p, 10, 8)
		if err != nil {
			return 0, 0, false
		}
		addr = addr<<8 | b
	}
	bits = 32
	if masked {
		n, err := strconv.Atoi(mask)
		if err != nil || n < 0 || n > 32 {
			return 0, 0, false
		}
		bits = n
	}
	return addr, bits, true
}

// resolveACL returns the ACL to store for the ACL of a client. It removes duplicates, and replaces "auth" with the
// identities of the client.
func resolveACL(acl []zk.ACL, ids identities, known schemes) ([]zk.ACL, jute.Code) {
	var resolved []zk.ACL
	for i, a := range acl {
		if slices.Contains(acl[:i], a) {
			continue
		}
		switch a.Scheme {
		case schemeWorld:
			if a.ID != anyone {
				return nil, jute.CodeInvalidACL
			}
			resolved = append(resolved, a)
		case schemeAuth:
			proven := false
			for _, id := range ids {
				if id.proves() {
					resolved = append(resolved, zk.ACL{Perms: a.Perms, Scheme: id.scheme, ID: id.id})
					proven = true
				}
			}
			if !proven {
				return nil, jute.CodeInvalidACL
			}
		default:
			if !known.valid(a) {
				return nil, jute.CodeInvalidACL
			}
			resolved = append(resolved, a)
		}
	}
	if len(resolved) == 0 {
		return nil, jute.CodeInvalidACL
	}
	return resolved, jute.CodeOK
}

// proves reports whether "auth" in an ACL stands for the identity.
func (id identity) proves() bool {
	return id.scheme == schemeDigest || id.scheme == schemeSASL || id.scheme == schemeX509
}

// schemes are the schemes of ACLs that a service has beside those that all have.
type schemes struct{ sasl, x509 bool }

// valid reports whether the scheme of an entry exists and its id is valid there.
func (s schemes) valid(a zk.ACL) bool {
	switch a.Scheme {
	case schemeSASL:
		return s.sasl && validPrincipal(a.ID)
	case schemeX509:
		return s.x509 && validSubject(a.ID)
	case schemeDigest:
		// Java's split drops empty parts at the end.
		return strings.Count(strings.TrimRight(a.ID, ":"), ":") == 1
	case schemeIP:
		_, _, ok := parseIP(a.ID)
		return ok
	}
	return false
}

// validPrincipal reports whether Java can read the name as one of Kerberos, user/host@realm. Without an @ it reads any.
func validPrincipal(name string) bool {
	user, realm, ok := strings.Cut(name, "@")
	return !ok || !strings.Contains(realm, "@") && !strings.Contains(realm, "/") && strings.Count(user, "/") <= 1
}

// HasScheme reports whether clients of a service can have identities of a scheme.
func (c *Config) HasScheme(scheme string) bool {
	switch scheme {
	case schemeDigest, schemeIP:
		return true
	case schemeSASL:
		return c.Users != nil
	case schemeX509:
		return c.Secure
	}
	return false
}

// required reports whether a connection needs an identity of a scheme before it may send requests.
func (c *Config) required(scheme string) bool { return slices.Contains(c.RequiredAuth, scheme) }

// admitted reports whether the identities are enough to send requests.
func (c *Config) admitted(ids identities) bool {
	return len(c.RequiredAuth) == 0 || slices.ContainsFunc(ids, func(id identity) bool { return c.required(id.scheme) })
}

// hideDigests masks the passwords in an ACL for a client without the admin permission.
func hideDigests(acl []zk.ACL) []zk.ACL {
	hidden := slices.Clone(acl)
	for i := range hidden {
		if hidden[i].Scheme == schemeDigest {
			user, _, _ := strings.Cut(hidden[i].ID, ":")
			hidden[i].ID = user + ":x"
		}
	}
	return hidden
}

// users returns the identities as whoAmI reports them.
func (ids identities) users() []zk.ACL {
	users := make([]zk.ACL, 0, len(ids))
	for _, id := range ids {
		switch id.scheme {
		case everybody.scheme:
			continue
		case schemeDigest:
			id.id, _, _ = strings.Cut(id.id, ":")
		}
		users = append(users, zk.ACL{Scheme: id.scheme, ID: id.id})
	}
	return users
}
