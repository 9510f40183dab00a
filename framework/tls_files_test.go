package framework_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// pemFiles are the files of a client in a directory of their own.
type pemFiles struct {
	t             *testing.T
	cert, key, ca string
}

func newPEMFiles(t *testing.T) pemFiles {
	dir := t.TempDir()
	return pemFiles{t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")}
}

func pemOf(blocks ...*pem.Block) []byte {
	var text bytes.Buffer
	for _, b := range blocks {
		_ = pem.Encode(&text, b) // into memory
	}
	return text.Bytes()
}

func certPEM(certs ...*x509.Certificate) []byte {
	var blocks []*pem.Block
	for _, c := range certs {
		blocks = append(blocks, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	return pemOf(blocks...)
}

func keyPEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return pemOf(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// write writes a file as a program does that cares for its readers: under another name first.
func write(t *testing.T, name string, text []byte) {
	t.Helper()
	must(t, os.WriteFile(name+".new", text, 0o600))
	must(t, os.Rename(name+".new", name))
}

func (f pemFiles) setPair(pair tls.Certificate) { f.setCert(pair); f.setKey(pair) }

func (f pemFiles) setCert(pair tls.Certificate) {
	f.t.Helper()
	write(f.t, f.cert, pemOf(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
}

func (f pemFiles) setKey(pair tls.Certificate) {
	f.t.Helper()
	write(f.t, f.key, keyPEM(f.t, pair.PrivateKey))
}

func (f pemFiles) setCA(authorities ...*authority) {
	f.t.Helper()
	var certs []*x509.Certificate
	for _, a := range authorities {
		certs = append(certs, a.cert)
	}
	write(f.t, f.ca, certPEM(certs...))
}

// revoke writes a list of the certificates that an authority has revoked.
func (a *authority) revoke(t *testing.T, name string, inPEM bool, until time.Time, revoked ...tls.Certificate) {
	t.Helper()
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: until.Add(-48 * time.Hour), NextUpdate: until}
	for _, pair := range revoked {
		cert, err := x509.ParseCertificate(pair.Certificate[0])
		must(t, err)
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: time.Now()})
	}
	if text := a.sign(t, template); inPEM {
		write(t, name, pemOf(&pem.Block{Type: "X509 CRL", Bytes: text}))
	} else {
		write(t, name, text)
	}
}

// sign returns a revocation list of an authority.
func (a *authority) sign(t *testing.T, template *x509.RevocationList) []byte {
	t.Helper()
	text, err := x509.CreateRevocationList(rand.Reader, template, a.cert, a.key)
	must(t, err)
	return text
}

func TestTLSFromFiles(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	proxy, connect := newProxy(t)
	chroot := chrootOf(connect)
	serverPair := ours.issue(t, "127.0.0.1")
	onLoopback := terminate(t, proxy.Addr(), &tls.Config{Certificates: []tls.Certificate{serverPair}})
	elsewhere := terminate(t, proxy.Addr(), &tls.Config{Certificates: []tls.Certificate{ours.issue(t, "zk.example")}})
	mutual := terminate(t, proxy.Addr(), &tls.Config{
		Certificates: []tls.Certificate{serverPair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours.pool,
	})
	files := newPEMFiles(t)
	files.setPair(ours.issue(t, "me"))
	files.setCA(ours)
	foreign := newPEMFiles(t)
	foreign.setCA(theirs)
	dir := t.TempDir()
	trust := func(opts ...framework.TLSOption) framework.Option {
		return framework.WithTLSFromFiles("", "", files.ca, opts...)
	}
	tomorrow, yesterday := time.Now().Add(24*time.Hour), time.Now().Add(-24*time.Hour)
	list := func(name string) string { return filepath.Join(dir, name) }
	ours.revoke(t, list("none"), true, tomorrow)
	ours.revoke(t, list("none.der"), false, tomorrow)
	ours.revoke(t, list("revoked"), true, tomorrow, serverPair)
	ours.revoke(t, list("outdated"), true, yesterday)
	ours.revoke(t, list("old"), true, yesterday, serverPair)
	theirs.revoke(t, list("theirs"), true, tomorrow)
	write(t, list("partial"), ours.sign(t, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: yesterday, NextUpdate: tomorrow, ExtraExtensions: []pkix.Extension{{
			Id: []int{2, 5, 29, 28}, Critical: true, Value: []byte{0x30, 0x03, 0x82, 0x01, 0xff}, // authorities alone
		}},
	}))
	lists := func(names ...string) framework.TLSOption {
		for i, name := range names {
			names[i] = list(name)
		}
		return framework.WithRevocationLists(names...)
	}
	name, anyName := framework.WithServerName("zk.example"), framework.WithoutHostnameVerification()
	for _, tt := range []struct {
		name, addr string
		option     framework.Option
		wrong      string
	}{
		{"authority", onLoopback, trust(), ""},
		{"certificate", mutual, framework.WithTLSFromFiles(files.cert, files.key, files.ca), ""},
		{"no certificate", mutual, trust(), "certificate required"},
		{"another authority", onLoopback, framework.WithTLSFromFiles("", "", foreign.ca), "unknown auth"},
		{"authorities of the system", onLoopback, framework.WithTLSFromFiles("", "", ""), "unknown auth"},
		{"another name", elsewhere, trust(), "127.0.0.1"},
		{"expected name", elsewhere, trust(name), ""},
		{"any name", elsewhere, trust(anyName), ""},
		{"another authority, any name", elsewhere, framework.WithTLSFromFiles("", "", foreign.ca, anyName), "unknown auth"},
		{"nothing revoked", onLoopback, trust(lists("theirs", "none")), ""},
		{"a list in DER", onLoopback, trust(lists("none.der")), ""},
		{"any name, nothing revoked", elsewhere, trust(anyName, lists("none")), ""},
		{"revoked", onLoopback, trust(lists("none", "revoked")), "is revoked"},
		{"any name, revoked", onLoopback, trust(anyName, lists("revoked")), "is revoked"},
		{"long revoked", onLoopback, trust(lists("none", "old")), "is revoked"},
		{"outdated list", onLoopback, trust(lists("outdated")), "no current"},
		{"list of some", onLoopback, trust(lists("partial")), "no current"},
		{"another list", onLoopback, trust(lists("theirs")), "no current"},
		{"server without TLS", proxy.Addr(), trust(), "has no TLS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			opts := []framework.Option{
				tt.option, framework.WithConnectionTimeout(20 * time.Second), framework.WithMaxCloseWait(time.Minute),
			}
			if tt.wrong == "" {
				client := newClient(t, tt.addr+chroot, opts...)
				start(t, client)
				must(t, client.BlockUntilConnected(testenv.Context(t)))
				return
			}
			client := newClient(t, tt.addr+chroot, append(opts, framework.WithRetryPolicy(retry.NTimes(0, 0)))...)
			start(t, client)
			awaitReason(t, client, tt.wrong)
		})
	}
}

// awaitReason waits until a client says why it has no connection. The first reason may be that a busy machine was slow.
func awaitReason(t *testing.T, client *framework.Client, says string) {
	t.Helper()
	testenv.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(testenv.Context(t), 10*time.Millisecond)
		defer cancel()
		err := client.BlockUntilConnected(ctx)
		return err != nil && strings.Contains(err.Error(), says)
	}, "the reason "+says)
}

func TestTLSFromFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	good, other := newPEMFiles(t), newPEMFiles(t)
	good.setPair(a.issue(t, "me"))
	good.setCA(a)
	other.setPair(a.issue(t, "other"))
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, nil)
	for _, tt := range []struct {
		name   string
		option framework.Option
		atNew  bool
		wrong  string
	}{
		{"no key", framework.WithTLSFromFiles(good.cert, "", good.ca), true, "need each other"},
		{"no certificate", framework.WithTLSFromFiles("", good.key, good.ca), true, "need each other"},
		{
			"a name and none", framework.WithTLSFromFiles("", "", good.ca, framework.WithServerName("a"),
				framework.WithoutHostnameVerification()), true, "both a server name and none",
		},
		{"missing", framework.WithTLSFromFiles(good.cert, good.key, "/none"), false, "/none"},
		{"key of another", framework.WithTLSFromFiles(good.cert, other.key, good.ca), false, "does not match"},
		{"empty authorities", framework.WithTLSFromFiles("", "", empty), false, "no certificate in it"},
		{
			"empty list", framework.WithTLSFromFiles("", "", good.ca, framework.WithRevocationLists(empty)), false, empty,
		},
		{
			"certificate as a list", framework.WithTLSFromFiles("", "", good.ca, framework.WithRevocationLists(good.cert)),
			false, "no revocation list in it",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client, err := framework.New("127.0.0.1:1", tt.option)
			if tt.atNew {
				wantErr(t, "New", err, framework.ErrBadArguments)
			} else {
				must(t, err)
				err = client.Start()
				defer client.Close() //nolint:errcheck // it has not started
			}
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("the error is %v, want %q", err, tt.wrong)
			}
		})
	}
}

