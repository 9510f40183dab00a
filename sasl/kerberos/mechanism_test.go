package kerberos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/sasl"
)

// start starts a login, which the server then accepts.
func start(t *testing.T, m *Mechanism, host string) *exchange {
	t.Helper()
	e, err := m.Start(testenv.Context(t), host)
	if err != nil {
		t.Fatal(err)
	}
	return e.(*exchange)
}

func startFails(t *testing.T, m *Mechanism, final bool, parts ...string) {
	t.Helper()
	e, err := m.Start(testenv.Context(t), "localhost")
	if e != nil || err == nil || errors.Is(err, zk.ErrAuthFailed) != final {
		t.Fatalf("%v, %v; want an error that is final: %v", e, err, final)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error %q has no %q", err, part)
		}
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]func(opts ...Option) (*Mechanism, error){
		"password": func(opts ...Option) (*Mechanism, error) { return FromPassword("alice", "secret", opts...) },
		"keytab": func(opts ...Option) (*Mechanism, error) {
			return FromKeytab(write(t, "keytab", keytabOf(t, map[uint8]string{1: "secret"})), "alice@EXAMPLE.TEST", opts...)
		},
		"old and new keys": func(opts ...Option) (*Mechanism, error) {
			b := keytabOf(t, map[uint8]string{1: "a", 3: "secret", 2: "b"})
			b = append(b, 0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0) // a hole
			return FromKeytab(write(t, "keytab", b), "alice@EXAMPLE.TEST", opts...)
		},
	} {
		for _, preAuth := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " ", preAuth), func(t *testing.T) {
				t.Parallel()
				k := newFakeKDC()
				k.noPreAuth = !preAuth
				if name == "old and new keys" {
					k.version = 3
				}
				m := k.use(m(testConfig(t)))
				for range 3 {
					e := start(t, m, "localhost")
					if e.client.String() != alice || e.server.String() != "zookeeper/localhost@EXAMPLE.TEST" {
						t.Errorf("%s at %s", e.client, e.server)
					}
				}
				if got := k.counts(); got != [2]int{1, 1} {
					t.Errorf("asked %v times, want once each", got)
				}
			})
		}
	}
}

// A ticket that nobody has answered to may be for a key that the server has no more.
func TestTicketWithoutAnswerIsReplaced(t *testing.T) {
	t.Parallel()
	k := newFakeKDC()
	m := k.use(FromPassword(alice, "secret", testConfig(t)))
	e := start(t, m, "localhost")
	next(t, e, nil)
	start(t, m, "localhost")
	if got := k.counts(); got != [2]int{1, 2} {
		t.Errorf("asked %v times", got)
	}
	e = start(t, m, "localhost")
	a := newAcceptor(t, e, next(t, e, nil))
	next(t, e, a.offer(t, []byte{1, 1, 0, 0}, a.key(), sentByAcceptor, 0))
	start(t, m, "localhost")
	if got := k.counts(); got != [2]int{1, 2} {
		t.Errorf("asked %v times after an answer", got)
	}
}

func TestTicketsAreReplacedLateInTheirLife(t *testing.T) {
	t.Parallel()
	k := newFakeKDC()
	m := k.use(FromPassword(alice, "secret", testConfig(t)))
	start(t, m, "localhost")
	for _, tt := range []struct {
		after time.Duration
		away  bool
		want  [2]int
	}{
		{7 * time.Hour, false, [2]int{1, 1}},
		{2 * time.Hour, true, [2]int{1, 1}}, // the old one still does
		{time.Minute, false, [2]int{2, 2}},
		{20 * time.Hour, false, [2]int{3, 3}},
	} {
		k.set(func() { k.now, k.away = k.now.Add(tt.after), tt.away })
		start(t, m, "localhost")
		if got := k.counts(); got != tt.want {
			t.Errorf("after %v: asked %v times, want %v", tt.after, got, tt.want)
		}
	}
	k.set(func() { k.now, k.away = k.now.Add(20*time.Hour), true })
	startFails(t, m, false, alice, "no KDC answers")
	k.set(func() { k.away = false })
	start(t, m, "localhost")
}

