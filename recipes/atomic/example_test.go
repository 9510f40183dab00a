package atomic_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/retry"
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

func ExampleDistributedAtomicNumber() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	hits := atomic.NewDistributedAtomicLong(client, "/hits", retry.NTimes(10, 5*time.Millisecond))
	for range 2 {
		result, err := hits.Increment(ctx)
		switch {
		case errors.Is(err, atomic.ErrUncertain):
			fmt.Println("it may be", result.Post, "or still", result.Pre)
		case err != nil:
			log.Fatal(err) // not counted
		case !result.Succeeded:
			fmt.Println("others were faster each time")
		default:
			fmt.Println("from", result.Pre, "to", result.Post)
		}
	}
	// Output:
	// from 0 to 1
	// from 1 to 2
}

func ExampleDistributedAtomicValue_CompareAndSet() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	state := atomic.NewDistributedAtomicValue(client, "/state", retry.NTimes(3, time.Millisecond))
	if _, err := state.Initialize(ctx, []byte("open")); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		result, err := state.CompareAndSet(ctx, []byte("open"), []byte("closed"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%t: it was %s\n", result.Succeeded, result.Pre)
	}
	// Output:
	// true: it was open
	// false: it was closed
}

func ExampleWithReceipts() {
	client, stop := connected()
	defer stop()
	balance := atomic.NewDistributedAtomicLong(client, "/balance", retry.NTimes(10, time.Millisecond),
		atomic.WithReceipts("/receipts"))
	result, err := balance.Add(context.Background(), 100)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Post)
	// Output: 100
}

func ExampleCachedAtomicNumber() {
	client, stop := connected()
	defer stop()
	counter := atomic.NewDistributedAtomicLong(client, "/ids", retry.NTimes(10, 5*time.Millisecond))
	ids := atomic.NewCachedAtomicLong(counter, 100)
	for range 3 {
		id, err := ids.Next(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id.Pre)
	}
	taken, err := counter.Get(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the next block begins with", taken)
	// Output:
	// 0
	// 1
	// 2
	// the next block begins with 100
}
