package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"sync/atomic"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/barrier"
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

func ExampleDistributedBarrier() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	gate := barrier.NewDistributedBarrier(client, "/maintenance")
	if err := gate.SetBarrier(ctx); err != nil {
		log.Fatal(err)
	}
	waiting := make(chan error)
	go func() { // anybody, in any process
		waiting <- barrier.NewDistributedBarrier(client, "/maintenance").WaitOnBarrier(ctx)
	}()
	fmt.Println("maintenance is over")
	if err := gate.RemoveBarrier(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("going on:", <-waiting)
	// Output:
	// maintenance is over
	// going on: <nil>
}

// Three members add up numbers, and none looks at the sum before all have added theirs.
func ExampleDistributedDoubleBarrier() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	const members = 3
	var sum atomic.Int32
	var all sync.WaitGroup
	for i := range int32(members) {
		all.Go(func() {
			member := barrier.NewDistributedDoubleBarrier(client, "/sum", members)
			if err := member.Enter(ctx); err != nil { // until all have come
				log.Fatal(err)
			}
			sum.Add(i + 1)
			if err := member.Leave(ctx); err != nil { // until all have added
				log.Fatal(err)
			}
			fmt.Println("the sum is", sum.Load())
		})
	}
	all.Wait()
	// Output:
	// the sum is 6
	// the sum is 6
	// the sum is 6
}
