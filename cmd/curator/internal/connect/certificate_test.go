package connect

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// issue writes a certificate of ca, or of itself without one, and its key into files of the name.
func issue(t *testing.T, dir, name string, ca *tls.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testclient.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour), IsCA: ca == nil, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent, signer := template, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	testclient.Must(t, err)
	leaf, err := x509.ParseCertificate(der)
	testclient.Must(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	testclient.Must(t, err)
	write := func(suffix, kind string, bytes []byte) {
		block := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
		testclient.Must(t, os.WriteFile(filepath.Join(dir, name+suffix), block, 0o600))
	}
	write(".pem", "CERTIFICATE", der)
	write(".key", "PRIVATE KEY", raw)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// A server that does not require a certificate takes the client for one without a login. The command says so.
func TestClientWarnsOfCertificateThatIsNotSent(t *testing.T) {
	dir := t.TempDir()
	ca, other := issue(t, dir, "ca", nil), issue(t, dir, "other", nil)
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	server := curatortest.NewServerT(t, curatortest.WithTLS(&tls.Config{
		Certificates: []tls.Certificate{issue(t, dir, "server", &ca)}, ClientCAs: pool,
		ClientAuth: tls.VerifyClientCertIfGiven,
	}))
	issue(t, dir, "alice", &ca)
	issue(t, dir, "bob", &other)
	for name, warns := range map[string]bool{"alice": false, "bob": true} {
		conf := Config{Connect: server.ConnectString(), SessionTimeout: 10 * time.Second, Timeout: 10 * time.Second}
		conf.TLS.Cert, conf.TLS.Key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
		conf.TLS.CA = filepath.Join(dir, "ca.pem")
		var said []string
		client, err := conf.Client(testenv.Context(t), func(text string) { said = append(said, text) })
		testclient.Must(t, err)
		testclient.Must(t, client.Close())
		if text := strings.Join(said, "\n"); strings.Contains(text, "without the certificate of --tls-cert") != warns {
			t.Errorf("with the certificate of %s it says %q", name, text)
		}
	}
}
