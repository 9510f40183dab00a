package kerberos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/kdc"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/sasl"
)

const alice = "alice@" + kdc.Realm

// newKDC starts a KDC with the principals of the tests, and returns a keytab of alice.
func newKDC(t *testing.T) (k *kdc.Server, keytab string) {
	t.Helper()
	testenv.RequireReal(t)
	k = kdc.New(t)
	k.Add("alice", "secret")
	k.Add("zookeeper/localhost", "")
	return k, k.Keytab("alice")
}

// newServer starts Apache ZooKeeper with the principal zookeeper/localhost. It serves nobody without a login.
func newServer(t *testing.T, k *kdc.Server, keytab string) *curatortest.RealServer {
	t.Helper()
	jaas := k.JAAS("Server", keytab, "zookeeper/localhost")
	server, err := curatortest.NewRealServer(
		curatortest.WithConfig("authProvider.sasl", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
		curatortest.WithConfig("sessionRequireClientSASLAuth", "true"),
		curatortest.WithSystemProperty("java.security.auth.login.config", jaas),
		curatortest.WithSystemProperty("java.security.krb5.conf", k.ConfigFile()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// must returns a mechanism that has to be right.
func must(m *Mechanism, err error) *Mechanism {
	if err != nil {
		panic(err)
	}
	return m
}

// readLogin reads the section Client of a JAAS file.
func readLogin(t *testing.T, file string) sasl.Login {
	t.Helper()
	l, err := sasl.FromJAAS(file, "")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// is checks as whom the server knows a client.
func is(t *testing.T, client *framework.Client, want string) {
	t.Helper()
	ids, err := client.WhoAmI(testenv.Context(t))
	if err != nil {
		t.Error(err)
	} else if !slices.Contains(ids, builders.Identity{Scheme: "sasl", ID: want}) {
		t.Errorf("the server knows %v, want sasl:%s", ids, want)
	}
}

// TestLogins logs in to Apache ZooKeeper.
func TestLogins(t *testing.T) {
	t.Parallel()
	k, keytab := newKDC(t)
	server := newServer(t, k, k.Keytab("zookeeper/localhost"))
	conf := WithConfigFile(k.ConfigFile())
	cache := k.Cache("alice", keytab)
	jaas := k.JAAS("Client", keytab, "alice")
	mechanisms := map[string]*Mechanism{
		"keytab":              must(FromKeytab(keytab, alice, conf)),
		"default realm":       must(FromKeytab(keytab, "alice", conf)),
		"password":            must(FromPassword(alice, "secret", conf)),
		"cache":               must(FromCache(cache, conf)),
		"cache of FILE:":      must(FromCache("FILE:"+cache, conf)),
		"JAAS file":           must(FromLogin(readLogin(t, jaas), conf)),
		"mutual":              must(FromKeytab(keytab, alice, conf, WithMutualAuthentication())),
		"service principal":   must(FromKeytab(keytab, alice, conf, WithServicePrincipal("zookeeper/localhost"))),
		"realm of the server": must(FromKeytab(keytab, alice, conf, WithServiceRealm(kdc.Realm))),
		"name of the service": must(FromKeytab(keytab, alice, conf, WithServiceName("zookeeper"))),
	}
	for _, kind := range []string{"aes256-cts", "aes128-cts", "aes256-sha2", "aes128-sha2"} {
		k.Add(kind, "secret", "-e "+kind+":normal")
		mechanisms[kind+" password"] = must(FromPassword(kind, "secret", conf))
		mechanisms[kind+" keytab"] = must(FromKeytab(k.Keytab(kind), kind, conf))
		narrow := k.WriteConfig("default_tgs_enctypes = " + kind)
		mechanisms[kind+" session"] = must(FromPassword(alice, "secret", WithConfigFile(narrow), WithMutualAuthentication()))
	}
	k.Add("eve", "secret", "-requires_preauth")
	mechanisms["without a proof"] = must(FromPassword("eve", "secret", conf))
	k.Add("bob/host", "pä ss")
	mechanisms["name of a host"] = must(FromPassword("bob/host", "pä ss", conf))
	for name, m := range mechanisms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := alice
			if m.state.principal != nil {
				want = m.state.principal.withRealm(kdc.Realm).String()
			}
			is(t, testclient.Connect(t, server.Addr(), framework.WithSASL(m)), want)
		})
	}
}

// TestRefusals has logins that fail, with a KDC and a server of others.
func TestRefusals(t *testing.T) {
	t.Parallel()
	k, keytab := newKDC(t)
	server := newServer(t, k, k.Keytab("zookeeper/localhost"))
	conf := WithConfigFile(k.ConfigFile())
	k.Add("zookeeper/other", "")
	k.Add("bob", "secret")
	old := k.Keytab("bob")
	k.Admin("cpw -pw changed bob")
	k.Add("carol", "secret", "-pwexpire yesterday")
	k.Add("dave", "secret", "-allow_tix")
	k.Add("rc4", "secret", "-e arcfour-hmac:normal")
	expired := k.Cache("alice", keytab, "-l", "1s")
	off := func(m *Mechanism, by time.Duration) *Mechanism {
		m.state.now = func() time.Time { return time.Now().Add(by) }
		return m
	}
	for name, tt := range map[string]struct {
		m    *Mechanism
		says []string
	}{
		"wrong password": {must(FromPassword(alice, "wrong", conf)), []string{alice, "the password is wrong"}},
		"old keytab": {
			must(FromKeytab(old, "bob", conf)),
			[]string{"bob@" + kdc.Realm, "another key than " + old, "ktadd"},
		},
		"keytab of another": {must(FromKeytab(old, alice, conf)), []string{
			alice, old, "no key of " + alice,
			"bob@" + kdc.Realm,
		}},
		"no keytab": {must(FromKeytab(old+"x", alice, conf)), []string{alice, old + "x: no such file"}},
		"unknown client": {
			must(FromPassword("nobody", "x", conf)),
			[]string{"nobody@" + kdc.Realm, "does not know this principal"},
		},
		"unknown server": {
			must(FromKeytab(keytab, alice, conf, WithServicePrincipal("zookeeper/nowhere"))),
			[]string{alice, "server zookeeper/nowhere@" + kdc.Realm, "WithoutCanonicalHost"},
		},
		"another host": {
			must(FromKeytab(keytab, alice, conf, WithoutCanonicalHost())),
			[]string{alice, "server zookeeper/127.0.0.1@" + kdc.Realm, "WithoutCanonicalHost"},
		},
		"another server": {
			must(FromKeytab(keytab, alice, conf, WithServicePrincipal("zookeeper/other"))),
			[]string{"refuses the first token"},
		},
		"password that has expired": {must(FromPassword("carol", "secret", conf)), []string{"carol@" + kdc.Realm, "kpasswd"}},
		"locked":                    {must(FromPassword("dave", "secret", conf)), []string{"dave@" + kdc.Realm, "locked"}},
		"ticket that has expired": {
			off(must(FromCache(expired, conf)), time.Minute),
			[]string{alice, "cache has expired at", "kinit"},
		},
		"no cache": {must(FromCache(expired+"x", conf)), []string{"kinit", expired + "x: no such file"}},
		"clock that is fast": {
			off(must(FromKeytab(keytab, alice, conf)), time.Hour),
			[]string{alice, "clock of the KDC is -"},
		},
		"clock that is slow": {
			off(must(FromKeytab(keytab, alice, conf)), -time.Hour),
			[]string{alice, "clock of the KDC is "},
		},
		"another realm": {
			must(FromKeytab(keytab, "alice@OTHER", conf)),
			[]string{"alice@OTHER", "no key of alice@OTHER"},
		},
		"realm without a KDC": {
			must(FromPassword("alice@OTHER", "secret", conf)),
			[]string{"alice@OTHER", "name its KDC in krb5.conf"},
		},
		"no configuration": {
			must(FromPassword(alice, "secret", WithConfigFile(old+".conf"))),
			[]string{alice, old + ".conf: no such file"},
		},
		"old cipher": {
			must(FromPassword("rc4", "secret", conf)),
			[]string{"rc4@" + kdc.Realm, "no encryption type in common"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := testclient.Start(t, server.Addr(), framework.WithSASL(tt.m))
			err := client.BlockUntilConnected(testenv.Context(t))
			if !errors.Is(err, zk.ErrAuthFailed) {
				t.Fatalf("the error is %v", err)
			}
			for _, part := range tt.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error %q has no %q", err, part)
				}
			}
		})
	}
}

