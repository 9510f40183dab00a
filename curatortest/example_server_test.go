package curatortest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
)

// register is the code under test: what a service does to be found.
func register(ctx context.Context, client *framework.Client, addr string) (string, error) {
	return client.Create().CreatingParentsIfNeeded().
		WithMode(builders.EphemeralSequential).
		ForPath(ctx, "/services/billing/instance-", []byte(addr))
}

// A unit test of code that uses ZooKeeper: a server of its own, a client, and a look at what is on the server. In a
// test, NewServerT takes the place of NewServer and its error.
func ExampleServer() {
	ctx := context.Background()
	server, err := curatortest.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // the end of the program
	client, err := framework.New(server.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // likewise

	path, err := register(ctx, client, "10.0.0.7:8080")
	node, _ := server.Node(path)
	fmt.Println(path, err, string(node.Data))

	// What becomes of it when the service is gone?
	if err := server.ExpireSession(client.SessionID()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("instances:", len(server.Children("/services/billing")))

	// Output:
	// /services/billing/instance-0000000000 <nil> 10.0.0.7:8080
	// instances: 0
}

// The connection is lost after the server has created the node and before the client hears of it: was it created or
// not? A plain create cannot know and tries again, which makes a second node. With protection the client finds its
// first one.
func ExampleFaults_Add() {
	ctx := context.Background()
	server, err := curatortest.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // the end of the program
	client, err := framework.New(server.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Start(); err != nil {
		log.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // likewise
	if err := client.CreateContainers(ctx, "/plain"); err != nil {
		log.Fatal(err)
	}
	if err := client.CreateContainers(ctx, "/protected"); err != nil {
		log.Fatal(err)
	}
	create := client.Create().WithMode(builders.EphemeralSequential)

	for _, queue := range []struct {
		path   string
		create builders.Create
	}{
		{"/plain", create},
		{"/protected", create.WithProtection()},
	} {
		lost := server.Faults().Add(curatortest.Rule{
			Ops:    []string{"create", "create2"},
			Path:   queue.path + "/*",
			Count:  1,
			Action: curatortest.CutAfter,
		})
		_, err := queue.create.ForPath(ctx, queue.path+"/job-", nil)
		fmt.Printf("%s: %d connection lost, error %v, %d nodes\n",
			queue.path, lost.Hits(), err, len(server.Children(queue.path)))
	}

	// Output:
	// /plain: 1 connection lost, error <nil>, 2 nodes
	// /protected: 1 connection lost, error <nil>, 1 nodes
}

// Two processes contend for a lock, and the network parts the holder from its server. The holder learns that its lock
// is lost before the other one gets it.
func ExampleCluster_partition() {
	const sessionTimeout = 500 * time.Millisecond
	ctx := context.Background()
	cluster, err := curatortest.NewCluster(3)
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close() //nolint:errcheck // the end of the program
	process := func(server *curatortest.Server) *framework.Client {
		client, err := framework.New(server.ConnectString(),
			framework.WithSessionTimeout(sessionTimeout),
			framework.WithoutEnsembleTracker()) // else it goes on to the other servers
		if err != nil {
			log.Fatal(err)
		}
		if err := client.Start(); err != nil {
			log.Fatal(err)
		}
		return client
	}
	first, second := process(cluster.Servers()[0]), process(cluster.Servers()[1])
	defer first.Close()  //nolint:errcheck // likewise
	defer second.Close() //nolint:errcheck // likewise

	hold, err := locks.NewInterProcessMutex(first, "/lock").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	restore := cluster.Servers()[0].Faults().BlackHole(curatortest.Both)
	defer restore()

	next, err := locks.NewInterProcessMutex(second, "/lock").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	<-hold.Context().Done()
	fmt.Println("the first process knows:", errors.Is(context.Cause(hold.Context()), locks.ErrLockLost))
	fmt.Println("tokens grow:", next.Token() > hold.Token())
	if err := next.Release(ctx); err != nil {
		log.Fatal(err)
	}

	// Output:
	// the first process knows: true
	// tokens grow: true
}
