package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

// A proxy ends the connection at a kind of request with which caches watch or read. They do without it, and leave the
// connection to others.
func TestCacheBehindProxyThatHangsUpAtOneKindOfRequestIsComplete(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"addWatch", "multiRead", "setWatches2"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			withScene(t, false, func(s *scene) {
				s.set(root+"=1", root+"/a/b=1", root+"/c=1")
				faults := s.place.Faults()
				faults.ResetTrace()
				faults.Add(curatortest.Rule{Ops: []string{kind}, Action: curatortest.CutBefore, MayMiss: kind == "setWatches2"})
				w := s.start()
				for i := range 3 {
					faults.CutAll() // the watches are set again
					s.set(fmt.Sprintf("%s/a/b=%d", root, i), fmt.Sprintf("%s/new-%d=1", root, i))
					w.await(fmt.Sprintf("NODE_CREATED %s/new-%d=1", root, i))
					w.equalsTree()
				}
				s.remove(root + "/c")
				w.equalsTree()
				if n := connects(faults); n > 3+3+3 {
					t.Errorf("%d connections\n%s", n, curatortest.FormatTrace(faults.Trace()))
				}
			})
		})
	}
}

// A PersistentWatcher has nothing in place of the persistent watch: it reports why it has none, and tries now and then.
func TestPersistentWatcherBehindProxyThatHangsUpReportsWhy(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root + "=1")
		unhandled := make(chan error, 1000)
		s.client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) { unhandled <- e.Err })
		faults := s.place.Faults()
		faults.ResetTrace()
		faults.Add(curatortest.Rule{Ops: []string{"addWatch"}, Action: curatortest.CutBefore})
		w := cache.NewPersistentWatcher(s.client, root, true)
		s.must(w.Start())
		s.closing(w)
		err := <-unhandled
		if !errors.Is(err, framework.ErrUnimplemented) || !strings.Contains(err.Error(), "of the kind addWatch") {
			t.Errorf("reported is %v", err)
		}
		for range 30 {
			<-time.After(time.Second)
			_, err := s.client.GetData().ForPath(s.ctx, root)
			s.must(err)
		}
		if n := connects(faults); n > 3+6 {
			t.Errorf("%d connections in 30 s\n%s", n, curatortest.FormatTrace(faults.Trace()))
		}
	})
}

// Some connections in a row are lost at one kind of request, as in a cluster that restarts. The client takes it for one
// that the servers lack. The next session asks again, and uses it.
func TestCacheTakesUpKindOfRequestInNextSessionThatIllServersHungUpAt(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"addWatch", "multiRead"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			withScene(t, false, func(s *scene) {
				s.set(root+"=1", root+"/a/b=1", root+"/c=1")
				faults := s.place.Faults()
				faults.Add(curatortest.Rule{Ops: []string{kind}, Action: curatortest.CutBefore, Count: 3})
				w := s.start()
				w.equalsTree()
				<-time.After(2 * time.Second) // the client leaves out the kind for a second
				faults.ResetTrace()
				s.newSession()
				w.equalsTree()
				if s.requests("addWatch") == 0 || s.requests("multiRead") == 0 || s.requests("getChildren2") > 0 {
					t.Errorf("the new session:\n%s", curatortest.FormatTrace(faults.Trace()))
				}
				s.set(root+"/a/b=2", root+"/new=1")
				w.await("NODE_CREATED " + root + "/new=1") // without a Sync, which would read
				w.equalsTree()
			})
		})
	}
}

// The list of a node is lost with the session, on servers that have no recursive watch. In the next session the cache
// asks for one again, and reads without watches until it is refused:
//
//	cache             server
//	addWatch
//	multiRead         refuses addWatch: the cache goes on with one-shot watches
//	                  answers multiRead, the list among it
//
// That list has set no watch.
func TestCacheWatchesWhatItHasListedBeforeRecursiveWatchIsRefused(t *testing.T) {
	t.Parallel()
	withScene(t, true, func(s *scene) {
		s.set(root, root+"/a", root+"/a/b")
		faults := s.place.Faults()
		faults.Add(curatortest.Rule{
			Ops: []string{"getChildren2"}, Path: "/**" + root + "/a", Action: curatortest.CutBefore, Count: 1,
		})
		restore, suspended := faults.RefuseConnects(), s.awaitState(framework.Suspended)
		w := s.newCache()
		s.begin(w)
		suspended()
		faults.KillSession(s.client.SessionID())
		restore()
		s.must(w.Ready(s.ctx))
		w.equalsTree()
		s.set(root + "/a/new")
		w.equalsTree()
	})
}

// A cache of one node has a one-shot watch in each session.
func TestCacheOfOneNodeAsksForNoRecursiveWatchInNextSession(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root + "=1")
		w := s.start(cache.WithMaxDepth(0))
		s.newSession()
		s.set(root + "=2")
		w.await("NODE_CHANGED " + root + "=2")
		if n := s.requests("addWatch"); n > 0 {
			t.Errorf("%d recursive watches", n)
		}
	})
}