// rotation is a server whose certificate and authorities change, and a client with files.
type rotation struct {
	*testing.T
	mu     sync.Mutex
	conf   *tls.Config // of the server
	seen   []*x509.Certificate
	client *framework.Client
	states states
	cut    func()
	log    *lockedBuffer
}

func newRotation(t *testing.T, files pemFiles, a *authority) *rotation {
	r := &rotation{T: t, log: &lockedBuffer{}}
	r.serve(a, a)
	proxy, connect := newProxy(t)
	addr := terminate(t, proxy.Addr(), &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.conf, nil
	}})
	r.client = newClient(t, addr+chrootOf(connect), framework.WithTLSFromFiles(files.cert, files.key, files.ca),
		framework.WithLogger(slog.New(slog.NewTextHandler(r.log, nil))), framework.WithMaxCloseWait(time.Minute),
		framework.WithSessionTimeout(time.Minute), framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
	r.states = record(r.client)
	start(t, r.client)
	r.states.want(t, connected)
	r.cut = func() { proxy.Faults().Cut(r.client.SessionID()) }
	return r
}

// serve makes the server show a certificate of one authority and trust another.
func (r *rotation) serve(shown, trusted *authority) {
	conf := &tls.Config{
		Certificates: []tls.Certificate{shown.issue(r.T, "127.0.0.1")},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: trusted.pool,
		VerifyConnection: func(s tls.ConnectionState) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.seen = append(r.seen, s.PeerCertificates[0])
			return nil
		},
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conf = conf
}

// reconnect cuts the connection, waits for the next one, and returns the name in the certificate that it shows.
func (r *rotation) reconnect() string {
	r.Helper()
	r.cut()
	r.states.want(r.T, suspended, reconnected)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[len(r.seen)-1].Subject.CommonName
}

func (r *rotation) wantName(got, want string) {
	r.Helper()
	if got != want {
		r.Errorf("the client shows %q, want %q", got, want)
	}
}

func TestTLSFilesRotate(t *testing.T) {
	t.Parallel()
	before, after := newAuthority(t), newAuthority(t)
	files := newPEMFiles(t)
	files.setPair(before.issue(t, "first"))
	files.setCA(before)
	r := newRotation(t, files, before)

	files.setCA(before, after) // a new authority beside the old one
	r.wantName(r.reconnect(), "first")
	r.serve(after, after)
	files.setPair(after.issue(t, "second"))
	r.wantName(r.reconnect(), "second")
	files.setCA(after) // without the old one
	r.wantName(r.reconnect(), "second")
	r.serve(before, after)
	r.cut()
	r.states.want(t, suspended)
	awaitReason(t, r.client, "unknown auth")
	r.serve(after, after)
	r.states.want(t, reconnected)
}

