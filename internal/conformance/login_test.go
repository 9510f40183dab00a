package conformance_test

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/sasl/digest"
)

// loginUsers are the users of the servers with SASL.
var loginUsers = map[string]string{
	"super": "adminsecret", "bob": "bobsecret", "alice": `a"b\c`, "zoë": "pä ss", "bob_2.x-y$*": "", "мир": "мир",
}

// loginServer is a kind of server that the cases of logins run on.
type loginServer struct {
	name  string
	opts  []curatortest.Option // of both servers
	cases []loginCase
	// more are the options of Apache ZooKeeper that stand for those of the one in process, where the two differ.
	more []curatortest.RealOption
}

// loginCase is what a client does, and what it receives.
type loginCase struct {
	name string
	play func(*loginClient)
	want []string
}

var (
	withUsers     = curatortest.WithSASLUsers(loginUsers)
	saslRequired  = curatortest.WithRequiredAuth(schemeSASL)
	loginServers  = []loginServer{anonymousServer, saslServer, requiringServer, enforcingServer}
	schemeSASL    = "sasl"
	creatorOnly   = zk.AuthACL(zk.PermAll)
	bobOnly       = []zk.ACL{{Perms: zk.PermAll, Scheme: schemeSASL, ID: "bob"}}
	worldReads    = zk.WorldACL(zk.PermRead)
	refusedSASL   = "sasl AUTHFAILED body ffffffff"
	requiresLogin = "SESSIONCLOSEDREQUIRESASLAUTH"
)

const ended = "end"

var anonymousServer = loginServer{
	name: "without users",
	cases: []loginCase{
		{"every token", func(c *loginClient) {
			c.token("")
			c.token("whatever")
			c.whoAmI()
		}, []string{"sasl OK body ffffffff", "sasl OK body ffffffff", "whoAmI OK [ip:127.0.0.1]"}},
		{"an ACL of the scheme sasl", func(c *loginClient) { c.create(bobOnly) }, []string{"create2 INVALIDACL"}},
		{
			"an auth packet of the scheme sasl", func(c *loginClient) { c.auth(schemeSASL, "bob") },
			[]string{"auth AUTHFAILED", ended},
		},
	},
}

