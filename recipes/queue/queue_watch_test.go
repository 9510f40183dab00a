package queue

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
)

// awaitingWatch calls fn while a fetcher awaits events, as often as chance may need to make a difference.
func awaitingWatch(t *testing.T, fn func(w *queueWatch)) {
	t.Helper()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			w := newQueueWatch(&place{path: "/queue", lockPath: "/locks"})
			ctx, cancel := context.WithCancel(t.Context())
			go w.await(ctx, time.Time{})
			synctest.Wait()
			fn(w)
			cancel()
		})
	}
}

// TestEventsTakenByTwoGoroutinesAreInOrder has a settlement look at the queue while a fetcher awaits events: news in
// the wrong order would keep an item locked for ever.
func TestEventsTakenByTwoGoroutinesAreInOrder(t *testing.T) {
	t.Parallel()
	awaitingWatch(t, func(w *queueWatch) {
		hook.Deliver(w.watcher, zk.Event{Type: zk.EventNodeCreated, Path: "/locks/queue-0000000000"}, nil)
		hook.Deliver(w.watcher, zk.Event{Type: zk.EventNodeDeleted, Path: "/locks/queue-0000000000"}, nil)
		w.current()
		synctest.Wait()
		all, missed := w.take()
		if missed || len(all) != 2 || all[0].what != locked || all[1].what != unlocked {
			t.Errorf("news %v", all)
		}
	})
}

// TestDeletionOfThePathIsNotedBeforeLaterAnswers has a fetcher await events when the path is deleted.
func TestDeletionOfThePathIsNotedBeforeLaterAnswers(t *testing.T) {
	t.Parallel()
	awaitingWatch(t, func(w *queueWatch) {
		before := w.current()
		hook.Deliver(w.watcher, zk.Event{Type: zk.EventNodeDeleted, Path: "/queue"}, nil)
		if w.current() == before {
			t.Error("the path was deleted, and its epoch is the same")
		}
	})
}

// TestQueueWatchOutlivesThatOfAnotherQueueThatIsClosed ends the watch of a queue as Close does, while another queue of
// the same client watches the same path. That one has the event of the next item.
func TestQueueWatchOutlivesThatOfAnotherQueueThatIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, server := t.Context(), curatortest.NewServerT(t, curatortest.InMemory())
		client, err := framework.New(server.Addr(), framework.WithDialer(server.DialContext),
			framework.WithEnsembleTracker(false))
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
		p, flight := &place{client: client, path: "/queue"}, builders.InOneFlight(ctx)
		open, closed := newQueueWatch(p), newQueueWatch(p)
		for _, w := range []*queueWatch{open, closed} {
			if err := w.all(flight); err != nil {
				t.Fatal(err)
			}
		}
		closed.remove(flight)
		path := closed.pathOnly(flight)
		if _, err := path.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Create().ForPath(ctx, "/queue/queue-0000000000", nil); err != nil {
			t.Fatal(err)
		}
		all, missed := open.take()
		if missed || len(all) != 1 || all[0].what != created {
			t.Errorf("news %v, missed %v", all, missed)
		}
	})
}
