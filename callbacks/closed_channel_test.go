package callbacks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/hook"
)

// The send is on the goroutine that reads the connection: a panic there would end the process.
func TestWatcherWithAClosedChannelIsReportedOnceOnTheDispatcher(t *testing.T) {
	for name, ch := range map[string]chan zk.Event{"with room": make(chan zk.Event, 1), "without": make(chan zk.Event)} {
		t.Run(name, func(t *testing.T) {
			w := callbacks.NewChanWatcher(ch)
			close(ch)
			var dispatched []func(ctx context.Context)
			for range 3 {
				hook.Deliver(w, zk.Event{Type: zk.EventNodeDeleted, Path: "/a"}, func(run func(ctx context.Context)) {
					dispatched = append(dispatched, run)
				})
			}
			if len(dispatched) != 1 {
				t.Fatalf("the dispatcher has %d tasks, want 1", len(dispatched))
			}
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, "channel is closed") {
					t.Errorf("panic with %q, want it to say that the channel is closed", p)
				}
			}()
			dispatched[0](t.Context())
		})
	}
}
