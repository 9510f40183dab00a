package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/sasl/digest"
)

// A wrong password is an error at once, with its reason.
func ExampleWithSASL() {
	server, err := curatortest.NewServer(curatortest.WithSASLUsers(map[string]string{"bob": "secret"}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Close() }()

	client, err := framework.New(server.ConnectString(), framework.WithSASL(digest.New("bob", "wrong")))
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(errors.Is(client.BlockUntilConnected(ctx), zk.ErrAuthFailed))
	// Output: true
}
