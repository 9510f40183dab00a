package framework_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	return newAuthorityBelow(t, "authority", nil)
}

// newAuthorityBelow returns an authority with a name and a certificate of another one, its own if that is nil.
func newAuthorityBelow(t *testing.T, name string, above *authority) *authority {
	t.Helper()
	a := &authority{key: newKey(t), pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, NotAfter: time.Now().Add(time.Hour),
	}
	issuer, key := template, a.key
	if above != nil {
		issuer, key = above.cert, above.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, a.key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue returns a certificate for a name, which may be an IP address.
func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// terminate puts a TLS server in front of the one at addr and returns its address.
func terminate(t *testing.T, addr string, conf *tls.Config) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { must(t, l.Close()) })
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer client.Close() //nolint:errcheck // it is over
				if client.(*tls.Conn).Handshake() != nil {
					return
				}
				server, err := net.Dial("tcp", addr)
				if err != nil {
					return
				}
				wg.Go(func() {
					_, _ = io.Copy(server, client)
					_ = server.Close()
				})
				_, _ = io.Copy(client, server)
			})
		}
	})
	return l.Addr().String()
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	proxy, connect := newProxy(t)
	chroot := chrootOf(connect)
	named := func(name string) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{ours.issue(t, name)}}
	}
	onLoopback := terminate(t, proxy.Addr(), named("127.0.0.1"))
	elsewhere := terminate(t, proxy.Addr(), named("zk.example"))
	mutual := terminate(t, proxy.Addr(), &tls.Config{
		Certificates: []tls.Certificate{ours.issue(t, "127.0.0.1")},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    ours.pool,
	})
	user := ours.issue(t, "me")
	dialTo := func(addr string) framework.Option { // whatever the name
		return framework.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		})
	}
	tests := []struct {
		name    string
		connect string
		conf    *tls.Config
		opts    []framework.Option
		ok      bool
	}{
		{"address of the connect string", onLoopback, &tls.Config{RootCAs: ours.pool}, nil, true},
		{
			"name of the connect string", "zk.example:2281", &tls.Config{RootCAs: ours.pool},
			[]framework.Option{dialTo(elsewhere)},
			true,
		},
		{"another name", elsewhere, &tls.Config{RootCAs: ours.pool}, nil, false},
		{
			"another name that is expected", elsewhere,
			&tls.Config{RootCAs: ours.pool, ServerName: "zk.example"}, nil, true,
		},
		{"another authority", onLoopback, &tls.Config{RootCAs: theirs.pool}, nil, false},
		{"the authorities of the system", onLoopback, &tls.Config{}, nil, false},
		{"no verification", elsewhere, &tls.Config{InsecureSkipVerify: true}, nil, true},
		{
			"with a certificate", mutual,
			&tls.Config{RootCAs: ours.pool, Certificates: []tls.Certificate{user}}, nil, true,
		},
		{"without a certificate", mutual, &tls.Config{RootCAs: ours.pool}, nil, false},
		{"a server without TLS", proxy.Addr(), &tls.Config{RootCAs: ours.pool}, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := append([]framework.Option{
				framework.WithTLS(tt.conf),
				framework.WithConnectionTimeout(300 * time.Millisecond),
				framework.WithRetryPolicy(retry.NTimes(0, 0)),
				framework.WithMaxCloseWait(time.Minute), // a handshake may have to read the authorities of the system
			}, tt.opts...)
			if tt.ok {
				opts = append(opts, framework.WithConnectionTimeout(patience)) // a busy machine shakes hands slowly
			}
			client := newClient(t, tt.connect+chroot, opts...)
			*tt.conf = tls.Config{} // the client has its own copy
			recorded := record(client)
			start(t, client)
			_, err := client.CheckExists().ForPath(testenv.Context(t), "/")
			if !tt.ok {
				wantErr(t, "operation", err, framework.ErrConnectionLoss)
				recorded.want(t, suspended)
				recorded.end(t, client)
				return
			}
			must(t, err)
			recorded.await(t, connected)
			createEphemeral(t, client, "/mine")
			proxy.Faults().Cut(client.SessionID())
			recorded.want(t, suspended, reconnected)
			if !exists(t, client, "/mine") {
				t.Error("the session is another")
			}
			recorded.end(t, client)
		})
	}
}

// The time for the handshake of TLS is part of that for the connection.
func TestTLSSilentServerIsLeftInConnectionTimeout(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		defer proxy.Faults().AcceptSilently()()
		client := newClient(t, connect, dial, framework.WithTLS(&tls.Config{}),
			framework.WithConnectionTimeout(300*time.Millisecond), framework.WithSessionTimeout(time.Minute))
		recorded := record(client)
		took(t, soon, "the first try", func() { // a third of the session is twice that
			start(t, client)
			recorded.want(t, suspended)
		})
		took(t, soon, "Close", func() { closeClient(t, client) })
	})
}
