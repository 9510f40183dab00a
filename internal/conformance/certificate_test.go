package conformance_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
)

// attribute is an attribute of a subject, whose value has a type of ASN.1.
type attribute struct {
	oid   string
	tag   int
	value string
}

// The types of attributes.
const (
	oidCN     = "2.5.4.3"
	oidSerial = "2.5.4.5"
	oidC      = "2.5.4.6"
	oidL      = "2.5.4.7"
	oidST     = "2.5.4.8"
	oidStreet = "2.5.4.9"
	oidO      = "2.5.4.10"
	oidOU     = "2.5.4.11"
	oidTitle  = "2.5.4.12"
	oidDC     = "0.9.2342.19200300.100.1.25"
	oidUID    = "0.9.2342.19200300.100.1.1"
	oidEmail  = "1.2.840.113549.1.9.1"
)

// subjects are names of certificates and what the servers make of them. A name is a list of sets of attributes.
var subjects = []struct {
	name [][]attribute
	want string
}{
	{[][]attribute{{{oidCN, asn1.TagUTF8String, "me"}}}, "CN=me"},
	{
		[][]attribute{
			{{oidC, asn1.TagPrintableString, "DE"}},
			{{oidST, asn1.TagUTF8String, "Bayern"}},
			{{oidL, asn1.TagUTF8String, "München"}},
			{{oidStreet, asn1.TagUTF8String, "Am Platz 1"}},
			{{oidO, asn1.TagUTF8String, "Example"}},
			{{oidOU, asn1.TagUTF8String, "Lab"}},
			{{oidCN, asn1.TagUTF8String, "zoë"}},
		}, "CN=zoë,OU=Lab,O=Example,STREET=Am Platz 1,L=München,ST=Bayern,C=DE",
	},
	{
		[][]attribute{
			{{oidDC, asn1.TagIA5String, "test"}},
			{{oidDC, asn1.TagIA5String, "example"}},
			{{oidUID, asn1.TagUTF8String, "u1"}},
		}, "UID=u1,DC=example,DC=test",
	},
	{
		[][]attribute{
			{{oidTitle, asn1.TagUTF8String, "boss"}},
			{{oidSerial, asn1.TagPrintableString, "77"}},
			{{oidEmail, asn1.TagIA5String, "a@b"}},
			{{oidCN, asn1.TagUTF8String, "me"}},
		}, "CN=me,1.2.840.113549.1.9.1=#1603614062,2.5.4.5=#13023737,2.5.4.12=#0c04626f7373",
	},
	{
		[][]attribute{
			{{oidO, asn1.TagUTF8String, "x"}, {oidCN, asn1.TagUTF8String, "me"}}, {{oidCN, asn1.TagUTF8String, "b"}},
		},
		"CN=b,O=x+CN=me",
	},
	{
		[][]attribute{{{oidCN, asn1.TagUTF8String, `a,b=c+d<e>f#g;h"i\j`}}},
		`CN=a\,b\=c\+d\<e\>f\#g\;h\"i\\j`,
	},
	{[][]attribute{{{oidCN, asn1.TagUTF8String, "  a  b "}}}, `CN=\ \ a  b\ `},
	{[][]attribute{{{oidCN, asn1.TagUTF8String, "#a"}}}, `CN=\#a`},
	{[][]attribute{{{oidCN, asn1.TagUTF8String, "a\x00b\nc\rd"}}}, "CN=a\\00b\nc\rd"},
	{[][]attribute{{{oidCN, asn1.TagUTF8String, "\ra\r"}}}, "CN=\\\ra\\\r"},
	{[][]attribute{{{oidCN, asn1.TagUTF8String, "мир"}}}, "CN=мир"},
	{[][]attribute{{{oidCN, asn1.TagT61String, "t"}}}, "CN=t"},
	{[][]attribute{{{oidCN, asn1.TagNumericString, "12"}}}, "CN=#12023132"},
	{[][]attribute{{{oidCN, asn1.TagUTF8String, ""}}}, "CN="},
}

