package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// noTest stands in for a test where there is none.
type noTest struct{ testing.TB }

func (noTest) Helper() {}

func (noTest) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

// zkServers returns a connect string, "zk1:2181,zk2:2181".
func zkServers() string { return testenv.Addr(noTest{}) }

// exampleClient returns a connected client; end removes what it leaves behind, and closes it.
func exampleClient(opts ...framework.Option) (client *framework.Client, end func()) {
	client, err := framework.New(zkServers(), append(opts, framework.WithNamespace("example"))...)
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	return client, func() {
		_ = client.UsingNamespace("").Delete().DeletingChildrenIfNeeded().ForPath(context.Background(), "/example")
		_ = client.Close()
	}
}

// The node stays, also without children: programs that know nothing of each other create theirs below it.
func ExampleClient_EnsurePath() {
	client, end := exampleClient()
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for range 2 { // the second call finds the node
		if err := client.EnsurePath(ctx, "/workers/eu"); err != nil {
			log.Fatal(err)
		}
	}
	name, err := client.Create().WithMode(builders.Ephemeral).ForPath(ctx, "/workers/eu/host-7", nil)
	fmt.Println(name, err)
	// Output:
	// /workers/eu/host-7 <nil>
}

func ExampleMayHaveTakenEffect() {
	client, end := exampleClient()
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := client.SetData().ForPath(ctx, "/none", nil)
	switch {
	case framework.MayHaveTakenEffect(err):
		fmt.Println("read the node, and decide")
	case err != nil:
		fmt.Println("not written:", err)
	}
	// Output:
	// not written: curator: setData /none: node does not exist
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	client, err := framework.New(zkServers(),
		framework.WithRetryPolicy(retry.ExponentialBackoff(time.Second, 3)))
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // the end of the program

	name, err := client.Create().CreatingParentContainersIfNeeded().WithMode(builders.EphemeralSequential).
		ForPath(ctx, "/orders/o-", []byte("tea"))
	if err != nil {
		log.Fatal(err)
	}
	data, err := client.GetData().ForPath(ctx, name)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", path.Dir(name), data)
	// Output: /orders: tea
}

// What is wrong with the arguments is an error before anything is done.
func ExampleNew() {
	_, err := framework.New("zk1:2181,zk2:port", framework.WithNamespace("/orders"))
	fmt.Println(errors.Is(err, framework.ErrBadArguments))
	// Output: true
}

// The result comes to a callback, in the order in which the operations were submitted.
func ExampleClient_background() {
	client, end := exampleClient()
	defer end()
	ctx := context.Background()

	done := make(chan struct{})
	err := client.Create().InBackground(func(_ context.Context, ev callbacks.Event) {
		fmt.Println(ev.Type, ev.Name, ev.Err)
	}).ForPath(ctx, "/a", []byte("data"))
	if err != nil { // it was not even accepted
		log.Fatal(err)
	}
	err = client.GetData().InBackground(func(_ context.Context, ev callbacks.Event) {
		fmt.Println(ev.Type, ev.Path, string(ev.Data))
		close(done)
	}).ForPath(ctx, "/a")
	if err != nil {
		log.Fatal(err)
	}
	<-done
	// Output:
	// CREATE /a <nil>
	// GET_DATA /a data
}

func ExampleClient_AddConnectionStateListener() {
	client, err := framework.New(zkServers())
	if err != nil {
		log.Fatal(err)
	}
	states := make(chan framework.ConnectionState, 10)
	remove := client.AddConnectionStateListener(
		func(_ context.Context, s framework.ConnectionState) { states <- s })
	defer remove()
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-states)
	if err := client.Reset(); err != nil { // as if the session had expired
		log.Fatal(err)
	}
	fmt.Println(<-states)
	fmt.Println(<-states)
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// CONNECTED
	// LOST
	// RECONNECTED
}

// What must not be done without a session is done under its context.
func ExampleClient_Session() {
	client, end := exampleClient()
	defer end()
	if err := client.BlockUntilConnected(context.Background()); err != nil {
		log.Fatal(err)
	}
	session := client.Session()
	fmt.Println("alive:", session.Context().Err() == nil)
	if err := client.Reset(); err != nil { // as if it had expired
		log.Fatal(err)
	}
	<-session.Context().Done()
	fmt.Println(context.Cause(session.Context()))
	// Output:
	// alive: true
	// curator: session lost
}

func ExampleClient_UsingNamespace() {
	client, end := exampleClient()
	defer end()
	ctx := context.Background()
	orders := client.UsingNamespace("example/orders")
	if _, err := orders.Create().ForPath(ctx, "/17", nil); err != nil {
		log.Fatal(err)
	}
	stat, err := client.UsingNamespace("").CheckExists().ForPath(ctx, "/example/orders/17")
	fmt.Println(stat != nil, err)
	// Output: true <nil>
}

// A node's absence is no error to CheckExists, and one of go-zookeeper's to everything else.
func ExampleClient_CheckExists() {
	client, end := exampleClient()
	defer end()
	ctx := context.Background()
	stat, err := client.CheckExists().ForPath(ctx, "/none")
	fmt.Println(stat == nil, err)
	_, err = client.GetData().ForPath(ctx, "/none")
	fmt.Println(errors.Is(err, zk.ErrNoNode))
	fmt.Println(err)
	// Output:
	// true <nil>
	// true
	// curator: getData /none: node does not exist
}

