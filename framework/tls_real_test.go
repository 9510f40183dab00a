package framework_test

import (
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

// Apache ZooKeeper with a secure port that asks for certificates.
func TestTLSOfApacheZooKeeper(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	a := newAuthority(t)
	files := newPEMFiles(t)
	files.setPair(a.issue(t, "me"))
	files.setCA(a)
	pair := a.issue(t, "127.0.0.1")
	store := filepath.Join(t.TempDir(), "server.pem")
	server := newPEMFiles(t)
	server.setPair(pair)
	key, err := os.ReadFile(server.key)
	must(t, err)
	cert, err := os.ReadFile(server.cert)
	must(t, err)
	write(t, store, append(key, cert...))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	secure := l.Addr().(*net.TCPAddr).Port
	must(t, l.Close())
	zk, err := curatortest.NewRealServer(
		curatortest.WithConfig("secureClientPort", fmt.Sprint(secure)),
		curatortest.WithConfig("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory"),
		curatortest.WithConfig("authProvider.x509", "org.apache.zookeeper.server.auth.X509AuthenticationProvider"),
		curatortest.WithConfig("ssl.keyStore.location", store), curatortest.WithConfig("ssl.keyStore.type", "PEM"),
		curatortest.WithConfig("ssl.trustStore.location", files.ca), curatortest.WithConfig("ssl.trustStore.type", "PEM"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, zk.Close()) })
	securely := fmt.Sprintf("127.0.0.1:%d", secure)
	ctx := testenv.Context(t)

	client := newClient(t, securely, framework.WithTLSFromFiles(files.cert, files.key, files.ca))
	start(t, client)
	must(t, client.BlockUntilConnected(ctx))
	_, err = client.Create().WithACL(zklib.ACL{Perms: zklib.PermAll, Scheme: "auth"}).ForPath(ctx, "/mine", nil)
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
