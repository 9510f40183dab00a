package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
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

func ExampleServiceDiscovery() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	services := discovery.New[string](client, "/services")
	if err := services.Start(); err != nil {
		log.Fatal(err)
	}
	instance := discovery.NewServiceInstance[string]("orders", "10.0.0.7", 8080)
	instance.ID = "i-7" // a random one by default
	instance.Payload = "eu"
	if err := services.Register(ctx, instance); err != nil {
		log.Fatal(err)
	}
	found, err := services.Instances(ctx, "orders") // in any process
	if err != nil {
		log.Fatal(err)
	}
	for _, i := range found {
		fmt.Println(i.ID, i.Address, i.Port, i.Payload)
	}
	// Disabled for a moment, in which callers turn to others, and then away.
	if err := services.Drain(ctx, instance, 10*time.Millisecond); err != nil {
		log.Fatal(err)
	}
	_, err = services.Instance(ctx, "orders", "i-7")
	fmt.Println(errors.Is(err, discovery.ErrNoInstance))
	if err := services.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// i-7 10.0.0.7 8080 eu
	// true
}

func ExampleServiceCache() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	services := discovery.New[string](client, "/services")
	if err := services.Start(); err != nil {
		log.Fatal(err)
	}
	orders := services.Cache("orders")
	if err := orders.Start(ctx); err != nil {
		log.Fatal(err)
	}
	instance := discovery.NewServiceInstance[string]("orders", "10.0.0.7", 8080)
	if err := services.Register(ctx, instance); err != nil {
		log.Fatal(err)
	}
	for change := range orders.Changes(ctx) { // those that are there, and then every change
		if change.Gone {
			fmt.Println(change.Instance.Address, "is gone")
			break
		}
		fmt.Println(change.Instance.Address, "is there")
		if err := services.Unregister(ctx, instance); err != nil {
			log.Fatal(err)
		}
	}
	if err := services.Close(ctx); err != nil { // closes the cache, too
		log.Fatal(err)
	}
	// Output:
	// 10.0.0.7 is there
	// 10.0.0.7 is gone
}

func ExampleServiceProvider() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	services := discovery.New[string](client, "/services")
	if err := services.Start(); err != nil {
		log.Fatal(err)
	}
	for _, address := range []string{"10.0.0.7", "10.0.0.8"} { // in any process
		instance := discovery.NewServiceInstance[string]("orders", address, 8080)
		if err := services.Register(ctx, instance); err != nil {
			log.Fatal(err)
		}
	}
	orders := services.Provider("orders",
		discovery.WithStrategy(discovery.FewestInFlight[string]()),
		discovery.WithDownInstancePolicy[string](time.Minute, 1))
	if err := orders.Start(ctx); err != nil {
		log.Fatal(err)
	}
	first, err := orders.Pick(ctx) // waits until there is one
	if err != nil {
		log.Fatal(err)
	}
	second, err := orders.Pick(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("another one:", first.Instance.Address != second.Instance.Address)
	first.Done(errors.New("connection refused")) // one error: it is down for a minute
	second.Done(nil)
	for range 10 {
		next, err := orders.Instance()
		if err != nil {
			log.Fatal(err)
		}
		if next.Address != second.Instance.Address {
			fmt.Println("down, and chosen:", next.Address)
		}
	}
	if err := services.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// another one: true
}
