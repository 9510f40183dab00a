package queue

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
)

// TestEventsTakenByTwoGoroutinesAreInOrder has a fetcher that waits get an event while a settlement takes the next one: news
// in the wrong order would keep an item locked for ever.
func TestEventsTakenByTwoGoroutinesAreInOrder(t *testing.T) {
	t.Parallel()
	for range 100 { // who is first is chance
		synctest.Test(t, func(t *testing.T) {
			w := newQueueWatch(&place{path: "/queue", lockPath: "/locks"})
			waited, heard := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(waited)
				w.await(context.Background(), nil)
			}()
			synctest.Wait() // it waits for an event
			w.mu.Lock()     // and cannot note it
			w.watcher.Deliver(zk.Event{Type: zk.EventNodeCreated, Path: "/locks/queue-0000000000"}, nil)
			for len(w.events) > 0 {
				runtime.Gosched()
			}
			w.watcher.Deliver(zk.Event{Type: zk.EventNodeDeleted, Path: "/locks/queue-0000000000"}, nil)
			go func() {
				defer close(heard)
				w.current()
			}()
			runtime.Gosched()
			w.mu.Unlock()
			<-waited
			<-heard
			all, missed := w.take()
			if missed || len(all) != 2 || all[0].what != locked || all[1].what != unlocked {
				t.Errorf("news %v", all)
			}
		})
	}
}