// A KDC that does not answer takes no more than a part of the time of a login that can do without it.
func TestKDCThatHangs(t *testing.T) {
	t.Parallel()
	conf := testConfig(t)
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKDC()
		m := k.use(FromPassword(alice, "secret", conf))
		start(t, m, "localhost")
		k.set(func() { k.now = k.now.Add(9 * time.Hour) })
		m.state.ask = func(ctx context.Context, _ *config, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("%w: %w", errNoAnswer, ctx.Err())
		}
		for _, tt := range []struct{ later, limit, want time.Duration }{
			{0, time.Minute, kdcTimeout}, {time.Second, time.Minute, 0}, {quietTime, 6 * time.Second, 2 * time.Second},
		} {
			k.set(func() { k.now = k.now.Add(tt.later) })
			ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
			began := time.Now()
			e, err := m.Start(ctx, "localhost")
			if took := time.Since(began); e == nil || err != nil || took != tt.want {
				t.Errorf("after %v, limit %v: %v after %v, want a login after %v", tt.later, tt.limit, err, took, tt.want)
			}
			cancel()
		}
		k.set(func() { k.now, m.state.ask = k.now.Add(quietTime), k.ask })
		start(t, m, "localhost")
		if got := k.counts(); got != [2]int{2, 2} {
			t.Errorf("asked %v times", got)
		}
	})
}

func TestKDCForgetsTicket(t *testing.T) {
	t.Parallel()
	k := newFakeKDC()
	m := k.use(FromPassword(alice, "secret", testConfig(t)))
	k.services = append(k.services, "zookeeper/other@EXAMPLE.TEST")
	start(t, m, "localhost")
	k.set(func() { k.refuse["TGS"] = errorcode.KRB_AP_ERR_MODIFIED })
	start(t, m, "other")
	if got := k.counts(); got != [2]int{2, 2} {
		t.Errorf("asked %v times", got)
	}
}

func TestKeytabIsReplaced(t *testing.T) {
	t.Parallel()
	k := newFakeKDC()
	file := write(t, "keytab", keytabOf(t, map[uint8]string{1: "secret"}))
	m := k.use(FromKeytab(file, alice, testConfig(t)))
	put := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start(t, m, "localhost")
	k.set(func() { k.passwords[alice], k.version = "new", 2 })
	put(keytabOf(t, map[uint8]string{2: "new"}))
	start(t, m, "localhost")
	if got := k.counts(); got != [2]int{2, 2} {
		t.Errorf("asked %v times", got)
	}
	put([]byte{5, 2, 0}) // somebody is writing it
	start(t, m, "localhost")
	k.set(func() { k.now = k.now.Add(20 * time.Hour) })
	startFails(t, m, true, alice, file, "being written")
	put(keytabOf(t, map[uint8]string{1: "secret"}))
	startFails(t, m, true, alice, "another key than "+file)
	put(keytabOf(t, map[uint8]string{1: "secret", 2: "new"}))
	start(t, m, "localhost")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	start(t, m, "localhost")
	k.set(func() { k.now = k.now.Add(20 * time.Hour) })
	startFails(t, m, true, alice, "no key of a keytab", "no such file")
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(k *fakeKDC)
		final  bool
		wrong  string
	}{
		"wrong password": {
			change: func(k *fakeKDC) { k.passwords[alice] = "other" },
			final:  true, wrong: "password is wrong",
		},
		"wrong password, without a proof": {
			change: func(k *fakeKDC) { k.passwords[alice], k.noPreAuth = "other", true },
			final:  true, wrong: "password is wrong",
		},
		"unknown client": {
			change: func(k *fakeKDC) { clear(k.passwords) },
			final:  true, wrong: "does not know this principal",
		},
		"unknown server": {
			change: func(k *fakeKDC) { k.services = nil },
			final:  true, wrong: "server zookeeper/localhost@EXAMPLE.TEST",
		},
		"clock that is slow": {
			change: func(k *fakeKDC) { k.skew = -time.Hour }, final: true,
			wrong: "clock of the KDC is 1h0m0s from ours",
		},
		"clock that is fast": {
			change: func(k *fakeKDC) { k.skew = time.Hour }, final: true,
			wrong: "clock of the KDC is -1h0m0s from ours",
		},
		"clock, without a proof": {
			change: func(k *fakeKDC) { k.skew, k.noPreAuth = time.Hour, true }, final: true,
			wrong: "clock of the KDC is -1h0m0s from ours",
		},
		"away":     {change: func(k *fakeKDC) { k.away = true }, wrong: "no KDC answers"},
		"too busy": {change: func(k *fakeKDC) { k.refuse["AS"] = errorcode.KDC_ERR_SVC_UNAVAILABLE }, wrong: "refuses"},
		"expired": {
			change: func(k *fakeKDC) { k.refuse["AS"] = errorcode.KDC_ERR_KEY_EXPIRED },
			final:  true, wrong: "kpasswd",
		},
		"locked": {
			change: func(k *fakeKDC) { k.refuse["AS"] = errorcode.KDC_ERR_CLIENT_REVOKED },
			final:  true, wrong: "locked",
		},
		"no AES": {
			change: func(k *fakeKDC) { k.refuse["TGS"] = errorcode.KDC_ERR_ETYPE_NOSUPP },
			final:  true, wrong: "AES",
		},
		"other realm": {
			change: func(k *fakeKDC) { k.refuse["AS"] = errorcode.KDC_ERR_WRONG_REALM }, final: true,
			wrong: "another realm",
		},
		"policy": {change: func(k *fakeKDC) { k.refuse["TGS"] = errorcode.KDC_ERR_POLICY }, final: true, wrong: "POLICY"},
		"too many iterations": {
			change: func(k *fakeKDC) { k.iterations = []byte{0xff, 0xff, 0xff, 0xff} }, final: true,
			wrong: "too many iterations",
		},
		"2 to the 32 iterations": {
			change: func(k *fakeKDC) { k.iterations = []byte{0, 0, 0, 0} }, final: true,
			wrong: "too many iterations",
		},
		"kinds that nobody asked for": {
			change: func(k *fakeKDC) { k.kind = etypeRC4 }, final: true,
			wrong: "no encryption type in common",
		},
		"another nonce": {
			change: changed(func(p *messages.EncKDCRepPart) { p.Nonce++ }),
			final:  true, wrong: "not what was asked",
		},
		"another realm of the ticket": {
			change: changed(func(p *messages.EncKDCRepPart) { p.SRealm = "OTHER" }), final: true,
			wrong: "not what was asked",
		},
		"another name of the ticket": {change: changed(func(p *messages.EncKDCRepPart) {
			p.SName = types.NewPrincipalName(1, "zookeeper/other")
		}), final: true, wrong: "not what was asked"},
		"a short key": {
			change: changed(func(p *messages.EncKDCRepPart) { p.Key.KeyValue = p.Key.KeyValue[1:] }), final: true,
			wrong: "not what was asked",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newFakeKDC()
			tt.change(k)
			m := k.use(FromPassword(alice, "secret", testConfig(t)))
			startFails(t, m, tt.final, "Kerberos: "+alice+": ", tt.wrong)
		})
	}
}

