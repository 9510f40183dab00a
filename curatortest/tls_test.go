package curatortest_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
)

// newPair returns a certificate for the loopback interface that signs itself, and its pool.
func newPair(tb testing.TB, name string) (tls.Certificate, *x509.CertPool) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"x"}},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(tb, err)
	cert, err := x509.ParseCertificate(der)
	must(tb, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// secure is a server with TLS and the config of a client.
type secure struct {
	*curatortest.Server
	client *tls.Config
}

func newSecure(tb testing.TB, auth tls.ClientAuthType, opts ...curatortest.ServerOption) secure {
	tb.Helper()
	server, roots := newPair(tb, "server")
	client, clients := newPair(tb, "me")
	config := &tls.Config{
		Certificates: []tls.Certificate{server}, ClientAuth: auth, ClientCAs: clients, MinVersion: tls.VersionTLS12,
	}
	s := curatortest.NewServerT(tb, append(opts, curatortest.WithTLS(config))...)
	config.Certificates = nil // the caller may use it for something else
	return secure{s, &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{client}, MinVersion: tls.VersionTLS12,
	}}
}

func (s secure) dial(tb testing.TB) *frames {
	tb.Helper()
	conn, err := tls.Dial("tcp", s.Addr(), s.client)
	return newFrames(tb, conn, err)
}

func TestServerWithTLS(t *testing.T) {
	t.Parallel()
	s := newSecure(t, tls.RequireAndVerifyClientCert, curatortest.WithRequiredAuth("x509"))
	if got := s.dial(t).whoAmI(); got != "ip:127.0.0.1 x509:CN=me,O=x" {
		t.Error(got)
	}
	conf, err := s.FourLetterWord(t.Context(), "conf")
	_, port, _ := strings.Cut(s.Addr(), ":")
	if !strings.Contains(conf, "clientPort=-1\nsecureClientPort="+port+"\n") {
		t.Errorf("%s, error %v", conf, err)
	}
	must(t, s.Restart())
	client := connect(t, s.ConnectString(), framework.WithTLS(s.client))
	if _, err := client.Create().ForPath(t.Context(), "/n", nil); err != nil {
		t.Error(err)
	}
	inMemory := dialServer(t, s.Server)
	if code, _ := inMemory.ask(jute.Request{Op: jute.OpWhoAmI}); code != jute.CodeSessionClosedRequireSASL {
		t.Error(code)
	}
}

func TestServerWithTLSAndClientsWithoutIdentity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		auth         tls.ClientAuthType
		certificates bool
		want         string
	}{
		{tls.NoClientCert, true, "ip:127.0.0.1"},
		{tls.RequireAnyClientCert, true, "ip:127.0.0.1"}, // nobody has verified it
		{tls.VerifyClientCertIfGiven, false, "ip:127.0.0.1"},
		{tls.VerifyClientCertIfGiven, true, "ip:127.0.0.1 x509:CN=me,O=x"},
	} {
		s := newSecure(t, tt.auth)
		if !tt.certificates {
			s.client.Certificates = nil
		}
		if got := s.dial(t).whoAmI(); got != tt.want {
			t.Errorf("%v: %s", tt.auth, got)
		}
	}
}

func TestServerWithTLSTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newSecure(t, tls.RequireAndVerifyClientCert)
	stranger, _ := newPair(t, "stranger")
	for name, certificate := range map[string]*tls.Certificate{
		"certificate required": {}, "unknown certificate authority": &stranger,
	} {
		config := s.client.Clone()
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
		config.ServerName = "127.0.0.1"
		raw, err := net.Dial("tcp", s.Addr())
		must(t, err)
		conn := tls.Client(raw, config)
		must(t, conn.Handshake()) // TLS 1.3: the client is done before the server
		must(t, conn.SetDeadline(time.Now().Add(limit)))
		conn.Write(make([]byte, 1<<10)) //nolint:errcheck // the server may have refused the client
		if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		for range 3 { // a client that writes before it reads must not find the connection reset
			_, err := raw.Write([]byte("x"))
			must(t, err)
		}
		conn.Close() //nolint:errcheck // not what is tested
	}
}

