package locks_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/zkpath"
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

// The same without tokens, for what is in ZooKeeper itself.
func ExampleHold_Client() {
	client, stop := connected()
	defer stop()
	mu := locks.NewInterProcessMutex(client, "/locks/orders")
	ctx := context.Background()
	if _, err := client.Create().ForPath(ctx, "/next", []byte("1")); err != nil {
		log.Fatal(err)
	}

	first, err := mu.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Delete().ForPath(ctx, first.Path()); err != nil { // it loses the lock without knowing
		log.Fatal(err)
	}
	second, err := mu.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Release(ctx) //nolint:errcheck // the end of the example
	_, err = second.Client().SetData().ForPath(ctx, "/next", []byte("2"))
	fmt.Println("second writes:", err == nil)
	_, err = first.Client().SetData().ForPath(ctx, "/next", []byte("2, late"))
	fmt.Println("first is refused:", errors.Is(err, locks.ErrLockLost))

	// With operations of one's own, all or none:
	op := client.TransactionOp()
	_, err = client.Transaction().ForOperations(ctx, second.Fence(),
		op.Create().ForPath("/orders-2", nil), op.SetData().ForPath("/next", []byte("3")))
	fmt.Println("second orders:", err == nil)
	// Output:
	// second writes: true
	// first is refused: true
	// second orders: true
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

// Readers and writers exclude each other. A writer may continue as a reader, and no other client writes in between.
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
	// Output: reading: true write again: locks: acquire /locks/table: a reader cannot become a writer
}

// Three connections to a database, shared by all processes.
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

// A lock that is acquired here and released there, and is not re-entrant: an owner waits for itself as for any
// other.
func ExampleInterProcessSemaphoreMutex() {
	client, stop := connected()
	defer stop()
	ctx := locks.WithOwner(context.Background())
	mu := locks.NewInterProcessSemaphoreMutex(client, "/locks/orders")

	hold, err := mu.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = mu.TryAcquire(ctx, 10*time.Millisecond)
	fmt.Println("not once more:", errors.Is(err, locks.ErrNotAcquired))

	released := make(chan error)
	go func() { released <- hold.Release(context.Background()) }() // any goroutine may release it
	fmt.Println("released elsewhere:", <-released, mu.IsAcquiredInThisProcess())
	// Output:
	// not once more: true
	// released elsewhere: <nil> false
}

// byHost is a driver whose nodes name their host. They are sorted by their numbers, whatever stands in front.
type byHost struct {
	locks.StandardDriver
	host string
}

func (d byHost) LockName() string { return d.host + "-" }

func (byHost) FixForSorting(node, _ string) string { return node[strings.LastIndex(node, "-")+1:] }

func ExampleWithDriver() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	ours := locks.NewInterProcessMutex(client, "/locks/orders", locks.WithDriver(byHost{host: "host-7"}))
	theirs := locks.NewInterProcessMutex(client, "/locks/orders", locks.WithDriver(byHost{host: "host-2"}))

	hold, err := ours.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = theirs.TryAcquire(ctx, 10*time.Millisecond)
	fmt.Println("host-2 waits:", errors.Is(err, locks.ErrNotAcquired))

	nodes, err := theirs.ParticipantNodes(ctx)
	if err != nil || len(nodes) == 0 {
		log.Fatal("no waiter: ", err)
	}
	fmt.Println("held by", zkpath.Normalize(zkpath.Node(nodes[0])))
	if err := hold.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// host-2 waits: true
	// held by host-7-0000000000
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
