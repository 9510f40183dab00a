package cache_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
)

// connected starts a server and a client for an example.
func connected() (client *framework.Client, stop func()) {
	server, err := curatortest.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	client, err = framework.New(server.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	return client, func() {
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			log.Fatal(err)
		}
	}
}

func ExampleCuratorCache() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	if _, err := client.Create().ForPath(ctx, "/config", []byte("1")); err != nil {
		log.Fatal(err)
	}
	c := cache.NewCuratorCache(client, "/config")
	changed := make(chan struct{})
	c.AddListener(cache.ForChanges(func(_ context.Context, old, node *cache.ChildData) {
		fmt.Printf("%s was %s and is %s\n", node.Path, old.Data, node.Data)
		close(changed)
	}))
	if err := c.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := client.SetData().ForPath(ctx, "/config", []byte("2")); err != nil {
		log.Fatal(err)
	}
	<-changed
	// Output: /config was 1 and is 2
}

func ExampleTyped() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	if _, err := client.Create().ForPath(ctx, "/limits", []byte(`{"rate":10}`)); err != nil {
		log.Fatal(err)
	}
	type limits struct{ Rate int }
	c := cache.NewCuratorCache(client, "/limits")
	typed := cache.NewTyped(c, codec.JSON[limits]{})
	if err := c.Start(); err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	value, ok := typed.Get("/limits")
	fmt.Println(value.Rate, ok)
	// Output: 10 true
}