// clock is one that can be put ahead by less than the skew that is allowed.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) put(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

// reconnecting is a client whose connections can be cut.
type reconnecting struct {
	*framework.Client
	t     *testing.T
	proxy *curatortest.Proxy
}

func newReconnecting(t *testing.T, server *curatortest.RealServer, m *Mechanism) *reconnecting {
	t.Helper()
	proxy := curatortest.NewProxyT(t, server.Addr())
	return &reconnecting{testclient.Connect(t, proxy.Addr(), framework.WithSASL(m)), t, proxy}
}

// again cuts the connection, and waits for another one.
func (r *reconnecting) again(meanwhile func()) {
	r.t.Helper()
	wait := testclient.AwaitState(testenv.Context(r.t), r.t, r.Client, framework.Reconnected)
	restore := r.proxy.Faults().RefuseConnects()
	r.proxy.Faults().CutAll()
	if meanwhile != nil {
		meanwhile()
	}
	restore()
	wait()
	is(r.t, r.Client, alice)
}

// TestTicketsOfASession has a session that outlives its tickets, its keytab, the server's key and the KDC.
func TestTicketsOfASession(t *testing.T) {
	t.Parallel()
	k, keytab := newKDC(t)
	serverKeytab := k.Keytab("zookeeper/localhost")
	server := newServer(t, k, serverKeytab)
	conf := WithConfigFile(k.ConfigFile())
	k.Admin("modprinc -maxlife 100seconds alice")
	granted := func() (as, tgs int) {
		for line := range strings.Lines(k.Log()) {
			if strings.Contains(line, "ISSUE: ") && strings.Contains(line, alice) {
				as += strings.Count(line, "AS_REQ ")
				tgs += strings.Count(line, "TGS_REQ ")
			}
		}
		return as, tgs
	}
	var c clock
	m := must(FromKeytab(keytab, alice, conf))
	m.state.now = c.now
	client := newReconnecting(t, server, m)
	as, tgs := granted()
	expect := func(step string, moreAS, moreTGS int) {
		t.Helper()
		nowAS, nowTGS := granted()
		gotAS, gotTGS := nowAS-as, nowTGS-tgs
		if gotAS < moreAS || gotTGS < moreTGS || moreAS+moreTGS == 0 && gotAS+gotTGS > 0 {
			t.Errorf("%s: the KDC has given %d and %d tickets, want %d and %d", step, gotAS, gotTGS, moreAS, moreTGS)
		}
		as, tgs = nowAS, nowTGS
	}

	k.Stop()
	client.again(nil)
	expect("the KDC is away", 0, 0)
	c.put(2 * time.Minute)
	client.again(k.Start)
	expect("the tickets have expired", 1, 1)
	c.put(0)

	k.Admin("cpw -randkey alice", "ktadd -k "+keytab+" alice")
	client.again(nil)
	expect("the keytab is another", 1, 1)

	// The server has a new key, and the client a ticket for the old one.
	k.Admin("cpw -randkey zookeeper/localhost")
	if err := os.Rename(k.Keytab("zookeeper/localhost"), serverKeytab); err != nil {
		t.Fatal(err)
	}
	client.again(func() { testclient.Must(t, server.Restart()) })
	expect("the server has another key", 0, 1)

	// A ticket of a cache is renewed late in its life, and replaced by whoever logs in.
	k.Admin("modprinc -maxrenewlife 7days alice", "modprinc -maxrenewlife 7days krbtgt/"+kdc.Realm)
	began := time.Now()
	cached := must(FromCache(k.Cache("alice", keytab, "-l", "100s", "-r", "2d"), conf))
	cached.state.now = c.now
	other := newReconnecting(t, server, cached)
	expect("cache", 1, 1)
	c.put(90*time.Second - time.Since(began))
	other.again(nil)
	expect("renewed", 0, 2)
	k.Cache("alice", keytab)
	other.again(nil)
	expect("another cache", 1, 1)
}

