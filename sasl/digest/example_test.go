package digest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/sasl/digest"
)

// A client logs in, and keeps what it creates to itself.
func Example() {
	ctx := context.Background()
	server, err := curatortest.NewServer(curatortest.WithSASLUsers(map[string]string{"bob": "secret"}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Close() }()

	client, err := framework.New(server.ConnectString(),
		framework.WithSASL(digest.New("bob", "secret")),
		framework.WithACLProvider(builders.FixedACL(zk.AuthACL(zk.PermAll))))
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if _, err := client.Create().ForPath(ctx, "/mine", []byte("x")); err != nil {
		log.Fatal(err)
	}
	acl, err := client.GetACL().ForPath(ctx, "/mine")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(acl[0].Scheme, acl[0].ID)
	// Output: sasl bob
}