// A reply is checked against the request, that for a password and that for a ticket.
func TestRepliesOfKDCs(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"AS", "TGS"} {
		for name, change := range map[string]func(part *messages.EncKDCRepPart, rep *messages.KDCRepFields){
			"kind of key": func(part *messages.EncKDCRepPart, _ *messages.KDCRepFields) {
				part.Key = types.EncryptionKey{KeyType: etypeRC4, KeyValue: make([]byte, 16)}
			},
			"nonce": func(part *messages.EncKDCRepPart, _ *messages.KDCRepFields) { part.Nonce++ },
			"server": func(_ *messages.EncKDCRepPart, rep *messages.KDCRepFields) {
				rep.Ticket.SName.NameString[0] = "x"
			},
			"server's realm": func(_ *messages.EncKDCRepPart, rep *messages.KDCRepFields) { rep.Ticket.Realm = "B" },
			"client":         func(_ *messages.EncKDCRepPart, rep *messages.KDCRepFields) { rep.CName = testServer.client() },
			"client's realm": func(_ *messages.EncKDCRepPart, rep *messages.KDCRepFields) { rep.CRealm = "B" },
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				k := newFakeKDC()
				k.change = func(now string, part *messages.EncKDCRepPart) {
					if now == kind {
						change(part, &messages.KDCRepFields{Ticket: fakeTicket("", types.NewPrincipalName(1, "y"))})
					}
				}
				k.rename = func(now string, rep *messages.KDCRepFields) {
					if now == kind {
						change(&messages.EncKDCRepPart{}, rep)
					}
				}
				startFails(t, k.use(FromPassword(alice, "secret", testConfig(t))), true, alice, "not what was asked for")
			})
		}
	}
}

const etypeRC4 = 23

func changed(change func(*messages.EncKDCRepPart)) func(*fakeKDC) {
	return func(k *fakeKDC) { k.change = func(_ string, p *messages.EncKDCRepPart) { change(p) } }
}

