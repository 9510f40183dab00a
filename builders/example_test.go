package builders_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/zkpath"
)

// exampleTB is what testenv wants of a test, where there is none.
type exampleTB struct {
	testing.TB // nil
	cleanups   []func()
}

func (*exampleTB) Helper()                   {}
func (*exampleTB) Name() string              { return "example" }
func (*exampleTB) Errorf(f string, a ...any) { log.Printf(f, a...) }
func (*exampleTB) Fatalf(f string, a ...any) { log.Fatalf(f, a...) }
func (*exampleTB) Fatal(a ...any)            { log.Fatal(a...) }
func (tb *exampleTB) Cleanup(f func())       { tb.cleanups = append(tb.cleanups, f) }

// connect returns a client with a part of the tree of its own; disconnect closes it.
func connect() (client *framework.Client, disconnect func()) {
	tb := &exampleTB{}
	client, err := framework.New(testenv.ConnectString(tb))
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	return client, func() {
		if err := client.Close(); err != nil {
			log.Fatal(err)
		}
		for i := len(tb.cleanups) - 1; i >= 0; i-- {
			tb.cleanups[i]()
		}
	}
}

// A round through the life of a node.
func Example() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	path, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/app/config/limit", []byte("10"))
	if err != nil {
		log.Fatal(err)
	}
	stat, err := client.SetData().ForPath(ctx, path, []byte("20"))
	if err != nil {
		log.Fatal(err)
	}
	data, err := client.GetData().ForPath(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s is %s in version %d\n", path, data, stat.Version)
	if err := client.Delete().DeletingChildrenIfNeeded().ForPath(ctx, "/app"); err != nil {
		log.Fatal(err)
	}
	stat, err = client.CheckExists().ForPath(ctx, "/app")
	fmt.Println(stat, err)
	// Output:
	// /app/config/limit is 20 in version 1
	// <nil> <nil>
}

// A protected node is found again when the answer to its creation was lost, and never left behind.
func ExampleCreate_WithProtection() {
	client, disconnect := connect()
	defer disconnect()

	path, err := client.Create().
		CreatingParentContainersIfNeeded().
		WithProtection().
		WithMode(builders.EphemeralSequential).
		ForPath(context.Background(), "/members/m-", []byte("idle"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(zkpath.NormalizePath(path))
	// Output: /members/m-0000000000
}

// Background operations are sent in the order of the calls, and their results come in that order.
func ExampleCreate_InBackground() {
	client, disconnect := connect()
	defer disconnect()

	done := make(chan struct{}, 3)
	create := client.Create().InBackground(func(_ context.Context, ev callbacks.Event) {
		fmt.Println(ev.Type, ev.Path, ev.Err)
		done <- struct{}{}
	})
	for _, path := range []string{"/a", "/a/b", "/x/y"} {
		if err := create.ForPath(context.Background(), path, nil); err != nil {
			log.Fatal(err)
		}
	}
	for range 3 {
		<-done
	}
	// Output:
	// CREATE /a <nil>
	// CREATE /a/b <nil>
	// CREATE /x/y curator: create /x/y: node does not exist
}

// Submitted operations are under way at the same time: the three reads take one round trip.
func ExampleGetData_Submit() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	paths := []string{"/a", "/b", "/c"}
	for _, path := range paths {
		if _, err := client.Create().ForPath(ctx, path, []byte("data of "+path)); err != nil {
			log.Fatal(err)
		}
	}

	var reads []builders.Future[[]byte]
	for _, path := range paths {
		reads = append(reads, client.GetData().Submit(ctx, path))
	}
	for _, read := range reads {
		data, err := read.Wait(ctx)
		fmt.Println(string(data), err)
	}
	// Output:
	// data of /a <nil>
	// data of /b <nil>
	// data of /c <nil>
}

// A log keeps its order although its writer does not wait for one entry before it sends the next. When the connection
// is lost, what has taken effect is a beginning of what was submitted, and the rest is submitted again.
func ExamplePipelined() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	if _, err := client.Create().ForPath(ctx, "/log", nil); err != nil {
		log.Fatal(err)
	}

	entries := [][]byte{[]byte("debit"), []byte("credit"), []byte("close")}
	for len(entries) > 0 {
		flight := builders.Pipelined(ctx)
		var writes []builders.Future[string]
		for _, entry := range entries {
			create := client.Create().WithMode(builders.PersistentSequential)
			writes = append(writes, create.Submit(flight, "/log/entry-", entry))
		}
		for _, write := range writes {
			path, err := write.Wait(ctx)
			if errors.Is(err, builders.ErrNotSent) {
				break // this entry and all behind it have not taken effect
			}
			if err != nil {
				log.Fatal(err) // the outcome of an entry whose answer was lost is unknown
			}
			fmt.Printf("%s: %s\n", path, entries[0])
			entries = entries[1:]
		}
	}
	// Output:
	// /log/entry-0000000000: debit
	// /log/entry-0000000001: credit
	// /log/entry-0000000002: close
}

