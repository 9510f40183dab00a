package callbacks_test

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
)

// A listener is removed by the function that adding it has returned, also from inside.
func ExampleListeners() {
	var listeners callbacks.Listeners[string]
	listeners.AddListener(func(_ context.Context, state string) { fmt.Println("always:", state) })
	var remove func()
	remove = listeners.AddListener(func(_ context.Context, state string) {
		fmt.Println("once:", state)
		remove()
	})
	listeners.Notify(context.Background(), "CONNECTED", nil)
	listeners.Notify(context.Background(), "SUSPENDED", nil)
	// Output:
	// always: CONNECTED
	// once: CONNECTED
	// always: SUSPENDED
}

// The callback of a background operation is told what came of it.
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

func ExampleNewWatcher() {
	watcher := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
		switch {
		case ev.Type != zk.EventSession:
			fmt.Println(ev.Type, ev.Path)
		case ev.State == zk.StateExpired:
			fmt.Println("the session is over, and the watch with it")
		}
	})
	// client.GetData().UsingWatcher(watcher).ForPath(ctx, "/config") has the client deliver to it:
	dispatch := func(run func(ctx context.Context)) { run(context.Background()) }
	watcher.Deliver(zk.Event{Type: zk.EventNodeDataChanged, Path: "/config"}, dispatch)
	watcher.Deliver(zk.Event{Type: zk.EventSession, State: zk.StateExpired}, dispatch)
	// Output:
	// EventNodeDataChanged /config
	// the session is over, and the watch with it
}

// With room for one event, a loop that looks at the state again each time misses nothing.
func ExampleNewChanWatcher() {
	changed := make(chan zk.Event, 1)
	watcher := callbacks.NewChanWatcher(changed)
	// client.GetChildren().UsingWatcher(watcher).ForPath(ctx, "/jobs") has the client deliver to it, which
	// never waits:
	for range 3 {
		watcher.Deliver(zk.Event{Type: zk.EventNodeChildrenChanged, Path: "/jobs"}, nil)
	}
	ev := <-changed
	fmt.Println(ev.Type, ev.Path)
	fmt.Println("events at hand:", len(changed))
	// Output:
	// EventNodeChildrenChanged /jobs
	// events at hand: 0
}
