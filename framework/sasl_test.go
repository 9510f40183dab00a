package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	zklib "github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/sasl"
	"github.com/gocurator/curator/sasl/digest"
)

// saslUsers are the users of a server with SASL, and their passwords.
var saslUsers = map[string]string{"super": "admin", "bob": "secret", "zoë": "pä ss"}

// saslServer is a server of either kind.
type saslServer interface {
	Addr() string
	Stop() error
	Restart() error
}

// newSASLServer starts a server with users of DIGEST-MD5, of the kind that the tests run on.
func newSASLServer(t *testing.T, opts ...curatortest.Option) saslServer {
	t.Helper()
	opts = append(opts, curatortest.WithSASLUsers(saslUsers))
	if testenv.Real() {
		var all []curatortest.RealOption
		for _, o := range opts {
			all = append(all, o)
		}
		return curatortest.NewRealServerT(t, all...)
	}
	var all []curatortest.ServerOption
	for _, o := range opts {
		all = append(all, o)
	}
	return curatortest.NewServerT(t, all...)
}

// A client logs in by the section of a JAAS file.
func TestLoginOfAJAASFile(t *testing.T) {
	t.Parallel()
	server := newSASLServer(t, curatortest.WithRequiredAuth("sasl"))
	file := filepath.Join(t.TempDir(), "jaas.conf")
	write(t, file, []byte(`Client {
  org.apache.zookeeper.server.auth.DigestLoginModule required username="bob" password="secret";
};
`))
	login, err := sasl.FromJAAS(file, "Client")
	must(t, err)
	m, err := digest.FromLogin(login)
	must(t, err)
	connectClient(t, server.Addr(), framework.WithSASL(m))
}

func TestLogin(t *testing.T) {
	t.Parallel()
	server := newSASLServer(t)
	ctx := testenv.Context(t)
	for user, password := range saslUsers {
		client := connectClient(t, server.Addr(), framework.WithSASL(digest.New(user, password)),
			framework.WithACLProvider(builders.FixedACL(zklib.AuthACL(zklib.PermAll))))
		_, err := client.Create().ForPath(ctx, "/of-"+user, nil)
		must(t, err)
		acl, err := client.GetACL().ForPath(ctx, "/of-"+user)
		must(t, err)
		want := []zklib.ACL{{Perms: zklib.PermAll, Scheme: "sasl", ID: user}}
		if diff := cmp.Diff(want, acl); diff != "" {
			t.Errorf("ACL (-want +got):\n%s", diff)
		}
	}
	bob := connectClient(t, server.Addr(), framework.WithSASL(digest.New("bob", "secret")))
	if _, err := bob.GetData().ForPath(ctx, "/of-zoë"); !errors.Is(err, zklib.ErrNoAuth) {
		t.Errorf("bob reads zoë's node: %v", err)
	}
	super := connectClient(t, server.Addr(), framework.WithSASL(digest.New("super", "admin")))
	if _, err := super.GetData().ForPath(ctx, "/of-zoë"); err != nil {
		t.Errorf("super reads zoë's node: %v", err)
	}

	for _, tt := range []struct {
		name, says string
		m          sasl.Mechanism
	}{
		{"wrong password", "user or the password", digest.New("bob", "wrong")},
		// Not bob's password: Apache ZooKeeper compares with that of the last user whom it knew (SaslServerCallbackHandler).
		{"unknown user", "user or the password", digest.New("nobody", "other")},
		{"unknown mechanism", "", notAMechanism{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			refusedAtOnce(t, server.Addr(), tt.says, framework.WithSASL(tt.m))
		})
	}
	t.Run("a server without SASL", func(t *testing.T) {
		refusedAtOnce(t, testenv.Addr(t), "no SASL", framework.WithSASL(digest.New("bob", "secret")))
	})
}

// notAMechanism sends what no server knows.
type notAMechanism struct{}

func (notAMechanism) Start(context.Context, string) (sasl.Exchange, error) {
	return notAMechanism{}, nil
}
func (notAMechanism) Next([]byte) ([]byte, bool, error) { return []byte("nonsense"), false, nil }

// refusedAtOnce checks that each error of a client has the reason why it is refused, and one line of its log too.
func refusedAtOnce(t *testing.T, addr, says string, opts ...framework.Option) {
	t.Helper()
	log := &lockedBuffer{}
	client := newClient(t, addr, append(opts, framework.WithConnectionTimeout(time.Hour),
		framework.WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))))...)
	recorded := record(client)
	start(t, client)
	ctx := testenv.Context(t)
	err := client.BlockUntilConnected(ctx)
	_, failed := client.GetData().ForPath(ctx, "/")
	for _, err := range []error{err, failed} {
		if !errors.Is(err, zklib.ErrAuthFailed) || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v", err)
		}
	}
	recorded.want(t, suspended)
	testenv.Eventually(t, func() bool { return strings.Contains(log.String(), "refuse") }, "a line of the log")
	closeClient(t, client)
	var about []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "no answer") { // of a first try that a busy machine is too slow for
			continue
		}
		if strings.Contains(line, "refuse") || strings.Contains(line, "connect") {
			about = append(about, line)
		}
	}
	if len(about) != 1 || !strings.Contains(about[0], says) {
		t.Errorf("the log is\n%s", log.String())
	}
}

