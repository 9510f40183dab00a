package locks_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
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

func Example() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()

	mu := locks.NewInterProcessMutex(client, "/locks/orders")
	hold, err := mu.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held:", hold.Context().Err() == nil)

	if _, err := mu.TryAcquire(ctx, 10*time.Millisecond); errors.Is(err, locks.ErrNotAcquired) {
		fmt.Println("nobody else gets it")
	}
	if err := hold.Release(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("released:", context.Cause(hold.Context()))
	// Output:
	// held: true
	// nobody else gets it
	// released: locks: released
}

func ExampleWithOwner() {
	client, stop := connected()
	defer stop()
	mu := locks.NewInterProcessMutex(client, "/locks/orders")

	ctx := locks.WithOwner(context.Background()) // once, where a request or a worker begins
	outer, err := mu.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	inner, err := mu.Acquire(ctx) // enters again, without waiting for itself
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("one node:", outer.Path() == inner.Path())
	if err := errors.Join(inner.Release(ctx), outer.Release(ctx)); err != nil {
		log.Fatal(err)
	}
	// Output: one node: true
}

func ExampleHold_Token() {
	client, stop := connected()
	defer stop()
	mu := locks.NewInterProcessMutex(client, "/locks/orders")
	ctx := context.Background()

	var newest int64 // what the guarded resource remembers
	write := func(token int64) bool {
		if token < newest {
			return false
		}
		newest = token
		return true
	}
	first, err := mu.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := first.Release(ctx); err != nil { // or it loses the lock without knowing
		log.Fatal(err)
	}
	second, err := mu.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Release(ctx) //nolint:errcheck // the end of the example
	fmt.Println("second writes:", write(second.Token()))
	fmt.Println("first writes late:", write(first.Token()))
	// Output:
	// second writes: true
	// first writes late: false
}

func ExampleInterProcessMutex_MakeRevocable() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()

	mu := locks.NewInterProcessMutex(client, "/locks/orders")
	mu.MakeRevocable(func(hold *locks.Hold) {
		fmt.Println("asked to release")
		if err := hold.Release(ctx); err != nil {
			log.Print(err)
		}
	})
	hold, err := mu.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := locks.Revoke(ctx, client, hold.Path()); err != nil { // another process would do this
		log.Fatal(err)
	}
	<-hold.Context().Done()
	fmt.Println(context.Cause(hold.Context()))
	// Output:
	// asked to release
	// locks: released
}

// A reader and a writer never meet; a writer that is done may go on as a reader, and nobody writes in between.
func ExampleInterProcessReadWriteLock() {
	client, stop := connected()
	defer stop()
	ctx := locks.WithOwner(context.Background())
	rw := locks.NewInterProcessReadWriteLock(client, "/locks/table")

	writing, err := rw.WriteLock().Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	reading, err := rw.ReadLock().Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := writing.Release(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = rw.WriteLock().Acquire(ctx)
	fmt.Println("reading:", reading.Context().Err() == nil, "write again:", err)
	if err := reading.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: reading: true write again: locks: acquire /locks/table: locks: a reader cannot become a writer
}

// Three connections to a database, whoever uses them.
func ExampleInterProcessSemaphoreV2() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	connections := locks.NewInterProcessSemaphoreV2(client, "/db/connections", 3)

	leases, err := connections.AcquireN(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	_, err = connections.TryAcquireN(ctx, 2, 0)
	fmt.Println(len(leases), "leases, two more:", errors.Is(err, locks.ErrNotAcquired))
	if err := connections.ReturnAll(ctx, leases...); err != nil {
		log.Fatal(err)
	}
	// Output: 2 leases, two more: true
}

func ExampleInterProcessMultiLock() {
	client, stop := connected()
	defer stop()
	both := locks.NewInterProcessMultiLock(
		locks.NewInterProcessMutex(client, "/accounts/alice"),
		locks.NewInterProcessMutex(client, "/accounts/bob"))
	err := locks.Do(context.Background(), both, func(ctx context.Context) error {
		fmt.Println("transfer under both locks:", ctx.Err() == nil)
		return nil
	})
	fmt.Println(err)
	// Output:
	// transfer under both locks: true
	// <nil>
}
