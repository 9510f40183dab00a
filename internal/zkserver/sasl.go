package zkserver

import (
	"crypto/md5" //nolint:gosec // RFC 2831 has no other
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gocurator/curator/internal/jute"
)

// The login by SASL with DIGEST-MD5, as the server of Java does it: an empty token, the challenge of the server, the
// response of the client, and the proof of the server.

const (
	saslRealm   = "zk-sasl-md5"
	saslService = "zookeeper/" + saslRealm
	// saslSuper is the user that every ACL of the scheme sasl permits.
	saslSuper = "super"
	// maxResponse is the size of the largest token of a client.
	maxResponse = 4096
)

// login is the login of one connection.
type login struct {
	nonce string // of the challenge; empty before it
	ended bool   // a response was checked, and there is no second one
}

// verdict is the outcome of a token.
type verdict int

const (
	loginGoesOn verdict = iota
	loginDone
	loginRefused
	loginBroken // the token is one that Java fails to read, for which it ends the connection without an answer
)

// next answers a token of the client. After the last one it returns the name of the user.
func (l *login) next(token []byte, users map[string]string) (reply []byte, user string, v verdict) {
	switch {
	case l.ended || len(token) > maxResponse:
		return nil, "", loginRefused
	case l.nonce == "":
		l.nonce = newNonce()
		return []byte(`realm="` + saslRealm + `",nonce="` + l.nonce + `",charset=utf-8,algorithm=md5-sess`), "", loginGoesOn
	}
	l.ended = true
	d, ok := parseDirectives(string(token))
	if !ok {
		return nil, "", loginRefused
	}
	if v := l.check(d); v != loginDone {
		return nil, "", v
	}
	user = d["username"]
	password, ok := users[user]
	if !ok {
		return nil, "", loginRefused
	}
	if subtle.ConstantTimeCompare([]byte(d["response"]), []byte(digestOf(d, password, "AUTHENTICATE"))) != 1 {
		return nil, "", loginRefused
	}
	return []byte("rspauth=" + digestOf(d, password, "")), user, loginDone
}

// digestOf returns the digest of a response; that of the server has no method.
func digestOf(d map[string]string, password, method string) string {
	secret := md5.Sum([]byte(latin(d["username"]) + ":" + saslRealm + ":" + latin(password))) //nolint:gosec // as above
	a1 := string(secret[:]) + ":" + d["nonce"] + ":" + d["cnonce"]
	if as, ok := d["authzid"]; ok {
		a1 += ":" + as
	}
	return hexMD5(strings.Join([]string{
		hexMD5(a1), d["nonce"], "00000001", d["cnonce"], "auth", hexMD5(method + ":" + d["digest-uri"]),
	}, ":"))
}

// check checks all of a response but the user and the digest, in the order of Java, which decides between the verdicts.
func (l *login) check(d map[string]string) verdict {
	has := func(name string) bool {
		_, ok := d[name]
		return ok
	}
	fits := func(name, want string) bool { return !has(name) || d[name] == want }
	if !fits("charset", "utf-8") {
		return loginRefused
	}
	if has("maxbuf") {
		if _, err := strconv.ParseInt(d["maxbuf"], 10, 32); err != nil {
			return loginBroken
		}
	}
	if !has("username") || d["realm"] != saslRealm || d["nonce"] != l.nonce || !has("cnonce") {
		return loginRefused
	}
	if has("nonce-count") { // clients call it nc, which Java does not read
		n, err := strconv.ParseInt(d["nonce-count"], 16, 32)
		switch {
		case err != nil:
			return loginBroken
		case n != 1:
			return loginRefused
		}
	}
	if !fits("qop", "auth") || !strings.EqualFold(d["digest-uri"], saslService) || !has("response") {
		return loginRefused
	}
	return loginDone
}

