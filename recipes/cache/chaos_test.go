package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/zkpath"
)

const (
	chaosWriters = 4
	chaosGroups  = 20
)

// TestCacheChaos has writers change a tree while the connection and the session of the caches are lost. After that all
// caches have what the tree has, and no listener was called with an older state after a newer one.
func TestCacheChaos(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		c := &cacheChaos{
			// A minute of 5,000 nodes in virtual time takes two cores more than a minute.
			scene: s, seed: rand.Uint64(), nodes: testenv.Size(400, 400, 5000),
			lasts: testenv.Size(5*time.Second, 5*time.Second, 2*time.Minute), newest: make(map[string]int64),
		}
		s.Cleanup(func() {
			if s.Failed() {
				s.Logf("seed %d", c.seed)
			}
		})
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), c.lasts+5*time.Minute)
		s.Cleanup(cancel)
		s.ctx = ctx
		c.run()
	})
}

type cacheChaos struct {
	*scene
	seed  uint64
	nodes int
	lasts time.Duration

	mu     sync.Mutex
	newest map[string]int64 // by cache and path
}

func (c *cacheChaos) run() {
	group := root + "/g0"
	w := c.newCache()
	c.begin(w)
	tree := cache.NewTreeCache(c.client, root)
	tree.AddListener(func(_ context.Context, ev cache.TreeCacheEvent) { c.checkNewer("tree", ev.Data) })
	c.must(tree.Start())
	c.closing(tree)
	children := cache.NewPathChildrenCache(c.client, group)
	children.AddListener(func(_ context.Context, ev cache.PathChildrenCacheEvent) {
		c.checkNewer("children", ev.Data)
	})
	c.must(children.Start(c.ctx, cache.Normal))
	c.closing(children)
	node := cache.NewNodeCache(c.client, group+"/n0")
	node.AddListener(func(_ context.Context, n *cache.ChildData) { c.checkNewer("node", n) })
	c.must(node.Start())
	c.closing(node)

	c.disturb()

	w.equalsTree()
	want := c.tree(root)
	content := func(nodes []*cache.ChildData) []string {
		out := []string{}
		for _, n := range nodes {
			out = append(out, n.Path+"="+string(n.Data))
		}
		slices.Sort(out)
		return out
	}
	of := func(accept func(path string) bool) []string {
		out := []string{}
		for _, n := range want {
			if path, _, _ := strings.Cut(n, "="); accept(path) {
				out = append(out, n)
			}
		}
		return out
	}
	c.becomes("TreeCache", of(func(string) bool { return true }), func() []string {
		var nodes []*cache.ChildData
		for _, n := range tree.All() {
			nodes = append(nodes, n)
		}
		return content(nodes)
	})
	c.becomes("PathChildrenCache", of(func(path string) bool { return zkpath.Parent(path) == group }), func() []string {
		return content(children.CurrentData())
	})
	c.becomes("NodeCache", of(func(path string) bool { return path == node.Path() }), func() []string {
		if n := node.CurrentData(); n != nil {
			return content([]*cache.ChildData{n})
		}
		return []string{}
	})
}

// becomes waits until a cache has what the tree has.
func (c *cacheChaos) becomes(name string, want []string, content func() []string) {
	c.Helper()
	testenv.Eventually(c.TB, func() bool { return slices.Equal(want, content()) }, name+" that has what the tree has")
}

// checkNewer checks that a node is not older than the last one that its listener got.
func (c *cacheChaos) checkNewer(name string, n *cache.ChildData) {
	if n == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := name + " " + n.Path
	if n.Stat.Mzxid < c.newest[key] {
		c.Errorf("%s: %d after %d", key, n.Stat.Mzxid, c.newest[key])
	}
	c.newest[key] = n.Stat.Mzxid
}

// disturb has writers and faults until the time is over.
func (c *cacheChaos) disturb() {
	ctx, cancel := context.WithTimeout(c.ctx, c.lasts)
	defer cancel()
	var writers sync.WaitGroup
	for i := range chaosWriters {
		writers.Go(func() { c.write(ctx, rand.New(rand.NewPCG(c.seed, uint64(i)))) })
	}
	r := rand.New(rand.NewPCG(c.seed, chaosWriters))
	lost := c.place.Faults().Add(curatortest.Rule{
		Action: curatortest.CutAfter, Chance: 0.01, Seed: c.seed, MayMiss: true,
	})
	for ctx.Err() == nil {
		switch r.IntN(4) {
		case 0:
			c.place.Faults().KillSession(c.client.SessionID())
		case 1:
			c.place.Faults().CutAll()
		}
		pause(ctx, time.Duration(50+r.IntN(1000))*time.Millisecond)
	}
	lost.Remove()
	writers.Wait()
}

// write changes nodes until ctx ends.
func (c *cacheChaos) write(ctx context.Context, r *rand.Rand) {
	for i := 0; ctx.Err() == nil; i++ {
		n := r.IntN(c.nodes)
		group := fmt.Sprintf("%s/g%d", root, n%chaosGroups)
		var err error
		switch k := r.IntN(100); {
		case k < 70:
			_, err = c.writer.Create().OrSetData().CreatingParentsIfNeeded().
				ForPath(c.ctx, fmt.Sprintf("%s/n%d", group, n), fmt.Append(nil, i))
		case k < 99:
			err = c.writer.Delete().ForPath(c.ctx, fmt.Sprintf("%s/n%d", group, n))
		default:
			err = c.writer.Delete().DeletingChildrenIfNeeded().ForPath(c.ctx, group)
		}
		passing := []error{nil, zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty}
		if !slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) }) {
			c.Errorf("a writer: %v", err)
			return
		}
		if i%10 == 0 {
			pause(ctx, time.Duration(r.IntN(20))*time.Millisecond)
		}
	}
}
