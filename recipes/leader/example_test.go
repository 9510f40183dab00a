package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
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

func ExampleLeaderLatch() {
	client, stop := connected()
	defer stop()
	latch := leader.NewLeaderLatch(client, "/leader", leader.WithID("host-7"))
	if err := latch.Start(); err != nil {
		log.Fatal(err)
	}
	defer latch.Close() //nolint:errcheck // it has no error

	ctx := context.Background()
	leadership, err := latch.Await(ctx)
	if err != nil {
		log.Fatal(err)
	}
	who, err := latch.Leader(ctx)
	fmt.Println(who.ID, "leads:", leadership.Context().Err() == nil, err)
	// Output: host-7 leads: true <nil>
}

func ExampleLeaderSelector() {
	client, stop := connected()
	defer stop()
	led := make(chan struct{})
	selector := leader.NewLeaderSelector(client, "/leader", func(ctx context.Context) error {
		fmt.Println("leading until this returns, or the context ends:", ctx.Err() == nil)
		close(led)
		return nil
	})
	if err := selector.Start(); err != nil {
		log.Fatal(err)
	}
	<-led
	if err := selector.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: leading until this returns, or the context ends: true
}

func ExampleLeadership_Client() {
	client, stop := connected()
	defer stop()
	ctx := context.Background()
	if _, err := client.Create().ForPath(ctx, "/plan", nil); err != nil {
		log.Fatal(err)
	}
	lead := func(latch *leader.LeaderLatch) *leader.Leadership {
		if err := latch.Start(); err != nil {
			log.Fatal(err)
		}
		leadership, err := latch.Await(ctx)
		if err != nil {
			log.Fatal(err)
		}
		return leadership
	}
	before := leader.NewLeaderLatch(client, "/leader")
	first := lead(before)
	if err := before.Close(); err != nil { // or it loses the lead without knowing
		log.Fatal(err)
	}
	after := leader.NewLeaderLatch(client, "/leader")
	second := lead(after)
	defer after.Close() //nolint:errcheck // it has no error
	_, err := second.Client().SetData().ForPath(ctx, "/plan", []byte("of the second"))
	fmt.Println("second writes:", err == nil)
	_, err = first.Client().SetData().ForPath(ctx, "/plan", []byte("of the first, late"))
	fmt.Println("first is refused:", errors.Is(err, leader.ErrLeadershipLost))
	// Output:
	// second writes: true
	// first is refused: true
}

func ExampleObserveLatch() {
	client, stop := connected()
	defer stop()
	latch := leader.NewLeaderLatch(client, "/leader", leader.WithID("host-7"))
	ctx := context.Background()
	for who, err := range leader.ObserveLatch(ctx, client, "/leader") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q leads\n", who.ID)
		if who.ID != "" {
			break
		}
		if err := latch.Start(); err != nil {
			log.Fatal(err)
		}
	}
	if err := latch.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// "" leads
	// "host-7" leads
}

func ExampleObserveSelector() {
	client, stop := connected()
	defer stop()
	selector := leader.NewLeaderSelector(client, "/leader", func(ctx context.Context) error {
		<-ctx.Done() // lead until there is a reason to stop
		return ctx.Err()
	}, leader.WithID("host-7"))
	ctx := context.Background()
	for who, err := range leader.ObserveSelector(ctx, client, "/leader") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q leads\n", who.ID)
		if who.ID != "" {
			break
		}
		if err := selector.Start(); err != nil {
			log.Fatal(err)
		}
	}
	if err := selector.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// "" leads
	// "host-7" leads
}

// One call takes part, leads while the function runs, and gives up leadership.
func ExampleDo() {
	client, stop := connected()
	defer stop()
	err := leader.Do(context.Background(), client, "/leader", func(ctx context.Context) error {
		_, err := leader.LeadershipOf(ctx).Client().Create().ForPath(ctx, "/plan", []byte("by the leader"))
		return err // ErrLeadershipLost: another process leads, and nothing was written
	}, leader.WithID("host-7"))
	fmt.Println(err)
	// Output: <nil>
}
