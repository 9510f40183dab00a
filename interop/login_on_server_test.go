package interop_test

import (
	"bytes"
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
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
)

// commandLine runs commands in the command line of Apache ZooKeeper, with system properties, and returns what it
// prints.
func commandLine(t *testing.T, addr, commands string, properties ...string) string {
	t.Helper()
	classPath, err := interop.ClassPath()
	if err != nil {
		t.Fatal(err)
	}
	for _, jar := range []string{"netty-codec", "netty-resolver"} { // the manifest of Debian's jar lacks them
		classPath += string(filepath.ListSeparator) + "/usr/share/java/" + jar + ".jar"
	}
	args := []string{
		"-XX:TieredStopAtLevel=1", "-Dzookeeper.jline.disable=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
	}
	for _, p := range properties {
		args = append(args, "-D"+p)
	}
	args = append(args, "-cp", classPath, "org.apache.zookeeper.ZooKeeperMain", "-waitforconnection", "-server", addr)
	cmd := exec.CommandContext(testenv.Context(t), "java", args...)
	cmd.Stdin = strings.NewReader(commands)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Logf("the command line ends with %v", err)
	}
	return out.String()
}

// identityCommands create a node that its creator alone may read.
const identityCommands = `
whoami
create /own mine auth::cdrwa
getAcl /own
get /own
quit
`

func wantPrinted(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestCommandLineLogsInBySASL has Java's client log in by DIGEST-MD5, as a JAAS file says.
func TestCommandLineLogsInBySASL(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	jaas := filepath.Join(t.TempDir(), "jaas.conf")
	err := os.WriteFile(jaas, []byte(`Client {
  org.apache.zookeeper.server.auth.DigestLoginModule required username="zoë" password="pä \"ss";
};
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	curatortest.OnBoth(t, func(t *testing.T, server *curatortest.TestServer) {
		out := commandLine(t, server.Addr(), identityCommands, "java.security.auth.login.config="+jaas,
			"file.encoding=UTF-8")
		wantPrinted(t, out, "sasl: zoë", "ip: 127.0.0.1", "Created /own", ": cdrwa", "mine")
		n, ok := server.Node("/own")
		if !ok || len(n.ACL) != 1 || n.ACL[0].Scheme != "sasl" || n.ACL[0].ID != "zoë" {
			t.Errorf("%+v, %t", n, ok)
		}
	}, curatortest.WithSASLUsers(map[string]string{"zoë": `pä "ss`}), curatortest.WithRequiredAuth("sasl"))
}

// TestCommandLineHasACertificate has Java's client use TLS.
func TestCommandLineHasACertificate(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true,
		Subject:     pkix.Name{CommonName: "a, b", Organization: []string{"x"}, Country: []string{"DE"}},
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	store, roots := filepath.Join(t.TempDir(), "store.pem"), filepath.Join(t.TempDir(), "roots.pem")
	pair := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), cert...)
	for file, text := range map[string][]byte{store: pair, roots: cert} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	server := curatortest.NewServerT(t, curatortest.WithRequiredAuth("x509"), curatortest.WithTLS(&tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12,
	}))
	out := commandLine(t, server.Addr(), identityCommands, "zookeeper.client.secure=true",
		"zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
		"zookeeper.ssl.keyStore.location="+store, "zookeeper.ssl.keyStore.type=PEM",
		"zookeeper.ssl.trustStore.location="+roots, "zookeeper.ssl.trustStore.type=PEM")
	wantPrinted(t, out, `x509: CN=a\, b,O=x,C=DE`, "ip: 127.0.0.1", "Created /own", ": cdrwa", "mine")
	if n, _ := server.Node("/own"); len(n.ACL) != 1 || n.ACL[0].Scheme != "x509" || n.ACL[0].ID != `CN=a\, b,O=x,C=DE` {
		t.Errorf("%+v", n)
	}
}
