package callbacks_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/hook"
)

type key struct{}

func TestWatcherWithAFunctionIsCalledOnTheDispatcher(t *testing.T) {
	var got zk.Event
	var value any
	w := callbacks.NewWatcher(func(ctx context.Context, ev zk.Event) { got, value = ev, ctx.Value(key{}) })
	var dispatched []func(ctx context.Context)
	ev := zk.Event{Type: zk.EventNodeDeleted, Path: "/a"}
	hook.Deliver(w, ev, func(run func(ctx context.Context)) { dispatched = append(dispatched, run) })
	if got.Path != "" || len(dispatched) != 1 {
		t.Fatalf("got %+v ahead of the dispatcher, which has %d tasks", got, len(dispatched))
	}
	dispatched[0](context.WithValue(t.Context(), key{}, "v"))
	if got != ev || value != "v" {
		t.Errorf("got %+v with %v", got, value)
	}
}

func TestWatcherWithAChannelNeverBlocks(t *testing.T) {
	ch := make(chan zk.Event, 1)
	w := callbacks.NewChanWatcher(ch)
	deliver := func(path string) {
		hook.Deliver(w, zk.Event{Path: path}, func(func(context.Context)) { t.Error("uses the dispatcher") })
	}
	deliver("/first")
	deliver("/second") // is dropped: that something has happened is known
	if ev := <-ch; ev.Path != "/first" {
		t.Errorf("got %+v", ev)
	}
	deliver("/third")
	if ev := <-ch; ev.Path != "/third" {
		t.Errorf("got %+v", ev)
	}
	hook.Deliver(callbacks.NewChanWatcher(make(chan zk.Event)), zk.Event{}, nil) // without a receiver
}
