package interop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/cache"
)

// cachePair is a CuratorCache of Go and one of Java of the same tree. Both clients connect through one proxy.
type cachePair struct {
	*meeting
	proxy  *curatortest.Proxy
	ours   *cache.CuratorCache
	theirs *object
	golang side
	java   *peer

	mu     sync.Mutex
	events []string // of Go, since the last comparison
}

// startCachePair starts both caches at /tree, and waits until they have read it.
func startCachePair(t *testing.T, before func(*cachePair)) *cachePair {
	t.Helper()
	t.Parallel()
	testenv.RequireReal(t)
	m, connect := newMeeting(t)
	c := &cachePair{meeting: m, proxy: curatortest.NewProxyT(t, testenv.Addr(t))}
	before(c)
	connect = strings.Replace(connect, testenv.Addr(t), c.proxy.Addr(), 1)
	client := startGo(t, connect)
	if err := client.BlockUntilConnected(m.ctx); err != nil {
		t.Fatal(err)
	}
	c.golang, c.java = golang{client}, m.invite(javaPeer, connect)
	c.ours = cache.NewCuratorCache(client, "/tree")
	c.ours.AddListener(c.record)
	t.Cleanup(func() { _ = c.ours.Close() })
	if err := c.ours.Start(); err != nil {
		t.Fatal(err)
	}
	c.theirs = c.java.create("cache", "Start", newName(), interop.Args{"path": "/tree"})
	c.theirs.event("initialized")
	if err := c.ours.Ready(m.ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

// record keeps an event of Go in the form in which those of Java are compared.
func (c *cachePair) record(_ context.Context, ev cache.Event) {
	kinds := map[cache.EventType]string{
		cache.NodeCreated: "created", cache.NodeChanged: "changed", cache.NodeDeleted: "deleted",
	}
	kind, ok := kinds[ev.Type]
	if !ok {
		return
	}
	var old, data []byte
	if ev.Old != nil {
		old = ev.Old.Data
	}
	if ev.New != nil {
		data = ev.New.Data
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, cacheEvent(kind, ev.Path(), old, data))
}

func cacheEvent(kind, path string, old, data []byte) string {
	return fmt.Sprintf("%s %s %s>%s", kind, path, old, data)
}

func (c *cachePair) create(path, data string) {
	c.t.Helper()
	if _, err := c.raw.Create(c.root+path, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cachePair) set(path, data string) {
	c.t.Helper()
	if _, err := c.raw.Set(c.root+path, []byte(data), -1); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cachePair) remove(path string) {
	c.t.Helper()
	if err := c.raw.Delete(c.root+path, -1); err != nil {
		c.t.Fatal(err)
	}
}

// expect waits for the events, in any order, from both caches, and compares both caches with the tree.
func (c *cachePair) expect(want ...string) {
	c.t.Helper()
	slices.Sort(want)
	var theirs []string
	for range want {
		ev, err := c.java.WaitEvent(c.ctx, func(ev interop.Event) bool {
			return ev.Name == c.theirs.name && slices.Contains([]string{"created", "changed", "deleted"}, ev.Kind)
		})
		if err != nil {
			c.t.Fatalf("Java after %q: %v", theirs, err)
		}
		theirs = append(theirs, cacheEvent(ev.Kind, ev.Path, ev.OldData, ev.Data))
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
	c.compare()
}

// compare compares both caches with the tree.
func (c *cachePair) compare() {
	c.t.Helper()
	tree, ours, theirs := make(map[string]string), make(map[string]string), make(map[string]string)
	for _, n := range c.nodes("/") {
		if n.path == "/tree" || strings.HasPrefix(n.path, "/tree/") {
			tree[n.path] = string(n.data)
		}
	}
	for path, n := range c.ours.All() {
		ours[path] = string(n.Data)
	}
	var dump map[string]interop.Bytes
	c.theirs.do("Dump", nil, &dump)
	for path, data := range dump {
		theirs[path] = string(data)
	}
	if diff := cmp.Diff(tree, ours); diff != "" {
		c.t.Errorf("cache of Go (-tree +cache)\n%s", diff)
	}
	if diff := cmp.Diff(tree, theirs); diff != "" {
		c.t.Errorf("cache of Java (-tree +cache)\n%s", diff)
	}
}

func TestCuratorCachesOfGoAndJavaHaveTheSameEvents(t *testing.T) {
	c := startCachePair(t, func(c *cachePair) {
		c.create("/tree", "")
		c.create("/tree/a", "1")
		c.create("/treetop", "not in it")
	})
	c.expect("created /tree >", "created /tree/a >1")
	c.create("/tree/a/b", "2")
	c.create("/tree/a/b/c", "3")
	c.expect("created /tree/a/b >2", "created /tree/a/b/c >3")
	c.set("/tree/a/b", "4")
	c.expect("changed /tree/a/b 2>4")
	c.remove("/tree/a/b/c")
	c.expect("deleted /tree/a/b/c 3>")

	// What happens without a connection both find when they have one again.
	restore := c.proxy.Faults().RefuseConnects()
	c.proxy.Faults().CutAll()
	c.java.awaitState("", "SUSPENDED")
	c.remove("/tree/a/b")
	c.set("/tree/a", "5")
	c.create("/tree/d", "6")
	restore()
	c.expect("changed /tree/a 1>5", "created /tree/d >6", "deleted /tree/a/b 4>")

	// The session of each ends in turn, and with that of Java its ephemeral node.
	c.java.text("create", interop.Args{"path": "/tree/e", "mode": "EPHEMERAL", "data": interop.Bytes("7")})
	c.expect("created /tree/e >7")
	c.expire(c.java)
	c.expire(c.golang)
	c.expect("deleted /tree/e 7>")
	c.set("/tree/d", "8")
	c.expect("changed /tree/d 6>8")
}
