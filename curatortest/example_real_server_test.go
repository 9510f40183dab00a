package curatortest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

func ExampleRealServer() {
	server, err := curatortest.NewRealServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	fmt.Println(run(server)) // the service is gone with its session
}

func run(server *curatortest.RealServer) (outcome string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := framework.New(server.ConnectString())
	if err != nil {
		return err.Error()
	}
	if err := client.Start(); err != nil {
		return err.Error()
	}
	defer client.Close()
	_, err = client.Create().WithMode(builders.Ephemeral).ForPath(ctx, "/service", []byte("10.0.0.1:80"))
	if err != nil {
		return err.Error()
	}
	if err := server.ExpireSession(client.SessionID()); err != nil {
		return err.Error()
	}
	stat, err := client.CheckExists().ForPath(ctx, "/service")
	switch {
	case err != nil:
		return err.Error()
	case stat != nil:
		return "the service is still there"
	}
	return "the service is gone with its session"
}
