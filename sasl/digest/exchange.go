package digest

import (
	"crypto/md5" //nolint:gosec // RFC 2831 has no other
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// service is the name of the service that a server of ZooKeeper has, on whatever host.
const service = "zookeeper/zk-sasl-md5"

// exchange is the login of one connection: an empty token, the challenge of the server, the response to it, and the
// proof of the server.
type exchange struct {
	user, password string
	uri            string // the service
	nonce          string // of the client
	step           int
	proof          string // what the server has to answer to the response
}

// newNonce returns random text. It replaces the time, which others could guess.
func newNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Next answers a token of the server.
func (e *exchange) Next(token []byte) (reply []byte, done bool, err error) {
	e.step++
	switch e.step {
	case 1:
		return []byte{}, false, nil // asks for the challenge
	case 2:
		reply, err = e.respond(string(token))
		return reply, false, err
	default:
		return nil, true, e.check(string(token))
	}
}

// respond returns the response to a challenge.
func (e *exchange) respond(token string) ([]byte, error) {
	c, err := parseChallenge(token)
	if err != nil {
		return nil, refused("challenge of the server: %w", err)
	}
	user, err := encode(e.user, c.utf8)
	if err != nil {
		return nil, refused("user name: %w", err)
	}
	password, err := encode(e.password, c.utf8)
	if err != nil {
		return nil, refused("password: %w", err)
	}
	realm := c.realm
	if c.utf8 { // otherwise it came as ISO 8859-1
		if realm, err = encode(realm, true); err != nil {
			return nil, refused("realm: %w", err)
		}
	}
	secret := sum(user + ":" + realm + ":" + password)
	key := hexSum(string(secret[:]) + ":" + c.nonce + ":" + e.nonce)
	digest := func(what string) string {
		return hexSum(strings.Join([]string{key, c.nonce, "00000001", e.nonce, "auth", hexSum(what + ":" + e.uri)}, ":"))
	}
	e.proof = digest("")
	var b strings.Builder
	name := user
	if c.utf8 {
		name = e.user
		b.WriteString("charset=utf-8,")
	}
	b.WriteString("username=" + quote(name) + ",realm=" + quote(c.realm) + ",nonce=" + quote(c.nonce) +
		",nc=00000001,cnonce=" + quote(e.nonce) + ",digest-uri=" + quote(e.uri) +
		",maxbuf=65536,response=" + digest("AUTHENTICATE") + ",qop=auth")
	return []byte(b.String()), nil
}

// check checks that the server knows the password.
func (e *exchange) check(token string) error {
	directives, err := parseDirectives(token)
	if err != nil {
		return refused("last token of the server: %w", err)
	}
	proofs := directives["rspauth"]
	if len(proofs) != 1 || subtle.ConstantTimeCompare([]byte(proofs[0]), []byte(e.proof)) != 1 {
		return refused("the server has not shown that it knows the password")
	}
	return nil
}

// encode returns the bytes of s that the digest takes: ISO 8859-1 if it has all characters, else UTF-8.
func encode(s string, hasUTF8 bool) (string, error) {
	if !utf8.ValidString(s) {
		return "", errNotText
	}
	latin := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			if !hasUTF8 {
				return "", errUnknown
			}
			return s, nil
		}
		latin = append(latin, byte(r))
	}
	return string(latin), nil
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func sum(s string) [md5.Size]byte { return md5.Sum([]byte(s)) } //nolint:gosec // as above

func hexSum(s string) string {
	h := sum(s)
	return hex.EncodeToString(h[:])
}

// challenge is what the server says before the client answers.
type challenge struct {
	realm, nonce string
	utf8         bool
}

func parseChallenge(token string) (challenge, error) {
	var c challenge
	directives, err := parseDirectives(token)
	if err != nil {
		return c, err
	}
	one := func(name string) string {
		if values := directives[name]; len(values) == 1 {
			return values[0]
		}
		return ""
	}
	switch {
	case one("nonce") == "":
		return c, errNonce
	case one("algorithm") != "md5-sess":
		return c, errAlgorithm
	case len(directives["qop"]) > 0 && !slices.Contains(strings.FieldsFunc(one("qop"), isSeparator), "auth"):
		return c, errProtection
	}
	c.nonce, c.utf8 = one("nonce"), one("charset") == "utf-8"
	if realms := directives["realm"]; len(realms) > 0 { // one is enough
		c.realm = realms[0]
	}
	return c, nil
}