func TestServerWithTLSEndsConnections(t *testing.T) {
	t.Parallel()
	s := newSecure(t, tls.RequireAndVerifyClientCert)
	for name, end := range map[string]func(f *frames){
		"the session": func(f *frames) {
			code, _ := f.ask(jute.Request{Op: jute.OpCloseSession})
			must(t, code.Err())
		},
		"a fault": func(*frames) { s.Faults().CutAll() },
	} {
		f := s.dial(t)
		end(f)
		if _, err := f.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain, err := net.Dial("tcp", s.Addr()) // never shakes hands
	must(t, err)
	testenv.Eventually(t, func() bool { return s.Faults().Connections() == 1 }, "it is accepted")
	must(t, s.Stop())
	if _, err := plain.Read(make([]byte, 1)); err == nil {
		t.Error("the connection has not ended")
	}
	must(t, plain.Close())
}

func TestRulesSeeRequestsByTLS(t *testing.T) {
	t.Parallel()
	s := newSecure(t, tls.RequireAndVerifyClientCert)
	cut := s.Faults().Add(curatortest.Rule{Ops: []string{"whoAmI"}, Count: 1, Action: curatortest.CutBefore})
	f := s.dial(t)
	f.send(jute.AppendRequestHeader(nil, jute.RequestHeader{Xid: 1, Op: jute.OpWhoAmI}))
	must(t, cut.Wait(t.Context()))
	if _, err := f.Read(make([]byte, 1)); err == nil {
		t.Error("the connection has not ended")
	}
}

func TestServerWithWrongTLS(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]curatortest.ServerOption{
		"no config": {curatortest.WithTLS(nil)},
		"no port":   {curatortest.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12}), curatortest.WithoutPort()},
		"no TLS":    {curatortest.WithRequiredAuth("x509")},
	} {
		if server, err := curatortest.NewServer(opts...); err == nil {
			t.Errorf("%s: no error", name)
			must(t, server.Close())
		}
	}
}

// beforeWrite is a connection that calls a function before its first bytes are sent.
type beforeWrite struct {
	net.Conn
	once sync.Once
	do   func()
}

func (c *beforeWrite) Write(b []byte) (int, error) {
	c.once.Do(c.do)
	return c.Conn.Write(b)
}

func TestFaultsDuringTheHandshakeOfTLS(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		begin func(*curatortest.Faults) (end func())
		seen  func(*curatortest.Faults) bool
		fails bool
	}{
		"freeze": {(*curatortest.Faults).Freeze, nil, false},
		"black hole to the client": {
			func(f *curatortest.Faults) func() { return f.BlackHole(curatortest.ToClient) },
			func(f *curatortest.Faults) bool { return f.Lost() == 1 }, true,
		},
		"black hole to the server": {
			func(f *curatortest.Faults) func() { return f.BlackHole(curatortest.ToServer) },
			func(f *curatortest.Faults) bool { return f.Lost() == 1 }, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSecure(t, tls.RequireAndVerifyClientCert)
			conn, err := net.Dial("tcp", s.Addr())
			must(t, err)
			defer conn.Close() //nolint:errcheck // the server may have closed it

			testenv.Eventually(t, func() bool { return s.Faults().Connections() == 1 }, "it is accepted") // and reads
			var end func()
			begun := make(chan struct{})
			client := tls.Client(&beforeWrite{Conn: conn, do: func() {
				end = tt.begin(s.Faults())
				close(begun)
			}}, s.clientFor("127.0.0.1"))
			done := make(chan error, 1)
			go func() { done <- client.Handshake() }()
			<-begun
			if tt.seen != nil {
				testenv.Eventually(t, func() bool { return tt.seen(s.Faults()) }, "the bytes are lost")
			}
			select {
			case err := <-done:
				t.Errorf("during the fault: %v", err)
				end()
				return
			case <-time.After(20 * time.Millisecond): // a handshake takes less on most machines
			}
			end()
			if err := <-done; (err != nil) != tt.fails {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

// clientFor returns the config of a client for the name of the server.
func (s secure) clientFor(name string) *tls.Config {
	config := s.client.Clone()
	config.ServerName = name
	return config
}
