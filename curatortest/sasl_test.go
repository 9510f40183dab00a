package curatortest_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/sasl/digest"
)

// frames is a client that sends and receives frames.
type frames struct {
	testing.TB
	net.Conn
	r       *bufio.Reader
	session int64
	xid     int32
}

// newFrames takes over a connection and opens a session.
func newFrames(tb testing.TB, conn net.Conn, err error) *frames {
	tb.Helper()
	must(tb, err)
	tb.Cleanup(func() { conn.Close() }) //nolint:errcheck // the server may have closed it
	must(tb, conn.SetDeadline(time.Now().Add(limit)))
	f := &frames{TB: tb, Conn: conn, r: bufio.NewReader(conn)}
	f.send(jute.AppendConnectRequest(nil, &jute.ConnectRequest{
		TimeoutMs: int32(limit.Milliseconds()), Password: make([]byte, jute.PasswordSize),
	}))
	answer, err := jute.DecodeConnectResponse(f.receive())
	if f.session = answer.SessionID; err != nil || f.session == 0 {
		tb.Fatalf("answer %+v, error %v", answer, err)
	}
	return f
}

// dialFrames connects to a server of the network.
func dialFrames(tb testing.TB, addr string) *frames {
	tb.Helper()
	conn, err := net.DialTimeout("tcp", addr, limit)
	return newFrames(tb, conn, err)
}

func (f *frames) send(body []byte) {
	f.Helper()
	_, err := f.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	must(f, err)
}

func (f *frames) receive() []byte {
	f.Helper()
	var size [4]byte
	_, err := io.ReadFull(f.r, size[:])
	must(f, err)
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(f.r, b)
	must(f, err)
	return b
}

// ask sends a request and returns the answer.
func (f *frames) ask(r jute.Request) (jute.Code, jute.Reply) {
	f.Helper()
	f.xid++
	f.send(jute.AppendRequest(jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: f.xid, Op: r.Op}), "", &r))
	h, body, err := jute.DecodeReplyHeader(f.receive())
	must(f, err)
	var reply jute.Reply
	if h.Code == jute.CodeOK {
		must(f, jute.DecodeReply(r.Op, body, &reply))
	}
	return h.Code, reply
}

// login returns the code that ends the login, with a null token for a server without SASL.
func (f *frames) login(user, password string) (code jute.Code, hasSASL bool) {
	f.Helper()
	e, err := digest.New(user, password).Start(f.Context(), "")
	must(f, err)
	token, done, err := e.Next(nil)
	for ; !done && err == nil; token, done, err = e.Next(token) {
		code, reply := f.ask(jute.Request{Op: jute.OpSASL, Data: token})
		if code != jute.CodeOK || reply.Data == nil {
			return code, code != jute.CodeOK
		}
		token = reply.Data
	}
	must(f, err)
	return jute.CodeOK, true
}

// whoAmI returns the identities, as "scheme:id scheme:id".
func (f *frames) whoAmI() string {
	f.Helper()
	code, reply := f.ask(jute.Request{Op: jute.OpWhoAmI})
	must(f, code.Err())
	var ids []string
	for _, a := range reply.ACL {
		ids = append(ids, a.Scheme+":"+a.ID)
	}
	return strings.Join(ids, " ")
}

func dialServer(tb testing.TB, server *curatortest.Server) *frames {
	tb.Helper()
	conn, err := server.DialContext(tb.Context(), "", "")
	return newFrames(tb, conn, err)
}

// wantLogin logs in on a new connection.
func wantLogin(tb testing.TB, server *curatortest.Server, user, password string, want jute.Code) *frames {
	tb.Helper()
	f := dialServer(tb, server)
	if code, hasSASL := f.login(user, password); code != want || !hasSASL {
		tb.Errorf("login of %s with %q: %v, has SASL: %t", user, password, code, hasSASL)
	}
	return f
}

func TestServerChangesTheUsersOfSASL(t *testing.T) {
	t.Parallel()
	users := map[string]string{"bob": "old", "alice": "a"}
	server := curatortest.NewServerT(t, curatortest.WithSASLUsers(users))
	users["bob"] = "changed by the caller"
	early := wantLogin(t, server, "bob", "old", jute.CodeOK)
	users = map[string]string{"bob": "new"}
	server.SetSASLUsers(users)
	users["bob"] = "changed by the caller"
	wantLogin(t, server, "bob", "old", jute.CodeAuthFailed)
	wantLogin(t, server, "alice", "a", jute.CodeAuthFailed)
	wantLogin(t, server, "bob", "new", jute.CodeOK)
	if got := early.whoAmI(); got != "ip:127.0.0.1 sasl:bob" {
		t.Errorf("the early one is %s", got)
	}

	server.SetSASLUsers(nil) // nobody
	wantLogin(t, server, "bob", "new", jute.CodeAuthFailed)
	must(t, server.Restart())
	wantLogin(t, server, "bob", "new", jute.CodeAuthFailed)
}

func TestServerGetsSASLLater(t *testing.T) {
	t.Parallel()
	server := curatortest.NewServerT(t)
	if code, hasSASL := dialServer(t, server).login("bob", "x"); code != jute.CodeOK || hasSASL {
		t.Errorf("%v, has SASL: %t", code, hasSASL)
	}
	server.SetSASLUsers(map[string]string{"bob": "x"})
	wantLogin(t, server, "bob", "x", jute.CodeOK)
}

