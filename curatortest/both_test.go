package curatortest_test

import (
	"context"
	"errors"
	"flag"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
)

func TestOnBoth(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	var ran []bool
	curatortest.OnBoth(t, func(t *testing.T, server *curatortest.TestServer) {
		if (server.Server == nil) == (server.Real == nil) {
			t.Fatalf("in memory %t, real %t", server.Server != nil, server.Real != nil)
		}
		ran = append(ran, server.Real != nil)
		onBoth(t, server)
	}, curatortest.WithSASLUsers(map[string]string{"bob": `a"b\c`}), curatortest.WithRequiredAuth("sasl"))
	if !slices.Equal(ran, []bool{false, true}) {
		t.Errorf("it has run on %v", ran)
	}
}

func onBoth(t *testing.T, server *curatortest.TestServer) {
	t.Helper()
	login := func() *frames {
		f := dialFrames(t, server.Addr())
		if code, _ := f.login("bob", `a"b\c`); code != jute.CodeOK {
			t.Fatal(code)
		}
		return f
	}
	f := login()
	bob := []zk.ACL{{Perms: zk.PermAll, Scheme: "sasl", ID: "bob"}}
	for _, path := range []string{"/n", "/n/b", "/n/a"} {
		code, _ := f.ask(jute.Request{Op: jute.OpCreate, Path: path, Data: []byte("data of " + path), ACL: bob})
		must(t, code.Err())
	}
	for range 2 { // before and after a restart
		n, ok := server.Node("/n")
		if !ok || string(n.Data) != "data of /n" || n.Stat.NumChildren != 2 || !cmp.Equal(n.ACL, bob) ||
			!slices.Equal(n.Children, []string{"a", "b"}) {
			t.Errorf("%+v, %t", n, ok)
		}
		if n, ok := server.Node("/n/x"); ok || n.Data != nil || server.Exists("/n/x") || server.Children("/n/x") != nil {
			t.Errorf("%+v, %t where there is nothing", n, ok)
		}
		if !server.Exists("/n/a") || !slices.Equal(server.Children("/n"), []string{"a", "b"}) {
			t.Errorf("children %q", server.Children("/n"))
		}
		server.Stop()
		server.Kill()
		server.Restart()
	}

	f = login()
	code, _ := f.ask(jute.Request{Op: jute.OpCreate, Path: "/mine", Flags: zk.FlagEphemeral, ACL: bob})
	must(t, code.Err())
	server.Eventually("the node is there", func() bool { return server.Exists("/mine") })
	server.Freeze()
	server.Thaw()
	n, _ := server.Node("/mine")
	server.ExpireSession(n.Stat.EphemeralOwner)
	if server.Exists("/mine") {
		t.Error("the session is not over")
	}
	client := 0
	server.Eventually("something that no event of the server shows", func() bool {
		client++
		return client == 3
	})
	server.DropConnection(n.Stat.EphemeralOwner) // nobody has it
	if server.ConnectString() != server.Addr() {
		t.Errorf("connect string %s", server.ConnectString())
	}
}

func TestNodeOfARealServer(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	s := newSession(t, server.Addr())
	_, err := s.Create("/n", nil, 0, zk.DigestACL(zk.PermRead, "u", "p"))
	must(t, err)
	n, ok, err := server.Node(t.Context(), "/n")
	if err != nil || !ok || !cmp.Equal(n.ACL, zk.DigestACL(zk.PermRead, "u", "p")) {
		t.Errorf("%+v, %t, %v", n, ok, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := server.Node(ctx, "/n"); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, ok, err := server.Node(t.Context(), "/n"); !ok || err != nil { // on a new connection
		t.Errorf("after it: %t, %v", ok, err)
	}
	must(t, server.Stop())
	if _, _, err := server.Node(t.Context(), "/n"); err == nil {
		t.Error("a stopped server has answered")
	}
}

func TestNodeOfARealServerWithAnotherSuperUser(t *testing.T) {
	t.Parallel()
	read := func(server *curatortest.RealServer) error {
		s := newSession(t, server.Addr())
		_, err := s.Create("/n", nil, 0, zk.DigestACL(zk.PermRead, "u", "p"))
		must(t, err)
		_, _, err = server.Node(t.Context(), "/n")
		return err
	}
	must(t, read(newServer(t, curatortest.WithSuperUser("root:secret"))))
	unknown := curatortest.WithSystemProperty("zookeeper.DigestAuthenticationProvider.superDigest", "root:xx")
	if err := read(newServer(t, unknown)); !errors.Is(err, zk.ErrNoAuth) {
		t.Error(err)
	}
}

func TestExpireSessionOfAServerThatRequiresALogin(t *testing.T) {
	t.Parallel()
	users := curatortest.WithSASLUsers(map[string]string{"bob": "x"})
	server := newServer(t, users, curatortest.WithRequiredAuth("sasl"))
	conn := dialFrames(t, server.Addr())
	if err := curatortest.ExpireSession(testenv.Context(t), server.Addr(), conn.session); !errors.Is(err,
		jute.ErrSessionClosedRequireSASL) {
		t.Errorf("without a login: %v", err)
	}
	must(t, server.ExpireSession(conn.session))
	if err := server.ExpireSession(conn.session); !errors.Is(err, zk.ErrSessionExpired) {
		t.Errorf("a second time: %v", err)
	}
}

func TestNewRealServerT(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	var server *curatortest.RealServer
	t.Run("test", func(t *testing.T) {
		server = curatortest.NewRealServerT(t)
		newSession(t, server.Addr()).create(t, "/n", "", 0)
	})
	if server.PID() != 0 || server.Restart() == nil {
		t.Error("it is not closed")
	}
}

// The test is not parallel: it sets a flag of the test binary.
func TestOnBothShort(t *testing.T) {
	short := flag.Lookup("test.short")
	before := short.Value.String()
	must(t, short.Value.Set("true"))
	t.Cleanup(func() { must(t, short.Value.Set(before)) })
	ran := 0
	curatortest.OnBoth(t, func(t *testing.T, server *curatortest.TestServer) {
		ran++
		if server.Server == nil || server.Exists("/n") {
			t.Errorf("%+v", server)
		}
	})
	if ran != 1 {
		t.Errorf("it has run %d times", ran)
	}
}
