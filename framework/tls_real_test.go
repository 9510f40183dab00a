package framework_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	zklib "github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// secureServer starts Apache ZooKeeper with a secure port, which trusts an authority and has a certificate of it, and
// returns the address of that port.
func secureServer(
	t *testing.T, a *authority, opts ...curatortest.RealOption,
) (zk *curatortest.RealServer, secure string) {
	t.Helper()
	server := newPEMFiles(t)
	server.setPair(a.issue(t, "127.0.0.1"))
	server.setCA(a)
	key, err := os.ReadFile(server.key)
	must(t, err)
	cert, err := os.ReadFile(server.cert)
	must(t, err)
	store := filepath.Join(t.TempDir(), "server.pem")
	write(t, store, append(key, cert...))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	must(t, l.Close())
	zk, err = curatortest.NewRealServer(append(opts,
		curatortest.WithConfig("secureClientPort", fmt.Sprint(port)),
		curatortest.WithConfig("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory"),
		curatortest.WithConfig("authProvider.x509", "org.apache.zookeeper.server.auth.X509AuthenticationProvider"),
		curatortest.WithConfig("ssl.keyStore.location", store), curatortest.WithConfig("ssl.keyStore.type", "PEM"),
		curatortest.WithConfig("ssl.trustStore.location", server.ca), curatortest.WithConfig("ssl.trustStore.type", "PEM"),
	)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, zk.Close()) })
	return zk, fmt.Sprintf("127.0.0.1:%d", port)
}

// Apache ZooKeeper with a secure port that asks for certificates.
func TestTLSOfApacheZooKeeper(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	a := newAuthority(t)
	files := newPEMFiles(t)
	files.setPair(a.issue(t, "me"))
	files.setCA(a)
	zk, securely := secureServer(t, a)
	ctx := testenv.Context(t)

	client := newClient(t, securely, framework.WithTLSFromFiles(files.cert, files.key, files.ca))
	start(t, client)
	must(t, client.BlockUntilConnected(ctx))
	_, err := client.Create().WithACL(zklib.ACL{Perms: zklib.PermAll, Scheme: "auth"}).ForPath(ctx, "/mine", nil)
	must(t, err)
	acl, err := client.GetACL().ForPath(ctx, "/mine")
	must(t, err)
	if len(acl) != 1 || acl[0].Scheme != "x509" || !strings.Contains(acl[0].ID, "CN=me") {
		t.Errorf("the ACL is %v", acl)
	}
	for _, tt := range []struct {
		name, addr, wrong string
		option            framework.Option
	}{
		{"TLS on a plain port", zk.Addr(), "no TLS on this port", framework.WithTLSFromFiles("", "", files.ca)},
		{"no TLS on a secure port", securely, "TLS alone on this port", nil},
		{"no certificate", securely, "bad certificate", framework.WithTLSFromFiles("", "", files.ca)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := &lockedBuffer{}
			client := newClient(t, tt.addr, tt.option, framework.WithLogger(slog.New(slog.NewTextHandler(log, nil))),
				framework.WithConnectionTimeout(5*time.Second))
			start(t, client)
			testenv.Eventually(t, func() bool { return strings.Contains(log.String(), "level=WARN") }, "a warning")
			if !strings.Contains(log.String(), tt.wrong) {
				t.Errorf("logged:\n%s", log.String())
			}
		})
	}
}

// Apache ZooKeeper names its authorities, so a certificate of another one is not sent to it.
func TestTLSUnsentCertificateOnApacheZooKeeper(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	s := newSecured(t)
	for _, auth := range []string{"want", "need"} {
		_, addr := secureServer(t, s.root, curatortest.WithConfig("ssl.clientAuth", auth))
		for what, tt := range map[string]struct {
			pair tls.Certificate
			why  string
		}{
			"another authority":       {s.foreign, `"CN=bob", issued by "CN=other", and the server accepts those of "CN=root"`},
			"certificate between":     {s.leaf, `"CN=bob", issued by "CN=between", and the server accepts those of "CN=root"`},
			"the authority, and sent": {s.chain, ""},
		} {
			t.Run(auth+" "+what, func(t *testing.T) {
				t.Parallel()
				log := &lockedBuffer{}
				client := newClient(t, addr, framework.WithTLS(s.conf(tt.pair)), framework.WithMaxCloseWait(time.Minute),
					framework.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
				start(t, client)
				switch {
				case auth == "need" && tt.why != "":
					if err := awaitRefusals(t, client, 3); !errors.Is(err, framework.ErrCertificateNotSent) ||
						!strings.Contains(err.Error(), tt.why) {
						t.Errorf("the error is %v", err)
					}
					wantUnsentLines(t, log, 0, "")
				case tt.why != "":
					must(t, client.BlockUntilConnected(testenv.Context(t)))
					testenv.Eventually(t, func() bool { return strings.Contains(log.String(), "not sent") }, "the line")
					wantUnsentLines(t, log, 1, tt.why)
				default:
					who, err := client.WhoAmI(testenv.Context(t))
					must(t, err)
					if !strings.Contains(fmt.Sprint(who), "CN=bob") {
						t.Errorf("the identities are %v", who)
					}
					wantUnsentLines(t, log, 0, "")
				}
			})
		}
	}
}

// The versions of TLS in docs/porting/client.md are those of servers without ssl.enabledProtocols.
func TestTLSVersionOfApacheZooKeeper(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	a := newAuthority(t)
	zk, addr := secureServer(t, a, curatortest.WithConfig("ssl.clientAuth", "none"))
	version := testenv.VersionOf(t, zk)
	for _, tls13 := range []bool{false, true} {
		conf := &tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}
		if tls13 {
			conf.MinVersion, conf.MaxVersion = tls.VersionTLS13, tls.VersionTLS13
		}
		client := newClient(t, addr, framework.WithTLS(conf), framework.WithMaxCloseWait(time.Minute))
		start(t, client)
		if isNewer := version.AtLeast(testenv.Version{3, 9, 0}); isNewer == tls13 {
			must(t, client.BlockUntilConnected(testenv.Context(t)))
		} else {
			awaitReason(t, client, "protocol version")
		}
	}
}
