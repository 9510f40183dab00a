package cache_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

// A server sends no event of a node that the client may not read: see docs/versions.md.
func TestCacheReadsNodeThatWasUnreadableOnTheNextConnection(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		w := s.startAndChangeSecretly(cache.NewCuratorCache(s.client, root))
		s.cutOff()()
		w.equalsTree()
	})
}

func TestCacheRebuildReadsNodeThatWasUnreadable(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		w := s.startAndChangeSecretly(cache.NewCuratorCache(s.client, root))
		s.must(w.Sync(s.ctx))
		if node, ok := w.Get(root + "/changed"); !ok || string(node.Data) != "1" || w.Err(root+"/changed") != nil {
			s.Errorf("the cache has %+v with the error %v without a Rebuild", node, w.Err(root+"/changed"))
		}
		s.must(w.Rebuild(s.ctx))
		w.equalsTree()
	})
}

func TestTreeCacheRebuildReadsNodeThatWasUnreadable(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		c := cache.NewTreeCache(s.client, root)
		want := queueOf(s, c.AddListener, treeText)
		s.must(c.Start())
		s.closing(c)
		want("INITIALIZED")                                                  // without a node: the changes come behind
		w := s.startAndChangeSecretly(cache.NewCuratorCache(s.client, root)) // both caches have the old state
		s.must(c.Rebuild(s.ctx))
		s.must(w.Rebuild(s.ctx))
		for path, node := range w.All() {
			if got := c.CurrentData(path); got == nil || got.Stat.Mzxid != node.Stat.Mzxid {
				t.Errorf("%s: %+v, want %+v", path, got, node)
			}
		}
		if c.Size() != w.Size() {
			t.Errorf("%d nodes, want %d", c.Size(), w.Size())
		}
		want("NODE_ADDED /config=1")
	})
}

func TestCacheRebuildHasTheErrorsOfItsLife(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		w := s.newCache()
		if err := w.Rebuild(s.ctx); !errors.Is(err, cache.ErrNotStarted) {
			s.Errorf("before the start: %v", err)
		}
		s.begin(w)
		s.must(w.Rebuild(s.ctx))
		heal := s.cutOff()
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		defer cancel()
		if err := w.Rebuild(ctx); !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("without a connection: %v", err)
		}
		heal()
		s.must(w.Close())
		if err := w.Rebuild(s.ctx); !errors.Is(err, cache.ErrClosed) {
			s.Errorf("after Close: %v", err)
		}
	})
}

// startAndChangeSecretly returns a cache that is ready, after changes that it got no event of.
func (s *scene) startAndChangeSecretly(c *cache.CuratorCache) *watched {
	s.Helper()
	s.set(root+"=1", root+"/changed=1", root+"/deleted=1")
	w := s.cacheOf(c)
	s.begin(w)
	s.must(w.Ready(s.ctx))
	admin := s.newClient(s.place, framework.WithAuth("digest", []byte("u:p")))
	secret, open := zk.DigestACL(zk.PermAll, "u", "p"), zk.WorldACL(zk.PermAll)
	setACL := func(path string, acl []zk.ACL) {
		_, err := admin.SetACL().WithACL(acl...).ForPath(s.ctx, path)
		s.must(err)
	}
	setACL(root+"/changed", secret)
	setACL(root+"/deleted", secret)
	_, err := admin.SetData().ForPath(s.ctx, root+"/changed", []byte("2"))
	s.must(err)
	s.must(admin.Delete().ForPath(s.ctx, root+"/deleted"))
	_, err = admin.Create().WithACL(secret...).ForPath(s.ctx, root+"/created", []byte("1"))
	s.must(err)
	for _, path := range []string{root + "/changed", root + "/created"} {
		setACL(path, open)
	}
	return w
}

// The pauses between the reads of the node are seconds long by then.
func TestCacheSyncReadsAgainWhatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/secret/below=1")
		admin := s.newClient(s.place, framework.WithAuth("digest", []byte("u:p")))
		_, err := admin.SetACL().WithACL(zk.DigestACL(zk.PermAll, "u", "p")...).ForPath(s.ctx, root+"/secret")
		s.must(err)
		w := s.start()
		pause(s.ctx, 5*time.Second)
		if err := w.Err(root + "/secret"); !errors.Is(err, zk.ErrNoAuth) {
			s.Errorf("error %v", err)
		}
		_, err = admin.SetACL().WithACL(zk.WorldACL(zk.PermAll)...).ForPath(s.ctx, root+"/secret")
		s.must(err)
		s.must(w.Sync(s.ctx))
		if err := w.Err(root + "/secret"); err != nil {
			s.Errorf("error %v", err)
		}
		if diff := cmp.Diff(w.tree(root), w.content()); diff != "" {
			s.Errorf("tree and cache (-want +got):\n%s", diff)
		}
	})
}

// A watch that cannot be set is requested again with growing pauses, and at once by Sync.
func TestCacheSyncSetsTheWatchThatCouldNotBeSet(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		w := s.start()
		refusal := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		s.must(s.client.Watches().RemoveAll().ForPath(s.ctx, root))
		testenv.Eventually(t, func() bool { return errors.Is(w.Err(root), zk.ErrNoAuth) }, "the error of the watch")
		pause(s.ctx, 20*time.Second)
		refusal.Remove()
		s.set(root + "/a=2")
		began := time.Now()
		w.equalsTree()
		if d := time.Since(began); !testenv.Real() && d > time.Second {
			s.Errorf("Sync took %v", d)
		}
	})
}
