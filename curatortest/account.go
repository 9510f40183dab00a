package curatortest

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/zkserver"
	"github.com/gocurator/curator/sasl/digest"
)

// superProperty is the system property with the digest of a user with all permissions.
const superProperty = "zookeeper.DigestAuthenticationProvider.superDigest"

// account has the identities of the methods of a RealServer that open a session.
type account struct {
	super          string // credentials of the scheme digest; empty for none
	user, password string // of a login by SASL; no user for none
}

// account returns what the server grants all permissions to, and what it requires.
func (s *RealServer) account() account {
	var a account
	if s.props[superProperty] == zkserver.Digest(s.super) {
		a.super = s.super
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.users) > 0 && s.requiresSASL() {
		a.user = slices.Min(slices.Collect(maps.Keys(s.users)))
		a.password = s.users[a.user]
	}
	return a
}

func (s *RealServer) requiresSASL() bool {
	return s.config["sessionRequireClientSASLAuth"] == "true" ||
		strings.Contains(s.config["enforce.auth.schemes"], "sasl")
}

// identify gives a connection the identities of an account.
func (s *sessionConn) identify(ctx context.Context, who account) error {
	if who.super != "" {
		_, err := s.answer(jute.AppendAuth(
			jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: jute.XidAuth, Op: jute.OpAuth}),
			&jute.Auth{Scheme: "digest", Auth: []byte(who.super)}))
		if err != nil {
			return err
		}
	}
	if who.user == "" {
		return nil
	}
	exchange, err := digest.New(who.user, who.password).Start(ctx, "")
	var answer jute.Reply
	for err == nil {
		token, done, refused := exchange.Next(answer.Data)
		if done || refused != nil {
			return refused
		}
		answer, err = s.request(&jute.Request{Op: jute.OpSASL, Data: token})
	}
	return err
}
