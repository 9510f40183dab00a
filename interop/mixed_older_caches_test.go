package interop_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/cache"
)

// olderCache is one of the older caches of Go.
type olderCache struct {
	path    string
	start   func() error
	close   func() error
	content func() []*cache.ChildData
}

// olderCaches has the constructors by what Java's commands begin with. record takes the events.
var olderCaches = map[string]func(c *framework.Client, record func(kind string, n *cache.ChildData)) olderCache{
	"nodeCache": func(c *framework.Client, record func(string, *cache.ChildData)) olderCache {
		n := cache.NewNodeCache(c, "/tree/a")
		n.AddListener(func(_ context.Context, data *cache.ChildData) {
			if data == nil {
				data = new(cache.ChildData)
			}
			record("NODE_CHANGED", &cache.ChildData{Data: data.Data}) // Java's has no path
		})
		return olderCache{n.Path(), n.Start, n.Close, func() []*cache.ChildData {
			return slices.DeleteFunc([]*cache.ChildData{n.CurrentData()}, func(n *cache.ChildData) bool { return n == nil })
		}}
	},
	"childrenCache": func(c *framework.Client, record func(string, *cache.ChildData)) olderCache {
		n := cache.NewPathChildrenCache(c, "/tree")
		n.AddListener(func(_ context.Context, ev cache.PathChildrenCacheEvent) {
			record(ev.Type.String(), ev.Data)
		})
		start := func() error { return n.Start(context.Background(), cache.Normal) }
		return olderCache{"/tree", start, n.Close, n.CurrentData}
	},
	"treeCache": func(c *framework.Client, record func(string, *cache.ChildData)) olderCache {
		n := cache.NewTreeCache(c, "/tree")
		n.AddListener(func(_ context.Context, ev cache.TreeCacheEvent) { record(ev.Type.String(), ev.Data) })
		return olderCache{"/tree", n.Start, n.Close, func() (nodes []*cache.ChildData) {
			for _, node := range n.All() {
				nodes = append(nodes, node)
			}
			return nodes
		}}
	},
}

func TestOlderCachesOfGoAndJavaHaveTheSameEvents(t *testing.T) {
	t.Parallel()
	tests := map[string][6][]string{ // the events of each step below
		"nodeCache": {
			{"NODE_CHANGED =1"}, {"NODE_CHANGED =3"}, nil, {"NODE_CHANGED ="}, {"NODE_CHANGED =5"}, {"NODE_CHANGED =6"},
		},
		"childrenCache": {
			{"CHILD_ADDED /tree/a=1"},
			{"CHILD_UPDATED /tree/a=3"},
			{"CHILD_ADDED /tree/b=4"},
			{"CHILD_REMOVED /tree/a=3"},
			{"CHILD_ADDED /tree/a=5"},
			{"CHILD_UPDATED /tree/a=6", "CHILD_REMOVED /tree/b=4", "CHILD_ADDED /tree/c=7"},
		},
		"treeCache": {
			{"NODE_ADDED /tree=", "NODE_ADDED /tree/a=1", "NODE_ADDED /tree/a/deep=2"},
			{"NODE_UPDATED /tree/a=3"},
			{"NODE_ADDED /tree/b=4"},
			{"NODE_REMOVED /tree/a/deep=2", "NODE_REMOVED /tree/a=3"},
			{"NODE_ADDED /tree/a=5"},
			{"NODE_UPDATED /tree/a=6", "NODE_REMOVED /tree/b=4", "NODE_ADDED /tree/c=7"},
		},
	}
	for kind, want := range tests {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := startOlderPair(t, kind)
			c.expect(want[0])
			c.set("/tree/a", "3")
			c.expect(want[1])
			c.create("/tree/b", "4")
			c.expect(want[2])
			c.remove("/tree/a/deep")
			c.remove("/tree/a")
			c.expect(want[3])
			c.create("/tree/a", "5")
			c.expect(want[4])
			restore := c.proxy.Faults().RefuseConnects()
			c.proxy.Faults().CutAll()
			c.java.awaitState("", "SUSPENDED")
			c.set("/tree/a", "6")
			c.remove("/tree/b")
			c.create("/tree/c", "7")
			restore()
			c.expect(want[5])
		})
	}
}

// olderPair is an older cache of Go and that of Java, of the same tree. Both clients connect through one proxy.
type olderPair struct {
	cachePair
	older olderCache
}

func startOlderPair(t *testing.T, kind string) *olderPair {
	t.Helper()
	testenv.RequireReal(t)
	m, connect := newMeeting(t)
	c := &olderPair{cachePair: cachePair{meeting: m, proxy: curatortest.NewProxyT(t, testenv.Addr(t))}}
	c.create("/tree", "")
	c.create("/tree/a", "1")
	c.create("/tree/a/deep", "2")
	connect = strings.Replace(connect, testenv.Addr(t), c.proxy.Addr(), 1)
	client := startGo(t, connect)
	c.java = m.invite(javaPeer, connect)
	c.older = olderCaches[kind](client, func(kind string, n *cache.ChildData) {
		if n == nil {
			return // of the connection
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, kind+" "+n.Path+"="+string(n.Data))
	})
	t.Cleanup(func() { _ = c.older.close() })
	if err := c.older.start(); err != nil {
		t.Fatal(err)
	}
	c.theirs = c.java.create(kind, "Start", newName(), interop.Args{"path": c.older.path})
	return c
}

// expect waits for the events, in any order, from both caches, and compares both caches.
func (c *olderPair) expect(want []string) {
	c.t.Helper()
	want = slices.Sorted(slices.Values(want))
	var theirs []string
	for range want {
		ev, err := c.java.WaitEvent(c.ctx, func(ev interop.Event) bool {
			return ev.Name == c.theirs.name
		})
		if err != nil {
			c.t.Fatalf("Java after %q: %v", theirs, err)
		}
		theirs = append(theirs, ev.Kind+" "+ev.Path+"="+string(ev.Data))
	}
	var ours []string
	testenv.Eventually(c.t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		ours = slices.Clone(c.events)
		return len(ours) >= len(want)
	}, "the events of Go")
	c.mu.Lock()
	c.events = nil
	c.mu.Unlock()
	slices.Sort(theirs)
	slices.Sort(ours)
	if diff := cmp.Diff(want, theirs); diff != "" {
		c.t.Errorf("events of Java (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want, ours); diff != "" {
		c.t.Errorf("events of Go (-want +got)\n%s", diff)
	}
	content := make(map[string]string)
	for _, n := range c.older.content() {
		content[n.Path] = string(n.Data)
	}
	dump := make(map[string]interop.Bytes)
	c.theirs.do("Dump", interop.Args{"path": c.older.path}, &dump)
	java := make(map[string]string)
	for path, data := range dump {
		java[path] = string(data)
	}
	if diff := cmp.Diff(java, content); diff != "" {
		c.t.Errorf("caches (-Java +Go)\n%s", diff)
	}
}