// once are the directives that Java reads, each of which may come once. Others may come again.
var once = []string{
	"username", "realm", "nonce", "cnonce", "nonce-count", "qop", "digest-uri", "response", "maxbuf", "charset", "cipher",
	"authzid", "auth-param",
}

const (
	lws       = " \t\r\n"
	separates = "," + lws
)

// parseDirectives reads a list of name=value, whose values may be quoted. Commas and blanks separate its elements.
func parseDirectives(s string) (map[string]string, bool) {
	d := map[string]string{}
	for {
		s = strings.TrimLeft(s, separates)
		if s == "" {
			return d, true
		}
		name, value, rest, ok := parseDirective(s)
		if !ok {
			return nil, false
		}
		name = strings.ToLower(name)
		if _, again := d[name]; again && slices.Contains(once, name) {
			return nil, false
		}
		d[name], s = value, rest
	}
}

// parseDirective reads the first name=value. A name at the end has an empty value.
func parseDirective(s string) (name, value, rest string, ok bool) {
	end := strings.IndexAny(s, "="+separates)
	if end < 0 {
		return s, "", "", true
	}
	name, s = s[:end], strings.TrimLeft(s[end:], lws)
	if name == "" || !strings.HasPrefix(s, "=") {
		return "", "", "", false
	}
	s = strings.TrimLeft(s[1:], lws)
	switch {
	case s == "":
		return "", "", "", false
	case s[0] != '"':
		value, rest = s, ""
		if end := strings.IndexAny(s, separates); end >= 0 {
			value, rest = s[:end], s[end:]
		}
		return name, value, rest, true
	}
	value, rest, ok = parseQuoted(s[1:])
	if rest != "" && !strings.ContainsRune(separates, rune(rest[0])) {
		ok = false
	}
	return name, value, rest, ok
}

// parseQuoted reads up to the closing quote.
func parseQuoted(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// latin returns the text as the digest takes it: in ISO 8859-1 if that has all its characters, else in UTF-8.
func latin(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return s
		}
		b = append(b, byte(r))
	}
	return string(b)
}

func newNonce() string {
	var b [30]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}

func hexMD5(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// SetUsers sets the users that may log in to the member, with their passwords. Connections that are logged in stay so.
func (m *Member) SetUsers(users map[string]string) {
	m.service.mu.Lock()
	defer m.service.mu.Unlock()
	m.users = knownUsers(users)
	m.service.schemes.sasl = true
}

// knownUsers returns a copy that is not nil.
func knownUsers(users map[string]string) map[string]string {
	known := make(map[string]string, len(users))
	maps.Copy(known, users)
	return known
}

// sasl answers a token of a login. A server without users answers with a null token, and goes on.
func (c *conn) sasl(h jute.RequestHeader, body []byte) bool {
	r, err := jute.DecodeRequest(h.Op, body)
	if err != nil || r.Data == nil {
		return false
	}
	if c.member.users == nil {
		c.reply(jute.ReplyHeader{Xid: h.Xid}, h.Op, &jute.Reply{})
		return true
	}
	token, user, v := c.login.next(r.Data, c.member.users)
	switch v {
	case loginBroken:
		return false
	case loginRefused:
		code := jute.CodeAuthFailed
		if c.member.service.config.required(schemeSASL) {
			code = jute.CodeSessionClosedRequireSASL
		}
		c.replyNullToken(jute.ReplyHeader{Xid: h.Xid, Code: code})
		return false
	case loginDone:
		c.ids.add(identity{schemeSASL, user})
	}
	c.reply(jute.ReplyHeader{Xid: h.Xid}, h.Op, &jute.Reply{Data: token})
	return true
}

// replyNullToken refuses a login: unlike other errors this one has a body.
func (c *conn) replyNullToken(h jute.ReplyHeader) {
	c.count()
	c.out.add(func(b []byte) []byte {
		return jute.AppendReply(jute.AppendReplyHeader(b, h), jute.OpSASL, &jute.Reply{})
	})
}
