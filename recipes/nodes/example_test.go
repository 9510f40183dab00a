package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/nodes"
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

func ExamplePersistentNode() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	node := nodes.NewPersistentNode(client, "/members/a", builders.Ephemeral, []byte("10.0.0.7"))
	node.AddListener(func(_ context.Context, ev nodes.Event) {
		if ev.Type == nodes.Refused {
			log.Print(ev.Err) // it is tried again
		}
	})
	if err := node.Start(); err != nil {
		log.Fatal(err)
	}
	if err := node.WaitForInitialCreate(ctx); err != nil {
		log.Fatal(err)
	}
	if err := node.SetData(ctx, []byte("10.0.0.8")); err != nil {
		log.Fatal(err)
	}
	data, err := client.GetData().ForPath(ctx, node.ActualPath())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", node.ActualPath(), data)
	if err := node.Close(ctx); err != nil {
		log.Fatal(err)
	}
	stat, err := client.CheckExists().ForPath(ctx, "/members/a")
	fmt.Println(stat, err)
	// Output:
	// /members/a: 10.0.0.8
	// <nil> <nil>
}

func ExamplePersistentTTLNode() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	task := nodes.NewPersistentTTLNode(client, "/tasks/7", 10*time.Minute, []byte("running"))
	if err := task.Start(); err != nil {
		log.Fatal(err)
	}
	if err := task.WaitForInitialCreate(ctx); err != nil {
		log.Fatal(err)
	}
	if err := task.Close(ctx); err != nil { // the node stays until nobody has written its child for ten minutes
		log.Fatal(err)
	}
	data, err := client.GetData().ForPath(ctx, "/tasks/7")
	fmt.Println(string(data), err)
	// Output:
	// running <nil>
}

func ExampleGroupMember() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	var members []*nodes.GroupMember
	for _, id := range []string{"a", "b"} { // in any process
		m := nodes.NewGroupMember(client, "/workers", id, []byte("idle"))
		if err := m.Start(); err != nil {
			log.Fatal(err)
		}
		if err := m.Ready(ctx); err != nil {
			log.Fatal(err)
		}
		members = append(members, m)
	}
	for ev := range members[0].Changes(ctx) { // those who are in, and then every change
		if ev.ID != "b" {
			continue
		}
		if ev.Left {
			fmt.Println("b has left")
			break
		}
		fmt.Println("b is", string(ev.Payload))
		go func() { // any number of times
			if err := members[1].Close(ctx); err != nil {
				log.Print(err)
			}
		}()
	}
	for id, payload := range members[0].CurrentMembers() {
		fmt.Println(id, string(payload))
	}
	if err := members[0].Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// b is idle
	// b has left
	// a idle
}

// An operator stops a process by the deletion of its node.
func ExampleWithEndWhenDeleted() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	node := nodes.NewPersistentNode(client, "/workers/a", builders.Ephemeral, nil, nodes.WithEndWhenDeleted())
	if err := node.Start(); err != nil {
		log.Fatal(err)
	}
	if err := node.WaitForInitialCreate(ctx); err != nil {
		log.Fatal(err)
	}
	if err := client.Delete().ForPath(ctx, "/workers/a"); err != nil { // the operator
		log.Fatal(err)
	}
	<-node.Done()
	fmt.Println(errors.Is(node.Err(), nodes.ErrDeleted))
	if err := node.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: true
}