// A server in another realm is found through the KDCs on the way.
func TestOtherRealms(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		services []string
		opts     []Option
		wrong    string
	}{
		"trusted": {
			services: []string{"krbtgt/B@EXAMPLE.TEST", "zookeeper/localhost@B"},
			opts:     []Option{WithServiceRealm("B")},
		},
		"on the way": {
			services: []string{"krbtgt/A@EXAMPLE.TEST", "krbtgt/B@A", "zookeeper/localhost@B"},
			opts:     []Option{WithServiceRealm("B")},
		},
		"the KDC knows": {services: []string{"krbtgt/B@EXAMPLE.TEST", "zookeeper/localhost@B"}},
		"for ever": {
			services: []string{"krbtgt/A@EXAMPLE.TEST", "krbtgt/EXAMPLE.TEST@A"},
			opts:     []Option{WithServiceRealm("B")}, wrong: "too many realms",
		},
		"unknown": {
			services: []string{"krbtgt/B@EXAMPLE.TEST"}, opts: []Option{WithServiceRealm("B")},
			wrong: "does not know the server zookeeper/localhost@B",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newFakeKDC()
			k.services = tt.services
			m := k.use(FromPassword(alice, "secret", append(tt.opts, testConfig(t))...))
			if tt.wrong != "" {
				startFails(t, m, true, tt.wrong)
				return
			}
			start(t, m, "localhost")
			start(t, m, "localhost")
			if got := k.counts()[1]; got != len(tt.services) {
				t.Errorf("asked for %d tickets", got)
			}
		})
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	k := newFakeKDC()
	m := k.use(FromPassword(alice, "secret", testConfig(t)))
	ctx, cancel := context.WithCancel(t.Context())
	begun, end := make(chan struct{}), make(chan struct{})
	m.state.ask = func(context.Context, *config, string, []byte) ([]byte, error) {
		close(begun)
		<-end
		return nil, errNoAnswer
	}
	first := make(chan error)
	go func() {
		_, err := m.Start(ctx, "localhost")
		first <- err
	}()
	<-begun
	cancel()
	if _, err := m.Start(ctx, "localhost"); !errors.Is(err, context.Canceled) || errors.Is(err, zk.ErrAuthFailed) {
		t.Errorf("the second: %v", err)
	}
	close(end)
	if err := <-first; !errors.Is(err, errNoAnswer) {
		t.Errorf("the first: %v", err)
	}
}

func TestShowsNoSecret(t *testing.T) {
	t.Parallel()
	k := newFakeKDC()
	k.passwords[alice] = "hidden"
	m := k.use(FromPassword(alice, "hidden", testConfig(t)))
	e := start(t, m, "localhost")
	for i, v := range []any{m, *m, struct{ M *Mechanism }{m}, struct{ m Mechanism }{*m}, struct{ m *Mechanism }{m}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			got := fmt.Sprintf(verb, v)
			if strings.Contains(got, "hidden") || strings.Contains(got, "68696464656e") || strings.Contains(got, "3, 3, 3") ||
				i < 1 && got != "GSSAPI (alice@EXAMPLE.TEST, password)" {
				t.Errorf("%s of %T is %s", verb, v, got)
			}
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%x"} {
		if got := fmt.Sprintf(verb, sasl.Exchange(e)); strings.Contains(got, "3 3 3") || strings.Contains(got, "0x3, 0x3") ||
			strings.Contains(got, "030303") {
			t.Errorf("%s of the exchange is %s", verb, got)
		}
	}
}