// newSession ends the session of the client, and waits for the next one.
func (s *scene) newSession() {
	s.Helper()
	before := s.client.SessionID()
	s.must(s.client.Reset())
	testenv.Eventually(s, func() bool {
		return s.client.SessionID() != before && s.client.IsConnected()
	}, "a new session")
}

// The servers have answered addWatch to a cache. Then a proxy comes between that ends the connection at each, and the
// session ends. In the next session the cache sends a sync ahead of its addWatch, which has no answer either.
func TestCacheBehindProxyThatHangsUpAtAddWatchFromNextSessionOnIsComplete(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root+"=1", root+"/a/b=1")
		w := s.start()
		faults := s.place.Faults()
		faults.Add(curatortest.Rule{Ops: []string{"addWatch"}, Action: curatortest.CutBefore})
		faults.ResetTrace()
		s.must(s.client.Reset())
		s.set(root+"/a/b=2", root+"/new=1")
		<-time.After(2 * time.Minute)
		if n := connects(faults); n > 10+3+3 {
			t.Errorf("%d connections in 2 min", n)
		}
		if n, ok := w.Get(root + "/new"); !ok {
			t.Errorf("after 2 min the cache has %v, the tree %v: %v, %v", w.content(), s.tree(root), n, w.Err(root))
		}
	})
}

// On the next connection of the session addWatch is sent ahead of the multiRead.
func TestCacheBehindProxyThatHangsUpAtMultiReadFromNextConnectionOnIsComplete(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root+"=1", root+"/a/b=1")
		w := s.start()
		faults := s.place.Faults()
		faults.Add(curatortest.Rule{Ops: []string{"multiRead"}, Action: curatortest.CutBefore})
		faults.ResetTrace()
		faults.CutAll()
		s.set(root+"/a/b=2", root+"/new=1")
		<-time.After(2 * time.Minute)
		if n := connects(faults); n > 10+3+3 {
			t.Errorf("%d connections in 2 min", n)
		}
		if n, ok := w.Get(root + "/new"); !ok {
			t.Errorf("after 2 min the cache has %v, the tree %v: %v, %v", w.content(), s.tree(root), n, w.Err(root))
		}
	})
}

// The same for a PersistentWatcher, beside reads of the program that wait for each connection.
func TestPersistentWatcherBehindProxyThatHangsUpFromNextSessionOnLeavesConnections(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root + "=1")
		w := cache.NewPersistentWatcher(s.client, root, true)
		reset := queueOf(s, w.AddResetListener, func(struct{}) string { return "reset" })
		s.must(w.Start())
		s.closing(w)
		reset("reset")
		faults := s.place.Faults()
		faults.Add(curatortest.Rule{Ops: []string{"addWatch"}, Action: curatortest.CutBefore})
		faults.ResetTrace()
		s.must(s.client.Reset())
		reads := 0
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
			if _, err := s.client.GetData().ForPath(s.ctx, root); err == nil {
				reads++
			}
			<-time.After(10 * time.Millisecond)
		}
		if n := connects(faults); n > 10+3+6 {
			t.Errorf("%d connections in 2 min, %d reads", n, reads)
		}
	})
}

// A proxy hangs up on addWatch, also after a time in which a client that holds a lock sends quorum heartbeats. The
// cache does without that watch.
func TestCacheBehindProxyThatHangsUpLateIsFilled(t *testing.T) {
	t.Parallel()
	for name, beats := range map[string]bool{"without heartbeats": false, "with heartbeats": true} {
		for _, delay := range []time.Duration{time.Millisecond, 2 * time.Second} {
			t.Run(name+" "+delay.String(), func(t *testing.T) {
				t.Parallel()
				withScene(t, false, func(s *scene) {
					s.client = s.newClient(s.place, framework.WithSessionTimeout(10*time.Second))
					s.set(root+"=1", root+"/a=1")
					if beats {
						defer s.client.QuorumHeartbeats()()
					}
					faults := s.place.Faults()
					faults.ResetTrace()
					faults.Add(curatortest.Rule{
						Ops: []string{"addWatch"}, Action: curatortest.HoldRequest,
					})
					over := make(chan struct{})
					defer close(over)
					go func() { // the proxy
						for n := 0; ; {
							select {
							case <-over:
								return
							case <-time.After(time.Millisecond):
							}
							if now := s.requests("addWatch"); now > n {
								n = now
								select {
								case <-over:
									return
								case <-time.After(delay):
								}
								faults.CutAll()
							}
						}
					}()
					w := s.newCache()
					s.begin(w)
					<-time.After(2 * time.Minute)
					if n := s.requests("addWatch"); n > 10 || len(w.content()) != 2 {
						t.Errorf("%d connections with addWatch in 2 min; the cache has %v", n, w.content())
					}
				})
			})
		}
	}
}
