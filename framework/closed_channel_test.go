package framework_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

func TestWatcherClosedChannelIsReportedOnce(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	unhandled := make(chan string, 10)
	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
		unhandled <- e.Message + ": " + e.Err.Error()
	})
	ctx := testenv.Context(t)
	closed, open := make(chan zk.Event, 1), make(chan zk.Event, 10)
	bad, good := callbacks.NewChanWatcher(closed), callbacks.NewChanWatcher(open)
	for _, w := range []*callbacks.Watcher{bad, good} {
		must(t, client.Watches().Add().UsingWatcher(w).ForPath(ctx, "/"))
	}
	close(closed)
	for _, path := range []string{"/a", "/b", "/c"} {
		create(t, client, path, "")
		if ev := receive(t, open); ev.Path != path {
			t.Errorf("got %+v, want %s", ev, path)
		}
	}
	if got := receive(t, unhandled); !strings.Contains(got, "watcher") || !strings.Contains(got, "channel is closed") {
		t.Errorf("unhandled %q, want it to say that the watcher's channel is closed", got)
	}
	closeClient(t, client)
	if len(unhandled) > 0 {
		t.Errorf("unhandled once more: %s", <-unhandled)
	}
}
