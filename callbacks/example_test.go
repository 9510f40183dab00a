package callbacks_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

// connect returns a client of a server of its own; disconnect closes both.
func connect() (client *framework.Client, disconnect func()) {
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
	return client, func() {
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			log.Fatal(err)
		}
	}
}

// A listener is removed by the function that adding it has returned, also from inside.
func ExampleListener() {
	client, disconnect := connect()
	defer disconnect()

	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
		fmt.Println("always:", e.Message)
	})
	var remove func()
	remove = client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
		fmt.Println("once:", e.Message)
		remove()
	})
	ctx := context.Background()
	client.ReportUnhandled(ctx, "cannot clean up", errors.New("disk full"))
	client.ReportUnhandled(ctx, "cannot clean up again", errors.New("disk full"))
	// Output:
	// always: cannot clean up
	// once: cannot clean up
	// always: cannot clean up again
}

// The callback of a background operation gets its result.
func ExampleBackgroundCallback() {
	var callback callbacks.BackgroundCallback = func(_ context.Context, ev callbacks.Event) {
		if ev.Err != nil {
			fmt.Println(ev.Type, ev.Path, "failed:", ev.Err)
			return
		}
		fmt.Println(ev.Type, ev.Name)
	}
	// client.Create().WithMode(builders.PersistentSequential).InBackground(callback).
	// ForPath(ctx, "/jobs/job-", data) has the client call it:
	callback(context.Background(), callbacks.Event{
		Type: callbacks.Create, Path: "/jobs/job-", Name: "/jobs/job-0000000007",
	})
	callback(context.Background(), callbacks.Event{Type: callbacks.Delete, Path: "/jobs/old", Err: zk.ErrNoNode})
	// Output:
	// CREATE /jobs/job-0000000007
	// DELETE /jobs/old failed: zk: node does not exist
}

// The function of a watcher runs on the dispatcher of the client, like every callback.
func ExampleNewWatcher() {
	client, disconnect := connect()
	defer disconnect()

	called := make(chan struct{})
	watcher := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
		switch {
		case ev.Type != zk.EventSession:
			fmt.Println(ev.Type, ev.Path)
			close(called)
		case ev.State == zk.StateExpired:
			fmt.Println("the session is over, and the watch with it")
		}
	})
	ctx := context.Background()
	if _, err := client.CheckExists().UsingWatcher(watcher).ForPath(ctx, "/config"); err != nil {
		log.Fatal(err)
	}
	if _, err := client.Create().ForPath(ctx, "/config", nil); err != nil {
		log.Fatal(err)
	}
	<-called
	// Output:
	// EventNodeCreated /config
}

// With room for one event, a loop that looks at the state again each time misses nothing.
func ExampleNewChanWatcher() {
	client, disconnect := connect()
	defer disconnect()

	ctx := context.Background()
	if _, err := client.Create().ForPath(ctx, "/jobs", nil); err != nil {
		log.Fatal(err)
	}
	changed := make(chan zk.Event, 1)
	watcher := callbacks.NewChanWatcher(changed)
	for range 2 {
		jobs, err := client.GetChildren().UsingWatcher(watcher).ForPath(ctx, "/jobs")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("jobs:", len(jobs))
		if len(jobs) == 0 { // another process adds one
			if _, err := client.Create().ForPath(ctx, "/jobs/first", nil); err != nil {
				log.Fatal(err)
			}
			ev := <-changed
			fmt.Println(ev.Type, ev.Path)
		}
	}
	// Output:
	// jobs: 0
	// EventNodeChildrenChanged /jobs
	// jobs: 1
}