// TestReconnectsUnderLoad cuts connections while there are operations: each of them ends well.
func TestReconnectsUnderLoad(t *testing.T) {
	t.Parallel()
	k, keytab := newKDC(t)
	server := newServer(t, k, k.Keytab("zookeeper/localhost"))
	client := newReconnecting(t, server, must(FromKeytab(keytab, alice, WithConfigFile(k.ConfigFile()))))
	ctx := testenv.Context(t)
	_, err := client.Create().WithACL(zk.ACL{Perms: zk.PermAll, Scheme: "auth"}).ForPath(ctx, "/n", nil)
	testclient.Must(t, err)
	load, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var n atomic.Int64
	for range 20 {
		wg.Go(func() {
			for load.Err() == nil {
				if _, err := client.SetData().ForPath(load, "/n", []byte("x")); err == nil {
					n.Add(1)
				} else if load.Err() == nil {
					t.Errorf("under load: %v", err)
				}
			}
		})
	}
	for range 5 {
		before := n.Load()
		client.again(nil)
		testenv.Eventually(t, func() bool { return n.Load() > before+20 }, "more operations")
	}
}

// TestKDCThatComesLate has clients that begin while the KDC is away.
func TestKDCThatComesLate(t *testing.T) {
	t.Parallel()
	k, keytab := newKDC(t)
	server := newServer(t, k, k.Keytab("zookeeper/localhost"))
	k.Stop()
	m := must(FromKeytab(keytab, alice, WithConfigFile(k.ConfigFile())))
	if _, err := m.Start(testenv.Context(t), "localhost"); err == nil || errors.Is(err, zk.ErrAuthFailed) ||
		!strings.Contains(err.Error(), k.Addr()) || !strings.Contains(err.Error(), alice) {
		t.Errorf("the KDC is away: %v", err)
	}
	client := testclient.Start(t, server.Addr(), framework.WithSASL(m))
	ctx, cancel := context.WithTimeout(testenv.Context(t), 300*time.Millisecond)
	defer cancel()
	if err := client.BlockUntilConnected(ctx); err == nil || errors.Is(err, zk.ErrAuthFailed) {
		t.Errorf("the client is connected, or gives up: %v", err)
	}
	k.Start()
	testclient.Must(t, client.BlockUntilConnected(testenv.Context(t)))
	is(t, client, alice)
}

