package shared_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/shared"
)

// connected returns a client of a server in memory.
func connected() (client *framework.Client, stop func()) {
	server, err := curatortest.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	if client, err = framework.New(server.ConnectString()); err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	return client, func() { _, _ = client.Close(), server.Close() }
}

func ExampleSharedValue() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	motto := shared.NewSharedValue(client, "/motto", []byte("keep calm"))
	if err := motto.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer motto.Close() //nolint:errcheck // always nil
	before := motto.VersionedValue()
	set, err := motto.TrySetValue(ctx, before, []byte("carry on"))
	fmt.Println(set, err)
	set, err = motto.TrySetValue(ctx, before, []byte("stop"))
	fmt.Println(set, err)
	fmt.Println(string(motto.Value()))
	// Output:
	// true <nil>
	// false <nil>
	// carry on
}

func ExampleSharedCount() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	slots := shared.NewSharedCount(client, "/slots-count", 2)
	if err := slots.Start(ctx); err != nil {
		log.Fatal(err)
	}
	defer slots.Close() //nolint:errcheck // always nil
	semaphore := locks.NewInterProcessSemaphoreV2(client, "/slots", 0, locks.WithLeaseCount(slots))
	if err := slots.SetCount(ctx, 3); err != nil {
		log.Fatal(err)
	}
	leases, err := semaphore.AcquireN(ctx, 3)
	fmt.Println(len(leases), err)
	// Output: 3 <nil>
}

func ExampleValue() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	type limits struct{ Rate int }
	value := shared.NewValue(client, "/limits", codec.JSON[limits]{})
	for range 2 {
		_, err := value.Modify(ctx, func(_ context.Context, l limits) (limits, error) {
			return limits{l.Rate + 5}, nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	for l, err := range value.Watch(ctx) {
		fmt.Println(l.Rate, err)
		break
	}
	// Output: 10 <nil>
}
