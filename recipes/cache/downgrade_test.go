package cache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

// connects returns how many connections the clients have tried to open.
func connects(f *curatortest.Faults) (n int) {
	for _, e := range f.Trace() {
		if !e.Reply && e.Op == "connect" {
			n++
		}
	}
	return n
}

// The servers were 3.6 or newer and are 3.5 now.
func TestCacheOnDowngradedServerContinuesWithOneShotWatches(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root+"=1", root+"/a/b=1", root+"/c=1")
		w := s.start()
		faults, session := s.place.Faults(), s.client.SessionID()
		faults.ResetTrace()
		reconnected := s.awaitState(framework.Reconnected)
		testenv.Downgrade(faults)
		reconnected()
		s.set(root+"/a/b=2", root+"/d=1")
		s.remove(root + "/c")
		w.equalsTree()
		for i := range 3 {
			s.set(fmt.Sprintf("%s/a/b=%d", root, i+3), fmt.Sprintf("%s/new-%d=1", root, i))
			w.await(fmt.Sprintf("NODE_CREATED %s/new-%d=1", root, i)) // without a Sync, which would read
			w.equalsTree()
		}
		// The refusal of setWatches2 ends the first connection. If the cache learns of it late, the request for its watch
		// ends the second.
		if n := connects(faults); n > 3 {
			t.Errorf("%d connections\n%s", n, curatortest.FormatTrace(faults.Trace()))
		}
		if got := s.client.SessionID(); got != session {
			t.Errorf("session %#x, want %#x", got, session)
		}
	})
}

// A request that an old server does not know ends its connection. The watcher must not request its watch again on each
// new one, or no operation of the client gets through.
func TestPersistentWatcherOnDowngradedServerLeavesTheConnectionAlone(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root + "=1")
		w := cache.NewPersistentWatcher(s.client, root, true)
		want := queueOf(s, w.AddListener, eventText)
		reset := queueOf(s, w.AddResetListener, func(struct{}) string { return "reset" })
		unhandled := make(chan error, 100)
		s.client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
			unhandled <- e.Err
		})
		s.must(w.Start())
		s.closing(w)
		reset("reset")
		faults := s.place.Faults()
		faults.ResetTrace()
		testenv.Downgrade(faults)
		want("EventNotWatching /config")
		if err := <-unhandled; !errors.Is(err, framework.ErrUnimplemented) {
			t.Errorf("reported is %v", err)
		}
		for range 30 {
			<-time.After(time.Second)
			_, err := s.client.GetData().ForPath(s.ctx, root)
			s.must(err)
		}
		if n := connects(faults); n > 12 {
			t.Errorf("%d connections in 30 s\n%s", n, curatortest.FormatTrace(faults.Trace()))
		}
	})
}

// A server before 3.6 is asked once in each session, which costs one connection.
func TestCacheOnOldServerAsksOnceInEachSession(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		faults := s.place.Faults()
		testenv.Downgrade(faults)
		w := s.start()
		for i := range 3 {
			faults.ResetTrace()
			s.newSession()
			w.equalsTree()
			s.set(fmt.Sprintf("%s/new-%d=1", root, i))
			w.await(fmt.Sprintf("NODE_CREATED %s/new-%d=1", root, i)) // without a Sync, which would read
			w.equalsTree()
			// If the cache learns of the new session late, it asks twice.
			if asked, n := s.requests("addWatch"), connects(faults); asked == 0 || asked > 2 || n > 3 {
				t.Errorf("asked %d times, %d connections\n%s", asked, n, curatortest.FormatTrace(faults.Trace()))
			}
		}
	})
}