// TestManyClients has 100 clients at once, and cuts their connections.
func TestManyClients(t *testing.T) {
	t.Parallel()
	k, keytab := newKDC(t)
	server := newServer(t, k, k.Keytab("zookeeper/localhost"))
	proxy := curatortest.NewProxyT(t, server.Addr())
	conf := WithConfigFile(k.ConfigFile())
	shared := must(FromKeytab(keytab, alice, conf))
	began := time.Now()
	var wg sync.WaitGroup
	clients := make([]*framework.Client, 100)
	for i := range clients {
		m := shared
		if i%2 == 0 {
			m = must(FromPassword(alice, "secret", conf))
		}
		clients[i] = testclient.Start(t, proxy.Addr(), framework.WithSASL(m))
	}
	all := func() {
		for _, client := range clients {
			wg.Go(func() {
				if err := client.BlockUntilConnected(testenv.Context(t)); err != nil {
					t.Error(err)
					return
				}
				is(t, client, alice)
			})
		}
		wg.Wait()
	}
	all()
	t.Logf("%d clients after %v", len(clients), time.Since(began))
	proxy.Faults().CutAll()
	all()
	t.Logf("and again after %v", time.Since(began))
}

// TestRealmsOfRealKDC gets tickets for servers in a realm that trusts that of the client.
func TestRealmsOfRealKDC(t *testing.T) {
	t.Parallel()
	k, keytab := newKDC(t)
	k.AddRealm("OTHER.TEST", "zookeeper/there", "zookeeper/localhost")
	conf := WithConfigFile(k.ConfigFile())
	mapped := write(t, "krb5.conf", []byte("include "+k.ConfigFile()+"\n[domain_realm]\nthere = OTHER.TEST\n"))
	for name, tt := range map[string]struct {
		host string
		opts []Option
		want string
	}{
		"of the client": {"localhost", []Option{conf}, "zookeeper/localhost@" + kdc.Realm},
		"by an option":  {"localhost", []Option{conf, WithServiceRealm("OTHER.TEST")}, "zookeeper/localhost@OTHER.TEST"},
		"by its principal": {
			"x",
			[]Option{conf, WithServicePrincipal("zookeeper/there@OTHER.TEST")},
			"zookeeper/there@OTHER.TEST",
		},
		"by [domain_realm]": {
			"there",
			[]Option{WithConfigFile(mapped), WithoutCanonicalHost()},
			"zookeeper/there@OTHER.TEST",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, must(FromKeytab(keytab, alice, tt.opts...)), tt.host)
			if e.server.String() != tt.want || e.ticket.Realm != e.server.realm || !e.ticket.SName.Equal(e.server.service()) {
				t.Errorf("the ticket is for %s in %s, want %s", e.server, e.ticket.Realm, tt.want)
			}
		})
	}
}