// A server that requires a login accepts everybody's connect request, and closes the connection at the next one.
func TestServerThatRequiresALogin(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, server saslServer) {
		t.Helper()
		refusedAtOnce(t, server.Addr(), framework.ErrLoginRequired.Error())
		refusedAtOnce(t, server.Addr(), framework.ErrLoginRequired.Error(),
			framework.WithAuth("digest", []byte("bob:secret")))
		refusedAtOnce(t, server.Addr(), "user or the password", framework.WithSASL(digest.New("bob", "wrong")))
	}
	t.Run("enforced", func(t *testing.T) {
		t.Parallel()
		check(t, newSASLServer(t, curatortest.WithRequiredAuth("sasl")))
	})
	t.Run("sessions need SASL", func(t *testing.T) {
		testenv.RequireReal(t) // in memory that is the same
		t.Parallel()
		check(t, curatortest.NewRealServerT(t, curatortest.WithSASLUsers(saslUsers),
			curatortest.WithConfig("sessionRequireClientSASLAuth", "true")))
	})
	t.Run("enforced for another scheme", func(t *testing.T) {
		t.Parallel()
		server := newSASLServer(t, curatortest.WithRequiredAuth("sasl", "digest"))
		connectClient(t, server.Addr(), framework.WithAuth("digest", []byte("bob:secret")))
	})
}

// A password that changes, and a server that is away for longer than the session, cost what a reconnect costs.
func TestLoginsUnderLoad(t *testing.T) {
	t.Parallel()
	server := newSASLServer(t, curatortest.WithRequiredAuth("sasl"))
	proxy := proxyTo(t, server.Addr())
	var password atomic.Pointer[string]
	good, bad := "secret", "wrong"
	password.Store(&good)
	m := digest.NewFunc(func(context.Context) (string, string, error) { return "bob", *password.Load(), nil })
	ctx := testenv.Context(t)
	client := connectClient(t, proxy.Addr(), framework.WithSASL(m))
	recorded := record(client)
	_, err := client.Create().WithACL(zklib.ACL{Perms: zklib.PermAll, Scheme: "auth"}).ForPath(ctx, "/n", nil)
	must(t, err)
	load, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for range 20 {
		wg.Go(func() {
			for load.Err() == nil {
				if _, err := client.SetData().ForPath(load, "/n", []byte("x")); err != nil && load.Err() == nil {
					t.Errorf("under load: %v", err)
				}
			}
		})
	}
	for range 5 {
		proxy.Faults().CutAll()
		recorded.await(t, suspended, reconnected)
	}
	stop()
	wg.Wait()
	password.Store(&bad)
	proxy.Faults().CutAll()
	testenv.Eventually(t, func() bool {
		_, err := client.GetData().ForPath(ctx, "/n")
		return errors.Is(err, zklib.ErrAuthFailed)
	}, "a refusal")
	password.Store(&good)
	testenv.Eventually(t, func() bool {
		_, err := client.GetData().ForPath(ctx, "/n")
		return err == nil
	}, "a login")
	must(t, server.Stop())
	must(t, server.Restart())
	must(t, client.BlockUntilConnected(ctx))
	if _, err := client.GetData().ForPath(ctx, "/n"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestHundredLoginsAtOnce(t *testing.T) {
	t.Parallel()
	server := newSASLServer(t, curatortest.WithRequiredAuth("sasl"))
	m := digest.New("bob", "secret")
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			client := newClient(t, server.Addr(), framework.WithSASL(m), framework.WithoutEnsembleTracker(),
				framework.WithSessionTimeout(time.Minute))
			must(t, client.Start())
			must(t, client.BlockUntilConnected(testenv.Context(t)))
		})
	}
	wg.Wait()
}

// Nothing that a client writes shows a secret.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	const secret = "pa55word-in-the-open"
	log := &lockedBuffer{}
	m := digest.New("bob", secret)
	opts := []framework.Option{
		framework.WithSASL(m), framework.WithAuth("digest", []byte("bob:"+secret)),
		framework.WithLogger(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
	}
	client := newClient(t, testenv.ConnectString(t), opts...)
	start(t, client)
	err := client.BlockUntilConnected(testenv.Context(t))
	if !errors.Is(err, zklib.ErrAuthFailed) { // the server has no SASL
		t.Errorf("the error is %v", err)
	}
	_, failed := client.GetData().ForPath(testenv.Context(t), "/")
	closeClient(t, client)
	file := filepath.Join(t.TempDir(), "dump")
	dump, err := os.Create(file)
	must(t, err)
	for _, v := range []any{m, *m, opts, client, *client, err, failed} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			_, _ = fmt.Fprintf(dump, verb+"\n", v)
		}
	}
	must(t, dump.Close())
	text, err := os.ReadFile(file)
	must(t, err)
	for what, text := range map[string]string{"the log": log.String(), "what is printed": string(text)} {
		if strings.Contains(text, secret) || len(text) == 0 {
			t.Errorf("%s has %d bytes, with the secret: %v", what, len(text), strings.Contains(text, secret))
		}
	}
}