func ExampleClient_Transaction() {
	client, end := exampleClient()
	defer end()
	ctx := context.Background()
	op := client.TransactionOp()
	results, err := client.Transaction().ForOperations(ctx,
		op.Create().ForPath("/a", []byte("1")),
		op.SetData().WithVersion(0).ForPath("/a", []byte("2")),
	)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(r.Type, r.ForPath)
	}
	_, err = client.Transaction().ForOperations(ctx,
		op.Delete().ForPath("/a"),
		op.Create().ForPath("/b/c", nil), // no /b: nothing is done
	)
	fmt.Println(err)
	// Output:
	// CREATE /a
	// SET_DATA /a
	// curator: multi: op 1 create /b/c: node does not exist
}

// A watcher gets changes; the watcher-removing view removes all that were set through it.
func ExampleClient_WatcherRemoving() {
	client, end := exampleClient()
	defer end()
	ctx := context.Background()
	events := make(chan zk.Event, 10)
	watcher := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) { events <- ev })

	view := client.WatcherRemoving()
	if err := view.Watches().Add().WithMode(builders.PersistentRecursiveWatch).UsingWatcher(watcher).
		ForPath(ctx, "/tree"); err != nil {
		log.Fatal(err)
	}
	if _, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/tree/a", nil); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		ev := <-events
		fmt.Println(ev.Type, ev.Path)
	}
	fmt.Println("watchers:", view.WatcherCount())
	view.RemoveWatchers(ctx)
	fmt.Println("watchers:", view.WatcherCount())
	// Output:
	// EventNodeCreated /tree
	// EventNodeCreated /tree/a
	// watchers: 1
	// watchers: 0
}

// The loop retries the whole of what it calls, by the policy of the client.
func ExampleClient_CallWithRetry() {
	client, end := exampleClient(framework.WithRetryPolicy(retry.NTimes(3, 10*time.Millisecond)))
	defer end()
	attempts := 0
	err := client.CallWithRetry(context.Background(), func(ctx context.Context) error {
		attempts++
		if attempts < 3 {
			return framework.ErrConnectionLoss
		}
		_, err := client.Create().OrSetData().ForPath(ctx, "/a", nil)
		return err
	})
	fmt.Println(attempts, err)
	// Output: 3 <nil>
}

// After the end of a session the work starts again.
func ExampleClient_CallInSession() {
	client, end := exampleClient()
	defer end()
	attempts := 0
	err := client.CallInSession(context.Background(), true, func(ctx context.Context) error {
		attempts++
		if attempts == 1 {
			if err := client.Reset(); err != nil { // as if the session had expired
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}
		_, err := client.Create().WithMode(builders.Ephemeral).ForPath(ctx, "/worker", nil)
		return err
	})
	fmt.Println(attempts, err)
	// Output: 2 <nil>
}

// Every operation takes a context, which bounds the wait for a connection too.
func ExampleClient_GetChildren() {
	client, end := exampleClient()
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, name := range []string{"b", "a"} {
		if _, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/list/"+name, nil); err != nil {
			log.Fatal(err)
		}
	}
	children, err := client.GetChildren().ForPath(ctx, "/list")
	slices.Sort(children) // the server has no order
	fmt.Println(children, err)
	// Output: [a b] <nil>
}

// Recipes pause as soon as the connection is in doubt, or only when the session is over.
func ExampleWithConnectionStateErrorPolicy() {
	client, err := framework.New("zk1:2181",
		framework.WithConnectionStateErrorPolicy(framework.SessionErrorPolicy{}))
	if err != nil {
		log.Fatal(err)
	}
	policy := client.ConnectionStateErrorPolicy()
	fmt.Println(policy.IsErrorState(framework.Suspended), policy.IsErrorState(framework.Lost))
	// Output: false true
}

// A process keeps a node of a fixed name, as brokers and workers do, and is the only one that writes its state.
func ExampleClient_Claim() {
	client, end := exampleClient()
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	claim, err := client.Claim(ctx, "/workers/7", "/workers-epochs/7", []byte("host-7:8080"))
	if errors.Is(err, framework.ErrClaimed) {
		log.Fatal("another process is worker 7: ", err)
	}
	if err != nil {
		log.Fatal(err)
	}
	_, err = claim.Client().Create().CreatingParentsIfNeeded().ForPath(ctx, "/state/7", []byte("ready"))
	fmt.Println(claim.Epoch(), err)

	// The next one, here of the same client, overtakes it.
	if _, err := client.Claim(ctx, "/workers/7", "/workers-epochs/7", nil); err != nil {
		log.Fatal(err)
	}
	_, err = claim.Client().SetData().ForPath(ctx, "/state/7", []byte("late"))
	fmt.Println(errors.Is(err, framework.ErrClaimLost))
	// Output:
	// 1 <nil>
	// true
}

func ExampleClient_CreateEphemeral() {
	client, end := exampleClient()
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, address := range []string{"host-7:8080", "host-7:8081"} { // the second call replaces the node of the first
		if err := client.CreateEphemeral(ctx, "/brokers/7", []byte(address)); err != nil {
			log.Fatal(err)
		}
	}
	data, err := client.GetData().ForPath(ctx, "/brokers/7")
	fmt.Println(string(data), err)
	// Output:
	// host-7:8081 <nil>
}
