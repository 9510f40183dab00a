package claim

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// awaitingWatch calls fn while a fetcher awaits events, as often as chance may need to make a difference.
func awaitingWatch(t *testing.T, fn func(w *Watch)) {
	t.Helper()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			w := NewWatch(&node.Paths{Queue: "/queue", Locks: "/locks"})
			ctx, cancel := context.WithCancel(t.Context())
			go w.Await(ctx, time.Time{})
			synctest.Wait()
			fn(w)
			cancel()
		})
	}
}

// TestEventsTakenByTwoGoroutinesAreInOrder has a settlement look at the queue while a fetcher awaits events: events in
// the wrong order would keep an item locked for ever.
func TestEventsTakenByTwoGoroutinesAreInOrder(t *testing.T) {
	t.Parallel()
	awaitingWatch(t, func(w *Watch) {
		hook.Deliver(w.Watcher, zk.Event{Type: zk.EventNodeCreated, Path: "/locks/queue-0000000000"}, nil)
		hook.Deliver(w.Watcher, zk.Event{Type: zk.EventNodeDeleted, Path: "/locks/queue-0000000000"}, nil)
		w.Gap()
		synctest.Wait()
		all, missed := w.Take()
		if missed || len(all) != 2 || all[0].What != Locked || all[1].What != Unlocked {
			t.Errorf("events %v", all)
		}
	})
}

// TestQueueWatchOutlivesThatOfAnotherQueueThatIsClosed ends the watch of a queue as Close does, while another queue of
// the same client watches the same path. That one has the event of the next item.
func TestQueueWatchOutlivesThatOfAnotherQueueThatIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, server := t.Context(), curatortest.NewServerT(t, curatortest.WithoutPort())
		client, err := framework.New(server.Addr(), framework.WithDialer(server.DialContext),
			framework.WithoutEnsembleTracker())
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		if _, err := client.Create().ForPath(ctx, "/queue", nil); err != nil {
			t.Fatal(err)
		}
		p, flight := &node.Paths{Client: client, Queue: "/queue"}, builders.Pipelined(ctx)
		open, closed := NewWatch(p), NewWatch(p)
		for _, w := range []*Watch{open, closed} {
			if err := w.All(flight); err != nil {
				t.Fatal(err)
			}
		}
		closed.Remove(flight)
		path := closed.PathOnly(flight)
		if _, err := path.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Create().ForPath(ctx, "/queue/queue-0000000000", nil); err != nil {
			t.Fatal(err)
		}
		all, missed := open.Take()
		if missed || len(all) != 1 || all[0].What != Created {
			t.Errorf("events %v, missed %v", all, missed)
		}
	})
}
