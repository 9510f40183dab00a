package docs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"
)

// issued returns a certificate of a server with alternative names and a signature algorithm, and the pool with its
// issuer.
func issued(t *testing.T, algorithm x509.SignatureAlgorithm, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	authority, roots := selfSigned(t)
	issuer, err := x509.ParseCertificate(authority.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "zk1"}, DNSNames: names,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, SignatureAlgorithm: algorithm,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// selfSigned returns a certificate of a server, with a common name and the alternative names.
func selfSigned(t *testing.T, names ...string) (cert tls.Certificate, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "zk1"}, DNSNames: names,
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// handshake returns what a client with conf says to a server with cert.
func handshake(t *testing.T, cert tls.Certificate, conf *tls.Config) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // not a net.Pipe, where both could write and wait for each other
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}}).HandshakeContext(t.Context())
		_ = conn.Close()
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err == nil {
		err = tls.Client(conn, conf).HandshakeContext(t.Context())
		_ = conn.Close()
	}
	_ = l.Close()
	<-served
	return err
}

func TestTLSDoesNotLookAtCommonName(t *testing.T) {
	t.Parallel()
	cert, roots := selfSigned(t) // of zk1, by its common name alone
	var wrong x509.HostnameError
	err := handshake(t, cert, &tls.Config{RootCAs: roots, ServerName: "zk1"})
	if !errors.As(err, &wrong) {
		t.Errorf("a certificate without alternative names: %v", err)
	}
	cert, roots = selfSigned(t, "zk1")
	if err := handshake(t, cert, &tls.Config{RootCAs: roots, ServerName: "zk1"}); err != nil {
		t.Errorf("a certificate of the name: %v", err)
	}
}

// docs/porting/client.md names the certificates that pass in Java and not here.
func TestTLSRefusesPartialWildcardAndSHA1(t *testing.T) {
	t.Parallel()
	const host = "zk1.example.com"
	for _, tt := range []struct {
		name      string
		algorithm x509.SignatureAlgorithm
		cert      string
		ok        bool
	}{
		{"whole label", x509.ECDSAWithSHA256, "*.example.com", true},
		{"part of a label", x509.ECDSAWithSHA256, "zk*.example.com", false},
		{"SHA-1", x509.ECDSAWithSHA1, host, false},
	} {
		cert, roots := issued(t, tt.algorithm, tt.cert)
		if err := handshake(t, cert, &tls.Config{RootCAs: roots, ServerName: host}); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