// TestPasswordIsNotWritten searches all that a client writes while it logs in and fails to.
func TestPasswordIsNotWritten(t *testing.T) {
	t.Parallel()
	k, _ := newKDC(t)
	server := newServer(t, k, k.Keytab("zookeeper/localhost"))
	const password, wrong = "correct-horse", "wrong-horse"
	k.Add("bob", password)
	conf := WithConfigFile(k.ConfigFile())
	var log lockedBuffer
	handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})
	for _, secret := range []string{password, wrong} {
		m := must(FromPassword("bob", secret, conf))
		client := testclient.Start(t, server.Addr(), framework.WithSASL(m), framework.WithLogger(slog.New(handler)))
		err := client.BlockUntilConnected(testenv.Context(t))
		if (err != nil) != (secret == wrong) {
			t.Errorf("%s: %v", secret, err)
		}
		fmt.Fprintf(&log, "%v %+v %#v %v %#v", m, m, m, err, err)
	}
	if text := log.String(); strings.Contains(text, "horse") || !strings.Contains(text, "bob@"+kdc.Realm) {
		t.Errorf("it writes\n%s", text)
	}
}

// lockedBuffer is a log.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestCreatorOnly has nodes that only alice may use.
func TestCreatorOnly(t *testing.T) {
	t.Parallel()
	k, keytab := newKDC(t)
	server := newServer(t, k, k.Keytab("zookeeper/localhost"))
	conf := WithConfigFile(k.ConfigFile())
	k.Add("bob", "secret")
	ctx := testenv.Context(t)
	client := testclient.Connect(t, server.Addr(), framework.WithSASL(must(FromKeytab(keytab, alice, conf))),
		framework.WithACLProvider(builders.FixedACL(zk.AuthACL(zk.PermAll))))
	if _, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/a/b", []byte("x")); err != nil {
		t.Fatal(err)
	}
	acl, err := client.GetACL().ForPath(ctx, "/a")
	if want := []zk.ACL{{Perms: zk.PermAll, Scheme: "sasl", ID: alice}}; !slices.Equal(acl, want) {
		t.Errorf("the ACL is %v, want %v, %v", acl, want, err)
	}
	bob := testclient.Connect(t, server.Addr(), framework.WithSASL(must(FromPassword("bob", "secret", conf))))
	if _, err := bob.GetData().ForPath(ctx, "/a/b"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("bob reads it: %v", err)
	}
	nobody := testclient.Start(t, server.Addr())
	if err := nobody.BlockUntilConnected(ctx); !errors.Is(err, zk.ErrAuthFailed) {
		t.Errorf("nobody connects: %v", err)
	}
}