func TestServersOfAClusterHaveTheirOwnUsers(t *testing.T) {
	t.Parallel()
	cluster := curatortest.NewClusterT(t, 3, curatortest.WithSASLUsers(map[string]string{"bob": "x"}))
	servers := cluster.Servers()
	servers[1].SetSASLUsers(nil) // as one with a bad JAAS file
	for i, want := range []jute.Code{jute.CodeOK, jute.CodeAuthFailed, jute.CodeOK} {
		wantLogin(t, servers[i], "bob", "x", want)
	}
}

func TestServerWithRequiredAuth(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]curatortest.ServerOption{
		"no scheme":      {curatortest.WithRequiredAuth()},
		"unknown scheme": {curatortest.WithRequiredAuth("digest", "kerberos")},
		"no users":       {curatortest.WithRequiredAuth("sasl")},
	} {
		if server, err := curatortest.NewServer(opts...); err == nil {
			t.Errorf("%s: no error", name)
			must(t, server.Close())
		}
	}
	server := curatortest.NewServerT(t, curatortest.WithRequiredAuth("ip"))
	if got := dialServer(t, server).whoAmI(); got != "ip:127.0.0.1" {
		t.Errorf("%s, where everybody is enough", got)
	}
}

func TestRealServerChangesTheUsersOfSASL(t *testing.T) {
	t.Parallel()
	const secret = "a \\\"b\n\rc\\n'ä\\t;"
	server := newServer(t, curatortest.WithSASLUsers(map[string]string{"bob": "old"}))
	if code, _ := dialFrames(t, server.Addr()).login("bob", "old"); code != jute.CodeOK {
		t.Error(code)
	}
	must(t, server.SetSASLUsers(map[string]string{"bob": secret}))
	must(t, server.Restart())
	for password, want := range map[string]jute.Code{"old": jute.CodeAuthFailed, secret: jute.CodeOK} {
		if code, _ := dialFrames(t, server.Addr()).login("bob", password); code != want {
			t.Errorf("%q: %v", password, code)
		}
	}
	if err := server.SetSASLUsers(map[string]string{"a@b": ""}); err == nil {
		t.Error("a name that a JAAS file cannot have")
	}
}

func TestRealServerWithoutSASL(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	if err := server.SetSASLUsers(nil); err == nil {
		t.Error("no error")
	}
}

func TestUsersOfSASLThatAJAASFileCannotHave(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	for _, user := range []string{"a b", "a/b", "a@b", `a"b`, "a;", "a=b"} {
		server, err := curatortest.NewRealServer(curatortest.WithSASLUsers(map[string]string{user: ""}))
		if err == nil {
			closeServer(t, server)
			t.Errorf("%q: no error", user)
		} else if !strings.Contains(err.Error(), "JAAS") {
			t.Error(err)
		}
	}
}

// A login that a rule refuses leaves the connection as it is, before a login that the server requires too.
func TestRuleRefusesALogin(t *testing.T) {
	servers := map[string]func(*testing.T) (*curatortest.Faults, string){
		"in memory": func(t *testing.T) (*curatortest.Faults, string) {
			t.Helper()
			server := curatortest.NewServerT(t, bobLogsIn, curatortest.WithRequiredAuth("sasl"))
			return server.Faults(), server.Addr()
		},
		"real": func(t *testing.T) (*curatortest.Faults, string) {
			t.Helper()
			proxy := curatortest.NewProxyT(t, newServer(t, bobLogsIn, curatortest.WithRequiredAuth("sasl")).Addr())
			return proxy.Faults(), proxy.Addr()
		},
	}
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults, addr := start(t)
			for _, op := range []jute.Op{jute.OpSASL, jute.OpAuth} {
				faults.Add(curatortest.Rule{
					Ops: []string{op.String()}, Count: 1, Action: curatortest.ReplyError, Err: zk.ErrAuthFailed,
				})
			}
			f := dialFrames(t, addr)
			f.send(jute.AppendAuth(jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: jute.XidAuth, Op: jute.OpAuth}),
				&jute.Auth{Scheme: "digest", Auth: []byte("u:p")}))
			f.send(jute.AppendRequest(jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: 1, Op: jute.OpSASL}), "",
				&jute.Request{Op: jute.OpSASL, Data: []byte{}}))
			for _, xid := range []int32{jute.XidAuth, 1} {
				want := jute.ReplyHeader{Xid: xid, Code: jute.CodeAuthFailed}
				if h, _, err := jute.DecodeReplyHeader(f.receive()); h != want || err != nil {
					t.Errorf("%+v, error %v", h, err)
				}
			}
			if code, _ := f.login("bob", "x"); code != jute.CodeOK {
				t.Error(code)
			}
			if got := f.whoAmI(); strings.Contains(got, "digest") {
				t.Error(got)
			}
		})
	}
}

var bobLogsIn = curatortest.WithSASLUsers(map[string]string{"bob": "x"})

func TestRealClusterWithLogins(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	cluster, err := curatortest.NewRealCluster(3, bobLogsIn, curatortest.WithRequiredAuth("sasl"))
	must(t, err)
	t.Cleanup(func() { closeServer(t, cluster) })
	for _, server := range cluster.Servers() {
		f := dialFrames(t, server.Addr())
		if code, _ := f.login("bob", "x"); code != jute.CodeOK {
			t.Error(code)
		}
		must(t, cluster.ExpireSession(f.session))
	}
}