var saslServer = loginServer{
	name: "with users",
	opts: []curatortest.Option{withUsers},
	cases: append([]loginCase{
		{"the client of this library", func(c *loginClient) {
			c.loginByLibrary("bob", "bobsecret")
			c.loginByLibrary("bob", "bobsecret") // a second time
		}, []string{"sasl OK challenge", "sasl OK proof", refusedSASL, ended}},
		{"the client of this library with a wrong password", func(c *loginClient) { c.loginByLibrary("bob", "x") }, refused},
		{"a user of Latin letters", func(c *loginClient) {
			c.loginByLibrary("zoë", "pä ss")
			c.whoAmI()
		}, []string{"sasl OK challenge", "sasl OK proof", "whoAmI OK [ip:127.0.0.1 sasl:zoë]"}},
		{"a user of other letters", func(c *loginClient) {
			c.loginByLibrary("мир", "мир")
			c.whoAmI()
		}, []string{"sasl OK challenge", "sasl OK proof", "whoAmI OK [ip:127.0.0.1 sasl:мир]"}},
		{
			"a password with quotes", func(c *loginClient) { c.loginByLibrary("alice", `a"b\c`) }, loggedIn,
		},
		{"a user with signs and without a password", func(c *loginClient) { c.loginByLibrary("bob_2.x-y$*", "") }, loggedIn},
		{"an unknown user", func(c *loginClient) { c.loginByLibrary("nobody", "x") }, refused},
		{"whoAmI before and after", func(c *loginClient) {
			c.whoAmI()
			c.login("bob", "bobsecret")
			c.whoAmI()
		}, []string{
			"whoAmI OK [ip:127.0.0.1]", "sasl OK challenge", "sasl OK proof", "whoAmI OK [ip:127.0.0.1 sasl:bob]",
		}},
		{"creator ACL", func(c *loginClient) {
			c.create(creatorOnly)
			c.login("bob", "bobsecret")
			c.create(creatorOnly)
			c.getACL()
			c.get()
		}, []string{
			"create2 INVALIDACL", "sasl OK challenge", "sasl OK proof", "create2 OK", "getACL OK [sasl:bob 31]", "getData OK",
		}},
		{"creator ACL with two schemes", func(c *loginClient) {
			c.auth(schemeDigest, "u:p")
			c.login("bob", "bobsecret")
			c.create(creatorOnly)
			c.getACL()
		}, []string{
			"auth OK", "sasl OK challenge", "sasl OK proof", "create2 OK",
			"getACL OK [digest:u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ= 31 sasl:bob 31]",
		}},
		{"an ACL of somebody else", func(c *loginClient) {
			c.create(bobOnly)
			c.getACL()
			c.get()
			c.login("alice", `a"b\c`)
			c.get()
			c.setACL(creatorOnly)
			c.as("bob", "bobsecret")
			c.get()
			c.setACL(creatorOnly)
		}, []string{
			"create2 OK", "getACL NOAUTH", "getData NOAUTH", "sasl OK challenge", "sasl OK proof", "getData NOAUTH",
			"setACL NOAUTH", "sasl OK challenge", "sasl OK proof", "getData OK", "setACL OK",
		}},
		{"the user super", func(c *loginClient) {
			c.create(bobOnly)
			c.as("super", "adminsecret")
			c.get()
			c.setACL(zk.DigestACL(zk.PermAll, "u", "p"))
			c.get() // it is no super user of other schemes
			c.whoAmI()
		}, []string{
			"create2 OK", "sasl OK challenge", "sasl OK proof", "getData OK", "setACL OK", "getData NOAUTH",
			"whoAmI OK [ip:127.0.0.1 sasl:super]",
		}},
		{"a new connection of the session", func(c *loginClient) {
			c.login("bob", "bobsecret")
			c.create(bobOnly)
			c.reconnect()
			c.get()
			c.login("bob", "bobsecret")
			c.get()
		}, []string{
			"sasl OK challenge", "sasl OK proof", "create2 OK", "getData NOAUTH", "sasl OK challenge", "sasl OK proof",
			"getData OK",
		}},
		{"the session of a login that was refused", func(c *loginClient) {
			c.login("bob", "x")
			c.reconnect()
			c.whoAmI()
		}, []string{"sasl OK challenge", refusedSASL, ended, "whoAmI OK [ip:127.0.0.1]"}},
		{"requests between the tokens", func(c *loginClient) {
			c.challenge("")
			c.whoAmI()
			c.respond(c.response("bob", "bobsecret"))
			c.whoAmI()
		}, []string{
			"sasl OK challenge", "whoAmI OK [ip:127.0.0.1]", "sasl OK proof", "whoAmI OK [ip:127.0.0.1 sasl:bob]",
		}},
		{
			"an auth packet of the scheme sasl", func(c *loginClient) { c.auth(schemeSASL, "bob") },
			[]string{"auth AUTHFAILED", ended},
		},
		{"a first token with bytes", func(c *loginClient) {
			c.challenge("bob")
			c.respond(c.response("bob", "bobsecret"))
		}, loggedIn},
		{"a long first token", func(c *loginClient) { c.token(strings.Repeat("x", 4097)) }, []string{refusedSASL, ended}},
		{"an empty response", func(c *loginClient) {
			c.challenge("")
			c.token("")
		}, refused},
		{"ACLs of names", func(c *loginClient) {
			for _, id := range []string{
				"bob", "", "bob/host", "bob@R", "bob/host@R", "@R", "bob@", "a@b@c", "a/b/c@d", "a@b/c", "a/b/c", "ä б",
			} {
				c.create([]zk.ACL{{Perms: zk.PermAll, Scheme: schemeSASL, ID: id}})
			}
		}, []string{
			"create2 OK", "create2 OK", "create2 OK", "create2 OK", "create2 OK", "create2 OK", "create2 OK",
			"create2 INVALIDACL", "create2 INVALIDACL", "create2 INVALIDACL", "create2 OK", "create2 OK",
		}},
	}, responseCases()...),
}

var (
	loggedIn = []string{"sasl OK challenge", "sasl OK proof"}
	refused  = []string{"sasl OK challenge", refusedSASL, ended}
)