func TestConstructors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		m     func() (*Mechanism, error)
		wrong string // part of the error
	}{
		"keytab without a file": {func() (*Mechanism, error) {
			return FromKeytab("", "alice")
		}, "keytab: an empty value"},
		"keytab without a name": {func() (*Mechanism, error) { return FromKeytab("f", "") }, `principal ""`},
		"realm that is empty":   {func() (*Mechanism, error) { return FromKeytab("f", "alice@") }, `principal "alice@"`},
		"part that is empty": {func() (*Mechanism, error) {
			return FromPassword("alice/", "p")
		}, `principal "alice/"`},
		"space": {func() (*Mechanism, error) {
			return FromPassword("al ice", "p")
		}, `principal "al ice"`},
		"cache of the kernel": {func() (*Mechanism, error) {
			return FromCache("KEYRING:persistent:1000")
		}, "FILE cache"},
		"config that is empty": {func() (*Mechanism, error) {
			return FromCache("", WithConfigFile(""))
		}, "WithConfigFile: an empty"},
		"service that is empty": {func() (*Mechanism, error) {
			return FromCache("", WithServiceName(""))
		}, "WithServiceName: an"},
		"realm of servers is empty": {func() (*Mechanism, error) {
			return FromCache("", WithServiceRealm(""))
		}, "WithServiceRealm: an"},
		"service principal": {func() (*Mechanism, error) {
			return FromCache("", WithServicePrincipal("a//b"))
		}, `"a//b"`},
		"service principal and name": {func() (*Mechanism, error) {
			return FromCache("", WithServicePrincipal("a/b"), WithServiceName("c"))
		}, "excludes"},
		"service principal and realm": {func() (*Mechanism, error) {
			return FromCache("", WithServicePrincipal("a/b@C"), WithServiceRealm("C"))
		}, "excludes"},
		"service principal and hosts": {func() (*Mechanism, error) {
			return FromCache("", WithServicePrincipal("a/b@C"), WithoutCanonicalHost())
		}, "excludes"},
		"good": {func() (*Mechanism, error) {
			return FromCache("/tmp/a:b", WithServicePrincipal("a/b"), WithServiceRealm("C"), WithMutualAuthentication())
		}, ""},
	} {
		m, err := tt.m()
		if (tt.wrong == "") != (err == nil) || (err == nil) != (m != nil) ||
			err != nil && (!strings.Contains(err.Error(), tt.wrong) || !strings.HasPrefix(err.Error(), "kerberos: ")) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

func TestFromLogin(t *testing.T) {
	t.Parallel()
	const module = "Client {\n com.sun.security.auth.module.Krb5LoginModule required\n %s;\n};\n"
	for options, want := range map[string]string{
		`useKeyTab=true keyTab="/k" principal="alice"`:                     "GSSAPI (alice, keytab /k)",
		`useKeyTab=true keyTab="/k" principal="alice" useTicketCache=true`: "GSSAPI (alice, keytab /k)",
		`useTicketCache=true`: "GSSAPI (ticket cache)",
		`useTicketCache=true ticketCache="/c" principal="alice@B"`: "GSSAPI (alice@B, ticket cache /c)",
		`useKeyTab=true principal="alice"`:                         "needs keyTab and principal",
		`useKeyTab=true keyTab="/k"`:                               "needs keyTab and principal",
		`useTicketCache=true ticketCache="KCM:0"`:                  "FILE cache",
		`doNotPrompt=true`:                                         "neither useKeyTab=true nor useTicketCache=true",
	} {
		m, err := FromLogin(readLogin(t, write(t, "jaas.conf", fmt.Appendf(nil, module, options))))
		got := fmt.Sprint(m)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", options, got, want)
		}
	}
	digest := write(t, "jaas.conf", []byte(`Client {
  org.apache.zookeeper.server.auth.DigestLoginModule required username="a" password="hidden";
};`))
	if m, err := FromLogin(readLogin(t, digest)); err == nil || !strings.Contains(err.Error(), "Krb5LoginModule") ||
		strings.Contains(err.Error(), "hidden") {
		t.Errorf("%v, %v", m, err)
	}
}

// FuzzKDC gives a client any replies of a KDC.
func FuzzKDC(f *testing.F) {
	k := newFakeKDC()
	seed := func() {
		conf := &config{ticketTypes: aesTypes, serviceTypes: aesTypes, clockSkew: time.Minute}
		r := &requester{conf: conf, client: testClient, now: k.time}
		r.ask = func(ctx context.Context, c *config, realm string, request []byte) ([]byte, error) {
			reply, err := k.ask(ctx, c, realm, request)
			f.Add(reply, reply)
			return reply, err
		}
		t, err := r.authenticate(f.Context(), passwordSecret(func() string { return "secret" }))
		if err != nil {
			f.Fatal(err)
		}
		if _, err := r.forServer(f.Context(), t, testServer); err != nil {
			f.Fatal(err)
		}
	}
	seed()
	k.noPreAuth = true
	seed()
	f.Fuzz(func(t *testing.T, first, second []byte) {
		n := 0
		r := &requester{conf: &config{ticketTypes: aesTypes, serviceTypes: aesTypes}, client: testClient, now: k.time}
		r.ask = func(context.Context, *config, string, []byte) ([]byte, error) {
			if n++; n == 1 {
				return first, nil
			}
			return second, nil
		}
		secret := keys{{1, keyOf(etypeID.AES256_CTS_HMAC_SHA1_96, 4)}} // a password takes longer
		if got, err := r.authenticate(t.Context(), secret); err == nil {
			t.Errorf("a ticket without the key: %+v", got)
		}
		granting := &ticket{Ticket: fakeTicket("EXAMPLE.TEST", testGranting.service()), key: k.session}
		n = 0
		if got, err := r.forServer(t.Context(), granting, testServer); err == nil {
			t.Errorf("a ticket for another request: %+v", got)
		}
	})
}