// subjectIDs are ids of the scheme x509, and whether an ACL may have them.
var subjectIDs = []struct {
	id    string
	valid bool
}{
	{"CN=me", true},
	{"", true},
	{"CN=me,O=x", true},
	{"cn=me; o=x", true},
	{" CN = me , O = x ", true},
	{"O=x+CN=me", true},
	{"CN=", true},
	{"CN=,O=x", true},
	{"me", false},
	{"CN", false},
	{"=me", false},
	{"XY=me", false},
	{"T=boss,S=a,EMAILADDRESS=a@b,EMAIL=b,SERIALNUMBER=1,DNQ=1,SURNAME=n,GENERATION=2,IP=1", true},
	{"1.2.3=x,OID.2.5.4.3=y", true},
	{"CN=me,", false},
	{",CN=me", false},
	{"CN=me+", false},
	{`CN="a,b"`, true},
	{`CN="a,b`, false},
	{`CN="O=b`, false},
	{`CN="a"b`, false},
	{`CN=a"b`, false},
	{`CN=a\,b\=c`, true},
	{`CN=a\`, false},
	{`CN=a\b`, false},
	{`CN=a\c3\ab`, true},
	{`CN=a\zb`, false},
	{"CN=#0c026d65", true},
	{"CN=#0c0", false},
	{"CN=#", false},
	{"CN=a<b", false},
	{"CN=a=b", true},
	{"CN=a#b", true},
	{"CN=zoë", true},
}

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	a := &authority{key: newKey(tb)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue returns a certificate for a name, for both sides.
func (a *authority) issue(tb testing.TB, name [][]attribute) tls.Certificate {
	tb.Helper()
	key := newKey(tb)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), RawSubject: encodeName(tb, name),
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func encodeName(tb testing.TB, name [][]attribute) []byte {
	tb.Helper()
	type pair struct {
		Type  asn1.ObjectIdentifier
		Value asn1.RawValue
	}
	type pairSET []pair
	sets := make([]pairSET, len(name))
	for i, set := range name {
		for _, a := range set {
			var oid asn1.ObjectIdentifier
			for part := range splitNumbers(a.oid) {
				oid = append(oid, part)
			}
			sets[i] = append(sets[i], pair{oid, asn1.RawValue{Tag: a.tag, Bytes: []byte(a.value)}})
		}
	}
	der, err := asn1.Marshal(sets)
	if err != nil {
		tb.Fatal(err)
	}
	return der
}

// splitNumbers yields the numbers between the dots.
func splitNumbers(oid string) func(func(int) bool) {
	return func(yield func(int) bool) {
		n := 0
		for _, r := range oid + "." {
			if r != '.' {
				n = 10*n + int(r-'0')
				continue
			}
			if !yield(n) {
				return
			}
			n = 0
		}
	}
}

var nameMe = subjects[0].name

// TestCertificates compares what servers make of the certificates of clients.
func TestCertificates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	server := a.issue(t, [][]attribute{{{oidCN, asn1.TagUTF8String, "server"}}})
	for _, r := range releases {
		t.Run("in process "+r.name, func(t *testing.T) {
			t.Parallel()
			s := curatortest.NewServerT(t, curatortest.WithVersion(r.version), curatortest.WithTLS(&tls.Config{
				Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool(),
				MinVersion: tls.VersionTLS12,
			}))
			testCertificates(t, a, s.Addr())
		})
	}
	t.Run("real", func(t *testing.T) {
		testenv.RequireReal(t)
		t.Parallel()
		testCertificates(t, a, startSecure(t, a, server))
	})
}

// startSecure starts Apache ZooKeeper with a secure port and returns its address.
func startSecure(t *testing.T, a *authority, server tls.Certificate) string {
	t.Helper()
	store, roots := filepath.Join(t.TempDir(), "server.pem"), filepath.Join(t.TempDir(), "roots.pem")
	key, err := x509.MarshalPKCS8PrivateKey(server.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, store, &pem.Block{Type: "PRIVATE KEY", Bytes: key},
		&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate[0]})
	writePEM(t, roots, &pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	addr := freeAddr(t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	real, err := curatortest.NewRealServer(
		curatortest.WithConfig("secureClientPort", port),
		curatortest.WithConfig("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory"),
		curatortest.WithConfig("ssl.keyStore.location", store), curatortest.WithConfig("ssl.keyStore.type", "PEM"),
		curatortest.WithConfig("ssl.trustStore.location", roots), curatortest.WithConfig("ssl.trustStore.type", "PEM"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := real.Close(); err != nil {
			t.Error(err)
		}
	})
	testenv.Eventually(t, func() bool { // the server opens its secure port behind the other one
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			err = nc.Close()
		}
		return err == nil
	}, "the secure port")
	return addr
}

// freeAddr returns an address that neither a connection nor a server of another test gets: it is below the ephemeral
// ports, and held as curatortest holds its own.
func freeAddr(t *testing.T) string {
	t.Helper()
	for {
		server, err := curatortest.NewServer()
		if err != nil {
			t.Fatal(err)
		}
		addr := server.Addr()
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		held, err := net.ListenPacket("udp", addr)
		if err == nil {
			t.Cleanup(func() { held.Close() }) //nolint:errcheck // nothing was sent
			return addr
		}
		if !errors.Is(err, syscall.EADDRINUSE) { // else another process has got it meanwhile
			t.Fatal(err)
		}
	}
}

func writePEM(t *testing.T, file string, blocks ...*pem.Block) {
	t.Helper()
	var text []byte
	for _, b := range blocks {
		text = append(text, pem.EncodeToMemory(b)...)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func testCertificates(t *testing.T, a *authority, addr string) {
	t.Helper()
	for _, tt := range subjects {
		t.Run(tt.want, func(t *testing.T) {
			c := secureClient(t, a, addr, tt.name)
			reply := c.must(t, jute.Request{Op: jute.OpWhoAmI})
			want := []zk.ACL{{Scheme: "ip", ID: "127.0.0.1"}, {Scheme: "x509", ID: tt.want}}
			if diff := cmp.Diff(want, identities(reply.ACL)); diff != "" {
				t.Errorf("whoAmI (-want +got):\n%s", diff)
			}
			path := "/" + fmt.Sprintf("%x", tt.want)
			c.must(t, jute.Request{Op: jute.OpCreate, Path: path, ACL: creatorOnly})
			acl := c.must(t, jute.Request{Op: jute.OpGetACL, Path: path}).ACL
			if diff := cmp.Diff([]zk.ACL{{Perms: zk.PermAll, Scheme: "x509", ID: tt.want}}, acl); diff != "" {
				t.Errorf("ACL (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("permissions", func(t *testing.T) {
		bob := [][]attribute{{{oidCN, asn1.TagUTF8String, "bob"}}}
		secureClient(t, a, addr, bob).must(t, jute.Request{Op: jute.OpCreate, Path: "/bob", ACL: creatorOnly})
		for code, name := range map[jute.Code][][]attribute{jute.CodeOK: bob, jute.CodeNoAuth: nameMe} {
			got, err := secureClient(t, a, addr, name).request(&jute.Request{Op: jute.OpGetData, Path: "/bob"})
			if err != nil || got.Code != code {
				t.Errorf("%v, error %v, want %v", got.Code, err, code)
			}
		}
	})
	t.Run("an auth packet", func(t *testing.T) {
		c := &loginClient{TB: t, addr: addr, conn: secureClient(t, a, addr, nameMe)}
		c.auth("x509", "")
		c.whoAmI()
		if diff := cmp.Diff([]string{"auth OK", "whoAmI OK [ip:127.0.0.1 x509:CN=me]"}, c.received); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	})
	t.Run("ids", func(t *testing.T) {
		c := secureClient(t, a, addr, nameMe)
		for i, tt := range subjectIDs {
			got, err := c.request(&jute.Request{
				Op: jute.OpCreate, Path: fmt.Sprintf("/id%d", i), ACL: []zk.ACL{{Perms: zk.PermAll, Scheme: "x509", ID: tt.id}},
			})
			want := jute.CodeInvalidACL
			if tt.valid {
				want = jute.CodeOK
			}
			if err != nil || got.Code != want {
				t.Errorf("%q: %v, error %v", tt.id, got.Code, err)
			}
		}
	})
	t.Run("no certificate", func(t *testing.T) {
		if c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: a.pool(), MinVersion: tls.VersionTLS12}); err == nil {
			refuse(t, &conn{Conn: c})
		}
	})
	t.Run("no TLS", func(t *testing.T) {
		c, err := dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		refuse(t, c)
	})
}

// refuse fails unless the server ends a connection instead of the handshake.
func refuse(t *testing.T, c *conn) {
	t.Helper()
	defer c.Close() //nolint:errcheck // the server may have ended it
	if answer, err := c.handshake(jute.ConnectRequest{TimeoutMs: 1000}); err == nil {
		t.Errorf("answer %+v", answer)
	}
}

// secureClient opens a session by TLS.
func secureClient(t *testing.T, a *authority, addr string, name [][]attribute) *conn {
	t.Helper()
	nc, err := tls.Dial("tcp", addr, &tls.Config{
		RootCAs: a.pool(), Certificates: []tls.Certificate{a.issue(t, name)}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() }) //nolint:errcheck // the server may have ended it
	c := &conn{Conn: nc}
	if answer, err := c.handshake(jute.ConnectRequest{
		TimeoutMs: int32(sessionTimeout.Milliseconds()), HasReadOnly: true,
	}); err != nil || answer.SessionID == 0 {
		t.Fatalf("answer %+v, error %v", answer, err)
	}
	return c
}
