package cache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/zkpath"
)

const root = "/config"

// scene is a tree with a client for the cache, whose connection can fail, and one that writes.
type scene struct {
	testing.TB
	ctx    context.Context
	place  testenv.Place
	client *framework.Client
	writer *framework.Client
	chroot string
	// Reads are refused at random: a node may come ahead of the one above it.
	refuses bool
}

// inScene runs a test in virtual time, once with a recursive watch and once on a server that has none.
func inScene(t *testing.T, test func(s *scene)) {
	t.Helper()
	for _, mode := range []string{"recursive", "one-shot"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			withScene(t, mode == "one-shot", func(s *scene) { test(s) })
		})
	}
}

func withScene(t *testing.T, oneShot bool, test func(s *scene)) {
	t.Helper()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		if oneShot {
			one.Faults().Add(curatortest.Rule{
				Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented, MayMiss: true,
			})
		}
		s := &scene{TB: t, ctx: testenv.Context(t), place: one, chroot: chroot}
		s.client = s.newClient(one)
		s.writer = s.newClient(two)
		testclient.LogTrace(t, one)
		test(s)
	})
}

func (s *scene) newClient(place testenv.Place, opts ...framework.Option) *framework.Client {
	s.Helper()
	return testclient.ConnectAt(s, place, s.chroot, opts...)
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// set writes nodes, each given as its path, or as its path, an equals sign and its data.
func (s *scene) set(nodes ...string) {
	s.Helper()
	for _, node := range nodes {
		path, data, _ := strings.Cut(node, "=")
		_, err := s.writer.Create().CreatingParentsIfNeeded().OrSetData().ForPath(s.ctx, path, []byte(data))
		s.must(err)
	}
}

// remove deletes trees.
func (s *scene) remove(paths ...string) {
	s.Helper()
	for _, path := range paths {
		s.must(s.writer.Delete().DeletingChildrenIfNeeded().ForPath(s.ctx, path))
	}
}

// cutOff keeps the client of the cache from connecting until restore.
func (s *scene) cutOff() (heal func()) {
	s.Helper()
	suspended := s.awaitState(framework.Suspended)
	restore := s.place.Faults().RefuseConnects()
	s.place.Faults().CutAll()
	suspended()
	return func() {
		s.Helper()
		again := s.awaitState(framework.Reconnected)
		restore()
		again()
	}
}

// awaitState returns what waits for a state that comes from now on.
func (s *scene) awaitState(state framework.ConnectionState) (wait func()) {
	s.Helper()
	return testclient.AwaitState(s.ctx, s, s.client, state)
}

// tree returns what the server has at and below a path, as set takes it.
func (s *scene) tree(path string) []string {
	s.Helper()
	var stat zk.Stat
	data, err := s.writer.GetData().StoringStatIn(&stat).ForPath(s.ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	s.must(err)
	out := []string{path + "=" + string(data)}
	children, err := s.writer.GetChildren().ForPath(s.ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	s.must(err)
	for _, name := range children {
		out = append(out, s.tree(zkpath.Join(path, name))...)
	}
	slices.Sort(out)
	return out
}

// watched is a cache with a listener that keeps the events, and checks that each event follows from the last.
type watched struct {
	*scene
	*cache.CuratorCache
	mu     sync.Mutex
	events []string
	known  map[string]*cache.ChildData
	newest map[string]int64 // zxid of the newest data of a path in an event
	more   chan struct{}
}

func (s *scene) newCache(opts ...cache.Option) *watched {
	return s.cacheOf(cache.NewCuratorCache(s.client, root, opts...))
}

func (s *scene) cacheOf(c *cache.CuratorCache) *watched {
	w := &watched{
		scene: s, CuratorCache: c, known: make(map[string]*cache.ChildData), newest: make(map[string]int64),
		more: make(chan struct{}, 1),
	}
	c.AddListener(w.take)
	return w
}

// start returns a cache that is ready.
func (s *scene) start(opts ...cache.Option) *watched {
	s.Helper()
	w := s.newCache(opts...)
	s.begin(w)
	s.must(w.Ready(s.ctx))
	w.await("INITIALIZED")
	return w
}

func (s *scene) begin(w *watched) {
	s.Helper()
	s.must(w.Start())
	s.Cleanup(func() { s.must(w.Close()) })
}

func (w *watched) take(_ context.Context, ev cache.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := ev.Path()
	text := ev.Type.String()
	if path != "" {
		text += " " + path
	}
	if ev.New != nil && len(ev.New.Data) > 0 {
		text += "=" + string(ev.New.Data)
	}
	w.events = append(w.events, text)
	before := w.known[path]
	switch ev.Type {
	case cache.NodeCreated:
		if before != nil || ev.Old != nil {
			w.Errorf("%s: it was there", text)
		}
		if up := zkpath.Parent(path); path != root && path != "/" && w.known[up] == nil && w.Err(up) == nil && !w.refuses {
			w.Errorf("%s: before %s", text, up)
		}
	case cache.NodeChanged:
		if before == nil || ev.Old == nil || before.Stat.Mzxid != ev.Old.Stat.Mzxid {
			w.Errorf("%s: from %+v, it was %+v", text, ev.Old, before)
		}
	case cache.NodeDeleted:
		if before == nil || ev.Old == nil || before.Stat.Mzxid != ev.Old.Stat.Mzxid {
			w.Errorf("%s: it was %+v, not %+v", text, before, ev.Old)
		}
		for other := range w.known {
			if strings.HasPrefix(other, path+"/") {
				w.Errorf("%s: before %s", text, other)
			}
		}
	}
	if ev.New != nil {
		if ev.New.Stat.Mzxid < w.newest[path] {
			w.Errorf("%s: older than an earlier event", text)
		}
		w.newest[path] = ev.New.Stat.Mzxid
	}
	if ev.Type != cache.Initialized {
		if w.known[path] = ev.New; ev.New == nil {
			delete(w.known, path)
		}
	}
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// await waits for an event, and drops it and all before it.
func (w *watched) await(last string) {
	w.Helper()
	for {
		w.mu.Lock()
		if i := slices.Index(w.events, last); i >= 0 {
			w.events = w.events[i+1:]
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		select {
		case <-w.more:
		case <-w.ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			w.Fatalf("no %q in %q", last, w.events)
		}
	}
}

// received returns the events since its last call. Those of all earlier writes are among them.
func (w *watched) received() []string {
	w.Helper()
	w.must(w.Sync(w.ctx))
	w.drained()
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.events
	w.events = nil
	return out
}

// drained waits until the listener knows what the cache has.
func (w *watched) drained() {
	w.Helper()
	for {
		want := make(map[string]int64)
		for path, node := range w.All() {
			want[path] = node.Stat.Mzxid
		}
		w.mu.Lock()
		got := make(map[string]int64)
		for path, node := range w.known {
			got[path] = node.Stat.Mzxid
		}
		w.mu.Unlock()
		if maps.Equal(want, got) {
			return
		}
		select {
		case <-w.more:
		case <-w.ctx.Done():
			w.Fatalf("the listener does not know what the cache has: %s", cmp.Diff(want, got))
		}
	}
}

// content returns what the cache has, as set takes it.
func (w *watched) content() (out []string) {
	for path, node := range w.All() {
		out = append(out, path+"="+string(node.Data))
	}
	slices.Sort(out)
	return out
}

// equalsTree checks that the cache has what the server has.
func (w *watched) equalsTree() {
	w.Helper()
	w.must(w.Sync(w.ctx))
	if diff := cmp.Diff(w.tree(root), w.content()); diff != "" {
		w.Errorf("tree and cache (-want +got):\n%s", diff)
	}
	w.drained()
}

func (w *watched) wantEvents(want ...string) {
	w.Helper()
	if diff := cmp.Diff(append([]string{}, want...), append([]string{}, w.received()...)); diff != "" {
		w.Errorf("events (-want +got):\n%s", diff)
	}
}

// manyNodes returns a tree of n nodes.
func (s *scene) manyNodes(n int) {
	s.Helper()
	s.set(root)
	var ops []builders.TransactionOperation
	for i := range n {
		ops = append(ops, s.writer.TransactionOp().Create().ForPath(fmt.Sprintf("%s/n%05d", root, i), []byte("x")))
		if len(ops) == 500 || i == n-1 {
			_, err := s.writer.Transaction().ForOperations(s.ctx, ops...)
			s.must(err)
			ops = nil
		}
	}
}