// responseCases change a good response.
func responseCases() []loginCase {
	var cases []loginCase
	add := func(name string, want []string, change func(*response)) {
		cases = append(cases, loginCase{"response: " + name, func(c *loginClient) {
			c.challenge("")
			r := c.response("bob", "bobsecret")
			change(r)
			c.respond(r)
		}, want})
	}
	for _, tt := range []struct {
		name, change string // "-name" leaves a directive out, "name=value" replaces or appends it
		want         []string
	}{
		{"as it is", "", loggedIn},
		{"no charset", "-charset", loggedIn},
		{"another charset", "charset=utf-16", refused},
		{"no qop", "-qop", loggedIn},
		{"quoted qop", `qop="auth"`, loggedIn},
		{"integrity", "qop=auth-int", refused},
		{"no nc", "-nc", loggedIn},
		{"another nc", "nc=00000002", loggedIn},
		{"nonce-count", "nonce-count=1", loggedIn},
		{"another nonce-count", "nonce-count=2", refused},
		{"no maxbuf", "-maxbuf", loggedIn},
		{"maxbuf is no number", "maxbuf=x", []string{"sasl OK challenge", ended}},
		{"nonce-count is no number", "nonce-count=x", []string{"sasl OK challenge", ended}},
		{"no realm", "-realm", refused},
		{"empty realm", `realm=""`, refused},
		{"another realm", `realm="zk"`, refused},
		{"no nonce", "-nonce", refused},
		{"another nonce", `nonce="x"`, refused},
		{"no cnonce", "-cnonce", refused},
		{"empty cnonce", `cnonce=""`, loggedIn},
		{"no uri", "-digest-uri", refused},
		{"another uri", `digest-uri="zookeeper/other"`, refused},
		{"a longer uri", `digest-uri="zookeeper/zk-sasl-md5/x"`, refused},
		{"an uri in capitals", `digest-uri="ZooKeeper/ZK-SASL-MD5"`, loggedIn},
		{"no response", "-response", refused},
		{"no user", "-username", refused},
		{"authzid", `authzid="bob"`, loggedIn},
		{"empty authzid", `authzid=""`, loggedIn},
		{"authzid of another", `authzid="alice"`, loggedIn},
		{"an unknown directive", "x=y", loggedIn},
		{"a cipher", "cipher=des", loggedIn},
		{"names in capitals", `AUTHZID="bob"`, loggedIn},
	} {
		add(tt.name, tt.want, func(r *response) { r.change(tt.change) })
	}
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"blanks", ",", " , \t\r\n", loggedIn},
		{"blanks in place of commas", ",", " ", loggedIn},
		{"blanks around the equals sign", "=", " = ", loggedIn},
		{"empty elements", ",", ",,,", loggedIn},
		{"response twice", "response=", "response=x,response=", refused},
		{"an unknown one twice", "response=", "x=y,x=z,response=", loggedIn},
		{"auth-param twice", "response=", "auth-param=y,auth-param=z,response=", refused},
		{"a name alone", "response=", "x,response=", refused},
		{"no name", "response=", "=x,response=", refused},
		{"a name without a value", "response=", "x=,response=", loggedIn},
		{"text behind a quote", `"bob"`, `"bob"x`, refused},
		{"an open quote", ",qop=auth", `,x="y`, refused},
		{"an open escape", ",qop=auth", `,x="y\`, refused},
		{"escapes", `"bob"`, `"\b\o\b"`, loggedIn},
		{"no quotes", `"bob"`, `bob`, loggedIn},
		{"a name at the end", ",qop=auth", ",x", loggedIn},
		{"a known name at the end", ",qop=auth", ",qop", refused},
		{"a name and an equals sign at the end", ",qop=auth", ",x=", refused},
		{"capitals in the digest", "response=", "response=A", refused},
		{"a long one", ",qop=auth", ",qop=auth,x=" + strings.Repeat("x", 4096), refused},
	} {
		add(tt.name, tt.want, func(r *response) {
			r.edit = func(s string) string { return strings.ReplaceAll(s, tt.old, tt.new) }
		})
	}
	return cases
}

// frames are the requests that a server may refuse before a login, by their names.
var frames = []struct {
	name string
	send func(*loginClient)
}{
	{"ping", func(c *loginClient) { c.ask(jute.OpPing, nil) }},
	{"setWatches", func(c *loginClient) {
		c.ask(jute.OpSetWatches, jute.AppendSetWatches(nil, &jute.SetWatches{Data: []string{"/"}}))
	}},
	{"whoAmI", (*loginClient).whoAmI},
	{"create2", func(c *loginClient) { c.create(worldReads) }},
	{"multi", func(c *loginClient) {
		c.ask(jute.OpMulti, jute.AppendRequest(nil, "", &jute.Request{Op: jute.OpMulti}))
	}},
	{"closeSession", func(c *loginClient) { c.ask(jute.OpCloseSession, nil) }},
	{"op(77)", func(c *loginClient) { c.ask(77, nil) }},
}

// beforeLogin are the cases that a server has which requires SASL.
func beforeLogin() []loginCase {
	cases := []loginCase{
		{"a login", func(c *loginClient) {
			c.login("bob", "bobsecret")
			c.whoAmI()
		}, []string{"sasl OK challenge", "sasl OK proof", "whoAmI OK [ip:127.0.0.1 sasl:bob]"}},
		{
			"a wrong password", func(c *loginClient) { c.login("bob", "x") },
			[]string{"sasl OK challenge", "sasl " + requiresLogin + " body ffffffff", ended},
		},
		{"a second login", func(c *loginClient) {
			c.login("bob", "bobsecret")
			c.token("")
		}, []string{"sasl OK challenge", "sasl OK proof", "sasl " + requiresLogin + " body ffffffff", ended}},
		{"the session of a request that was refused", func(c *loginClient) {
			c.whoAmI()
			c.reconnect()
			c.login("bob", "bobsecret")
			c.whoAmI()
		}, []string{
			"whoAmI " + requiresLogin, ended, "sasl OK challenge", "sasl OK proof", "whoAmI OK [ip:127.0.0.1 sasl:bob]",
		}},
		{"setWatches after the login", func(c *loginClient) {
			c.login("bob", "bobsecret")
			frames[1].send(c)
			c.ask(jute.OpPing, nil)
		}, []string{"sasl OK challenge", "sasl OK proof", "setWatches OK", "ping OK"}},
	}
	for _, f := range frames {
		cases = append(cases, loginCase{f.name + " before the login", f.send, []string{f.name + " " + requiresLogin, ended}})
	}
	return cases
}

var requiringServer = loginServer{
	name: "that requires SASL",
	opts: []curatortest.Option{withUsers, saslRequired},
	more: []curatortest.RealOption{withUsers, curatortest.WithConfig("sessionRequireClientSASLAuth", "true")},
	cases: append(beforeLogin(), loginCase{"an auth packet before the login", func(c *loginClient) {
		c.auth(schemeDigest, "u:p")
		c.whoAmI()
	}, []string{"auth OK", "whoAmI " + requiresLogin, ended}}),
}

var enforcingServer = loginServer{
	name: "that enforces one of two schemes",
	opts: []curatortest.Option{withUsers, curatortest.WithRequiredAuth(schemeSASL, schemeDigest)},
	cases: append(beforeLogin(), loginCase{"another scheme", func(c *loginClient) {
		c.auth(schemeDigest, "u:p")
		c.whoAmI()
		c.login("bob", "x")
	}, []string{
		"auth OK", "whoAmI OK [digest:u ip:127.0.0.1]", "sasl OK challenge", "sasl " + requiresLogin + " body ffffffff",
		ended,
	}}),
}

// TestLogins runs all cases on both servers.
func TestLogins(t *testing.T) {
	t.Parallel()
	for _, s := range loginServers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range releases {
				t.Run("in process "+r.name, func(t *testing.T) {
					t.Parallel()
					opts := []curatortest.ServerOption{curatortest.WithVersion(r.version)}
					for _, o := range s.opts {
						opts = append(opts, o)
					}
					s.run(t, curatortest.NewServerT(t, opts...).Addr())
				})
			}
			t.Run("real", func(t *testing.T) {
				testenv.RequireReal(t)
				t.Parallel()
				opts := s.more
				if opts == nil {
					for _, o := range s.opts {
						opts = append(opts, o)
					}
				}
				server, err := curatortest.NewRealServer(opts...)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := server.Close(); err != nil {
						t.Error(err)
					}
				})
				s.run(t, server.Addr())
			})
		})
	}
}

func (s *loginServer) run(t *testing.T, addr string) {
	t.Helper()
	for i, tt := range s.cases {
		t.Run(tt.name, func(t *testing.T) {
			c := &loginClient{TB: t, addr: addr, path: fmt.Sprintf("/n%d-", i), conn: connect(t, addr, sessionTimeout)}
			tt.play(c)
			if diff := cmp.Diff(tt.want, c.received); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		})
	}
}

// loginClient writes down what it receives.
type loginClient struct {
	testing.TB
	addr, path string
	nodes      int
	conn       *conn
	nonce      string // of the last challenge
	received   []string
}

func (c *loginClient) note(format string, args ...any) {
	c.received = append(c.received, fmt.Sprintf(format, args...))
}

// ask sends a request and writes down its answer, and the end of the connection behind an error that has one.
func (c *loginClient) ask(op jute.Op, body []byte) (answer, bool) {
	c.Helper()
	f, xid := c.conn.encode(op, body)
	if _, err := c.conn.Write(f); err != nil {
		c.Fatal(err)
	}
	a, err := c.conn.readAnswer()
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		c.note(ended)
		return answer{}, false
	}
	if err != nil {
		c.Fatal(err)
	}
	if a.Xid != xid {
		c.Errorf("%v: xid %d, want %d", op, a.Xid, xid)
	}
	unnumbered := op == jute.OpSASL || op == jute.OpAuth || a.Code == jute.CodeSessionClosedRequireSASL
	if unnumbered != (a.Zxid == 0) {
		c.Errorf("%v: zxid %d", op, a.Zxid)
	}
	if op == jute.OpSASL && a.Code == jute.CodeOK && len(a.body) > 4 {
		return a, true
	}
	text := ""
	if op == jute.OpWhoAmI || op == jute.OpGetACL {
		var r jute.Reply
		if a.Code == jute.CodeOK {
			if err := jute.DecodeReply(op, a.body, &r); err != nil {
				c.Fatal(err)
			}
			text = showIdentities(r.ACL)
		}
	} else if op == jute.OpSASL || a.Code != jute.CodeOK && len(a.body) > 0 {
		text = fmt.Sprintf(" body %x", a.body)
	}
	c.note("%v %v%s", op, a.Code, text)
	switch a.Code {
	case jute.CodeAuthFailed, jute.CodeSessionClosedRequireSASL:
		c.conn.awaitEnd(c)
		c.note(ended)
		return a, false
	}
	return a, a.Code == jute.CodeOK
}

func showIdentities(acl []zk.ACL) string {
	var ids []string
	for _, a := range identities(acl) {
		id := a.Scheme + ":" + a.ID
		if a.Perms != 0 {
			id += fmt.Sprintf(" %d", a.Perms)
		}
		ids = append(ids, id)
	}
	return " [" + strings.Join(ids, " ") + "]"
}

func (c *loginClient) request(r jute.Request) {
	c.Helper()
	c.ask(r.Op, jute.AppendRequest(nil, "", &r))
}

func (c *loginClient) whoAmI() { c.request(jute.Request{Op: jute.OpWhoAmI}) }

// create creates the node of the case, the second time another one.
func (c *loginClient) create(acl []zk.ACL) {
	c.nodes++
	c.request(jute.Request{Op: jute.OpCreate2, Path: fmt.Sprint(c.path, c.nodes), ACL: acl})
}

func (c *loginClient) get() {
	c.request(jute.Request{Op: jute.OpGetData, Path: fmt.Sprint(c.path, c.nodes)})
}

func (c *loginClient) getACL() {
	c.request(jute.Request{Op: jute.OpGetACL, Path: fmt.Sprint(c.path, c.nodes)})
}

func (c *loginClient) setACL(acl []zk.ACL) {
	c.request(jute.Request{Op: jute.OpSetACL, Path: fmt.Sprint(c.path, c.nodes), ACL: acl, Version: -1})
}

func (c *loginClient) auth(scheme, credentials string) {
	c.Helper()
	c.ask(jute.OpAuth, jute.AppendAuth(nil, &jute.Auth{Scheme: scheme, Auth: []byte(credentials)}))
}

// reconnect opens another connection for the session.
func (c *loginClient) reconnect() {
	c.Helper()
	session := c.conn.session
	c.conn = take(c, c.addr, c.conn, sessionTimeout)
	if c.conn.session != session {
		c.Fatalf("session %#x is back as %#x", session, c.conn.session)
	}
}

// as continues with another session, of a user.
func (c *loginClient) as(user, password string) {
	c.Helper()
	c.conn = connect(c, c.addr, sessionTimeout)
	c.login(user, password)
}

func (c *loginClient) login(user, password string) {
	c.Helper()
	c.challenge("")
	c.respond(c.response(user, password))
}

// token sends a token and returns the one of the server.
func (c *loginClient) token(token string) (reply []byte, ok bool) {
	c.Helper()
	a, ok := c.ask(jute.OpSASL, jute.AppendBuffer(nil, []byte(token)))
	if !ok || len(a.body) <= 4 {
		return nil, false
	}
	return a.body[4:], true
}

// challengeForm is the form of a challenge.
var challengeForm = regexp.MustCompile(
	`^realm="zk-sasl-md5",nonce="([A-Za-z0-9+/]{40})",charset=utf-8,algorithm=md5-sess$`)

// challenge asks for the challenge with a first token.
func (c *loginClient) challenge(first string) {
	c.Helper()
	token, ok := c.token(first)
	if !ok {
		return
	}
	c.readChallenge(token)
}

func (c *loginClient) readChallenge(token []byte) {
	found := challengeForm.FindSubmatch(token)
	if found == nil {
		c.note("sasl OK %q", token)
		return
	}
	c.nonce = string(found[1])
	c.note("sasl OK challenge")
}

// respond sends a response and reads the proof.
func (c *loginClient) respond(r *response) {
	c.Helper()
	text, proof := r.encode()
	token, ok := c.token(text)
	switch {
	case !ok:
	case string(token) == "rspauth="+proof:
		c.note("sasl OK proof")
	default:
		c.note("sasl OK %q", token)
	}
}

// loginByLibrary logs in as a client of this library does.
func (c *loginClient) loginByLibrary(user, password string) {
	c.Helper()
	e, err := digest.New(user, password).Start(c.Context(), "127.0.0.1")
	if err != nil {
		c.Fatal(err)
	}
	token, done, err := e.Next(nil)
	for !done && err == nil {
		reply, ok := c.token(string(token))
		if !ok {
			return
		}
		proof := strings.HasPrefix(string(reply), "rspauth=")
		if token, done, err = e.Next(reply); err == nil && proof == done {
			if done {
				c.note("sasl OK proof")
			} else {
				c.readChallenge(reply)
			}
			continue
		}
		c.note("sasl OK %q: %v", reply, err)
	}
}

// response is the response to a challenge.
type response struct {
	user, password string
	directives     [][2]string // name and value, as written
	edit           func(string) string
}

func (c *loginClient) response(user, password string) *response {
	quoted := func(s string) string { return `"` + s + `"` }
	return &response{user: user, password: password, directives: [][2]string{
		{"charset", "utf-8"},
		{"username", quoted(user)},
		{"realm", quoted("zk-sasl-md5")},
		{"nonce", quoted(c.nonce)},
		{"nc", "00000001"},
		{"cnonce", quoted("0123456789")},
		{"digest-uri", quoted("zookeeper/zk-sasl-md5")},
		{"maxbuf", "65536"},
		{"response", "?"},
		{"qop", "auth"},
	}}
}

// change leaves a directive out, replaces it or appends it.
func (r *response) change(how string) {
	name, value, set := strings.Cut(how, "=")
	name = strings.TrimPrefix(name, "-")
	for i := range r.directives {
		if r.directives[i][0] != name {
			continue
		}
		if set {
			r.directives[i][1] = value
		} else {
			r.directives = append(r.directives[:i:i], r.directives[i+1:]...)
		}
		return
	}
	if set {
		r.directives = append(r.directives, [2]string{name, value})
	}
}

// encode returns the response, whose digest fits its directives, and the proof that the server owes.
func (r *response) encode() (text, proof string) {
	get := func(name string) string {
		for _, d := range r.directives {
			if strings.EqualFold(d[0], name) {
				return strings.Trim(d[1], `"`)
			}
		}
		return ""
	}
	secret := md5.Sum([]byte(r.user + ":" + get("realm") + ":" + r.password))
	a1 := string(secret[:]) + ":" + get("nonce") + ":" + get("cnonce")
	for _, d := range r.directives {
		if strings.EqualFold(d[0], "authzid") {
			a1 += ":" + strings.Trim(d[1], `"`)
		}
	}
	answerTo := func(what string) string {
		return hexSum(hexSum(a1) + ":" + get("nonce") + ":00000001:" + get("cnonce") + ":auth:" +
			hexSum(what+":"+get("digest-uri")))
	}
	var parts []string
	for _, d := range r.directives {
		if d[1] == "?" {
			d[1] = answerTo("AUTHENTICATE")
		}
		parts = append(parts, d[0]+"="+d[1])
	}
	text = strings.Join(parts, ",")
	if r.edit != nil {
		text = r.edit(text)
	}
	return text, answerTo("")
}

func hexSum(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}
