package curatortest

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/zkserver"
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

var errLogin = errors.New("the server sends no challenge")

// identify gives a connection the identities of an account.
func (s *sessionConn) identify(who account) error {
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
	challenge, err := s.request(&jute.Request{Op: jute.OpSASL, Data: []byte{}})
	if err != nil {
		return err
	}
	response, ok := zkserver.Respond(challenge.Data, who.user, who.password)
	if !ok {
		return errLogin
	}
	_, err = s.request(&jute.Request{Op: jute.OpSASL, Data: response})
	return err
}
