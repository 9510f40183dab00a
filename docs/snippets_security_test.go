package docs_test

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/sasl"
	"github.com/gocurator/curator/sasl/digest"
)

var _ = []any{securedClient, requiredCertificate, fromJAAS}

func vault(context.Context, string) (user, password string, err error) { return "", "", nil }

func securedClient() error {
	client, err := framework.New("zk1:2281,zk2:2281,zk3:2281",
		framework.WithTLSFromFiles("client.pem", "client.key", "ca.pem"),
		framework.WithSASL(digest.NewFunc(func(ctx context.Context) (user, password string, err error) {
			return vault(ctx, "zookeeper") // at each login: the password may change
		})),
		framework.WithACLProvider(builders.FixedACL(zk.AuthACL(zk.PermAll))))
	use(client)
	return err
}

func requiredCertificate() error {
	client, err := framework.New("zk1:2281,zk2:2281,zk3:2281",
		framework.WithTLSFromFiles("client.pem", "client.key", "ca.pem"),
		framework.WithRequiredClientCertificate())
	use(client)
	return err
}

func fromJAAS(connectString string) error {
	login, err := sasl.FromJAAS("/etc/app/jaas.conf", "Client")
	if err != nil {
		return err
	}
	mechanism, err := digest.FromLogin(login) // or kerberos.FromLogin
	if err != nil {
		return err
	}
	client, err := framework.New(connectString, framework.WithSASL(mechanism))
	use(client)
	return err
}
