// Package digest logs in to servers with a user name and a password, by DIGEST-MD5 (RFC 2831). That is what a server
// asks for whose JAAS file has a DigestLoginModule.
//
// The password is not sent, and the server proves that it knows it too. The rest of the connection is not protected:
// whoever can change packets can use it after the login, and whoever can read them can try passwords. Use TLS, or
// Kerberos.
package digest

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/sasl"
)

// Mechanism is a [sasl.Mechanism] that logs in by DIGEST-MD5. It prints without the user and the password. In Java: the
// section "Client" of a JAAS file, with org.apache.zookeeper.server.auth.DigestLoginModule.
type Mechanism struct {
	credentials func(ctx context.Context) (user, password string, err error)
}

var _ sasl.Mechanism = (*Mechanism)(nil)

// New returns a mechanism for a user and a password.
func New(user, password string) *Mechanism {
	return NewFunc(func(context.Context) (string, string, error) { return user, password, nil })
}

// NewFunc returns a mechanism that asks for the user and the password at each login, so that they may change while the
// client lives. The function is called once for each new connection, and ends with its context. With its error the
// client tries again as if it could not connect, unless that error matches zk.ErrAuthFailed.
func NewFunc(credentials func(ctx context.Context) (user, password string, err error)) *Mechanism {
	return &Mechanism{credentials}
}

// FromLogin returns a mechanism for a section of a JAAS file.
func FromLogin(l sasl.Login) (*Mechanism, error) {
	user, password, ok := l.Password()
	if !ok {
		return nil, fmt.Errorf("digest: %s has no user name and password", l)
	}
	return New(user, password), nil
}

// Format prints the name of the mechanism alone, whatever the verb is.
func (m *Mechanism) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, "DIGEST-MD5") }

// Start begins the login of a connection. It returns the error of the function of [NewFunc], and one that matches
// zk.ErrAuthFailed if there is no user name.
func (m *Mechanism) Start(ctx context.Context, _ string) (sasl.Exchange, error) {
	user, password, err := m.credentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("DIGEST-MD5: user and password: %w", err)
	}
	if user == "" {
		return nil, refused("no user name")
	}
	return &exchange{user: user, password: password, uri: service, nonce: newNonce()}, nil
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: DIGEST-MD5: "+format, append([]any{zk.ErrAuthFailed}, args...)...)
}

// errUnknown is the fault of an encoding: RFC 2831 has ISO 8859-1 where the server does not know UTF-8.
var errUnknown = errors.New("the server knows ISO 8859-1 alone")