// Operations that wait for the next connection do not notice that certificate, key and authorities are others by then.
func TestTLSFilesRotateUnderLoad(t *testing.T) {
	t.Parallel()
	authorities := []*authority{newAuthority(t)}
	files := newPEMFiles(t)
	files.setPair(authorities[0].issue(t, "first"))
	files.setCA(authorities[0])
	r := newRotation(t, files, authorities[0])
	ctx := testenv.Context(t)
	_, err := r.client.Create().ForPath(ctx, "/n", nil)
	must(t, err)
	load, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var done atomic.Int64
	for range 20 {
		wg.Go(func() {
			for load.Err() == nil {
				if _, err := r.client.SetData().ForPath(ctx, "/n", []byte("x")); err != nil {
					t.Errorf("a write: %v", err)
					return
				}
				done.Add(1)
			}
		})
	}
	busy := func() {
		t.Helper()
		before := done.Load()
		testenv.Eventually(t, func() bool { return done.Load() > before+100 }, "writes")
	}
	for i := range 4 {
		old, next := authorities[i], newAuthority(t)
		authorities = append(authorities, next)
		busy()
		files.setCA(old, next) // a new authority beside the old one
		r.reconnect()
		busy()
		name := fmt.Sprintf("certificate %d", i)
		r.serve(next, next)
		files.setPair(next.issue(t, name))
		r.wantName(r.reconnect(), name)
		busy()
		files.setCA(next) // without the old one
		r.wantName(r.reconnect(), name)
	}
	stop()
	wg.Wait()
	stat, err := r.client.CheckExists().ForPath(ctx, "/n")
	must(t, err)
	if int64(stat.Version) < done.Load() {
		t.Errorf("%d writes, and version %d", done.Load(), stat.Version)
	}
}

// What is in order is used until the files are in order again.
func TestTLSFilesThatDoNotFit(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	files := newPEMFiles(t)
	files.setPair(a.issue(t, "first"))
	files.setCA(a)
	r := newRotation(t, files, a)

	second := a.issue(t, "second")
	files.setCert(second)
	for range 3 {
		r.wantName(r.reconnect(), "first")
	}
	if n := strings.Count(r.log.String(), "TLS files: those of before are used"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, r.log.String())
	}
	files.setKey(second)
	r.wantName(r.reconnect(), "second")
	must(t, os.Remove(files.ca))
	r.wantName(r.reconnect(), "second")
	if n := strings.Count(r.log.String(), "TLS files: those of before are used"); n != 2 {
		t.Errorf("logged %d times:\n%s", n, r.log.String())
	}
	files.setCA(a)
	r.wantName(r.reconnect(), "second")
}

// Kubernetes changes all files of a secret at once: they are links through one link, which it replaces.
func TestTLSFilesBehindALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(version string) pemFiles {
		must(t, os.MkdirAll(filepath.Join(dir, version), 0o700))
		return pemFiles{
			t, filepath.Join(dir, version, "tls.crt"), filepath.Join(dir, version, "tls.key"),
			filepath.Join(dir, version, "ca.crt"),
		}
	}
	link := func(version string) {
		must(t, os.Symlink(version, filepath.Join(dir, "next")))
		must(t, os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "data")))
	}
	before, after := newAuthority(t), newAuthority(t)
	one, two := at("1"), at("2")
	one.setPair(before.issue(t, "first"))
	one.setCA(before)
	two.setPair(after.issue(t, "second"))
	two.setCA(after)
	link("1")
	files := pemFiles{t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")}
	for _, name := range []string{files.cert, files.key, files.ca} {
		must(t, os.Symlink(filepath.Join("data", filepath.Base(name)), name))
	}
	r := newRotation(t, files, before)
	r.wantName(r.reconnect(), "first")
	link("2")
	r.serve(after, after)
	r.wantName(r.reconnect(), "second")
}