// A clean-up is tried again as the retry policy says, also where the work itself is tried once.
func ExampleOutOfFlight() {
	client, disconnect := connect()
	defer disconnect()

	err := client.CallWithRetry(context.Background(), func(ctx context.Context) error {
		path, err := client.Create().WithProtection().ForPath(ctx, "/work", nil)
		if err != nil {
			return err
		}
		return client.Delete().ForPath(builders.OutOfFlight(ctx), path)
	})
	fmt.Println(err)
	// Output: <nil>
}

// A write with a version fails if another client has changed the node since the read.
func ExampleSetData_WithVersion() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	if _, err := client.Create().ForPath(ctx, "/counter", []byte("0")); err != nil {
		log.Fatal(err)
	}

	var stat zk.Stat
	if _, err := client.GetData().StoringStatIn(&stat).ForPath(ctx, "/counter"); err != nil {
		log.Fatal(err)
	}
	set := client.SetData().WithVersion(stat.Version)
	_, err := set.ForPath(ctx, "/counter", []byte("1"))
	fmt.Println(err)
	_, err = set.ForPath(ctx, "/counter", []byte("1")) // the version is no longer the newest
	fmt.Println(errors.Is(err, zk.ErrBadVersion))
	// Output:
	// <nil>
	// true
}

// A guaranteed delete goes on in the background when its context ends first.
func ExampleDelete_Guaranteed() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	path, err := client.Create().WithMode(builders.Ephemeral).ForPath(ctx, "/mine", nil)
	if err != nil {
		log.Fatal(err)
	}

	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := client.Delete().Guaranteed().Quietly().ForPath(brief, path); err != nil {
		fmt.Println("later:", err)
		return
	}
	fmt.Println("deleted")
	// Output: deleted
}

// A watch of a whole tree, which stays until it is removed.
func ExampleWatches() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	events := make(chan zk.Event, 10)
	watcher := callbacks.NewChanWatcher(events)
	if err := client.Watches().Add().UsingWatcher(watcher).ForPath(ctx, "/app"); err != nil {
		log.Fatal(err)
	}
	if _, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/app/a", nil); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		ev := <-events
		fmt.Println(ev.Type, ev.Path)
	}
	if err := client.Watches().Remove(watcher).ForPath(ctx, "/app"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// EventNodeCreated /app
	// EventNodeCreated /app/a
}

// All or nothing.
func ExampleTransaction() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	op := client.TransactionOp()
	results, err := client.Transaction().ForOperations(ctx,
		op.Create().ForPath("/account", []byte("100")),
		op.Create().WithMode(builders.PersistentSequential).ForPath("/account/change-", []byte("+100")),
	)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(r.Type, r.ResultPath)
	}
	_, err = client.Transaction().ForOperations(ctx,
		op.SetData().ForPath("/account", []byte("0")),
		op.Check().WithVersion(7).ForPath("/account"), // it has not
	)
	fmt.Println(err)
	// Output:
	// CREATE /account
	// CREATE /account/change-0000000000
	// curator: multi: op 1 check /account: version conflict
}
