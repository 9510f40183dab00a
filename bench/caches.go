package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
)

// The kinds of caches. In Go it is always a CuratorCache.
const (
	curatorCache  = "curator"
	treeCache     = "tree"
	childrenCache = "children"
)

// cacheWork measures caches of many nodes: the window is their number.
var cacheWork = section{
	workloads: map[string]workload{
		cacheLoad: runCacheLoad, cacheMemory: runCacheMemory, cacheChange: runCacheChange,
		cacheReturn: runCacheReturn, nodeChange: runNodeChange,
	},
	rows: []row{
		{
			name: "cache of 10,000 nodes, from start to ready", server: realServer, show: latency, stretch: 2,
			entries: againstJavaCaches(work(cacheLoad).window(10_000)),
			budget: []bound{
				atLeast(3, rate).of(javaCuratorCache), atLeast(3, rate).of(javaTreeCache),
				atLeast(10, rate).of(javaChildrenCache),
			},
		},
		{
			name: "cache of 10,000 nodes, memory", server: realServer, show: []metric{heap}, fresh: true,
			entries: againstJavaCaches(work(cacheMemory).window(10_000)),
		},
		{
			// The heap includes paths of about 40 bytes and the data. The extra time is for the creates.
			name: "cache of 1,000,000 nodes in 1000 directories", server: realServer, stretch: 100, fresh: true,
			show:    []metric{rate, heap},
			entries: against(work(cacheMemory).window(1_000_000), curator),
		},
		{
			name: "cache of 1000 nodes, from a write to the listener", server: realServer, show: waits,
			entries: append(againstJavaCaches(work(cacheChange).window(1000)),
				entry{name: withoutCache, library: plain, load: work(nodeChange)}),
			budget: []bound{atMost(0.8, p50).of(javaCuratorCache), atMost(1.1, p50).of(withoutCache)},
		},
		{
			// The latency is from the new connection to the last of 10 changes that were made without one.
			name: "cache of 10,000 nodes, 10 changed while away", server: awayServer, show: waits, stretch: 4,
			entries: againstJavaCaches(work(cacheReturn).window(10_000)),
			budget:  []bound{atMost(0.1, p50).of(javaCuratorCache), atMost(0.1, p50).of(javaTreeCache)},
		},
	},
}

// The names of Java's caches in the tables.
const (
	javaCuratorCache  = "Java CuratorCache"
	javaTreeCache     = "Java TreeCache"
	javaChildrenCache = "Java PathChildrenCache"
)

// withoutCache is the write, the event and the read of a cache with nothing around them.
const withoutCache = "go-zookeeper, no cache"

func againstJavaCaches(l load) []entry {
	return append(against(l, curator),
		entry{name: javaCuratorCache, library: javas, load: l.cache(curatorCache)},
		entry{name: javaTreeCache, library: javas, load: l.cache(treeCache)},
		entry{name: javaChildrenCache, library: javas, load: l.cache(childrenCache)})
}

// runCacheLoad starts caches one after the other. The latency is from the start until all nodes are read.
func runCacheLoad(ctx context.Context, t *target, l load) (r result, err error) {
	tree, err := t.tree(ctx, l)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, tree.remove(ctx)) }()
	return loop(l.duration(), []operation{func() (time.Duration, error) {
		start := time.Now()
		c, err := tree.cached(ctx)
		took := time.Since(start)
		if err != nil {
			return -1, err
		}
		return took, c.Close()
	}}), nil
}

// runCacheMemory starts one cache. Memory is read before that and when all nodes are read; an operation is a node.
func runCacheMemory(ctx context.Context, t *target, l load) (r result, err error) {
	tree, err := t.tree(ctx, l)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, tree.remove(ctx)) }()
	r.Before = memoryNow()
	watch := startWatch()
	c, err := tree.cached(ctx)
	watch.stop(&r)
	if err != nil {
		return r, err
	}
	r.Waiting = memoryNow()
	r.Ops = int64(c.Size())
	return r, c.Close()
}

// runCacheChange writes a node of the tree, again and again. The latency is from the call until the listener has it.
func runCacheChange(ctx context.Context, t *target, l load) (r result, err error) {
	tree, err := t.tree(ctx, l)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, tree.remove(ctx)) }()
	changed := make(chan time.Time, 1)
	c, err := tree.cached(ctx, cache.ForChanges(func(context.Context, *cache.ChildData, *cache.ChildData) {
		changed <- time.Now()
	}))
	if err != nil {
		return r, err
	}
	data := make([]byte, l.Payload)
	r = loop(l.duration(), []operation{func() (time.Duration, error) {
		start := time.Now()
		if _, err := tree.client.SetData().ForPath(ctx, tree.nodes[len(tree.nodes)-1], data); err != nil {
			return -1, err
		}
		at, err := receive(ctx, changed)
		return at.Sub(start), err
	}})
	return r, c.Close()
}

// changedWhileAway is the number of nodes that change while a cache is away.
const changedWhileAway = 10

// runCacheReturn sends the client of a cache away, and changes nodes with another client meanwhile. The latency is from
// the new connection of the cache's client until the listener has all changes.
func runCacheReturn(ctx context.Context, t *target, l load) (r result, err error) {
	tree, err := t.tree(ctx, l)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, tree.remove(ctx)) }()
	other, err := t.client(ctx, 1)
	if err != nil {
		return r, err
	}
	changed := make(chan time.Time, changedWhileAway)
	c, err := tree.cached(ctx, cache.ForChanges(func(context.Context, *cache.ChildData, *cache.ChildData) {
		changed <- time.Now()
	}))
	if err != nil {
		return r, err
	}
	reconnected := make(chan time.Time, 1)
	remove := tree.client.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
		if state == framework.Reconnected {
			reconnected <- time.Now()
		}
	})
	defer remove()
	r = loop(l.duration(), []operation{func() (time.Duration, error) {
		_, err := tree.client.CheckExists().ForPath(builders.Pipelined(ctx), tree.nodes[0]+"/"+awayName)
		if !errors.Is(err, framework.ErrConnectionLoss) {
			return -1, fmt.Errorf("the client was not sent away: %w", err)
		}
		if err := tree.change(ctx, other.(curatorClient), make([]byte, l.Payload)); err != nil {
			return -1, err
		}
		back, err := receive(ctx, reconnected)
		last := back
		for range changedWhileAway {
			if err == nil {
				last, err = receive(ctx, changed)
			}
		}
		return max(last.Sub(back), 0), err
	}})
	return r, c.Close()
}

func receive(ctx context.Context, times <-chan time.Time) (at time.Time, err error) {
	select {
	case at = <-times:
		return at, nil
	case <-ctx.Done():
		return at, ctx.Err()
	}
}

// change writes nodes that are evenly spread over the tree, the last one included.
func (t *benchTree) change(ctx context.Context, c curatorClient, data []byte) error {
	ops := make([]builders.TransactionOperation, changedWhileAway)
	for i := range ops {
		ops[i] = c.TransactionOp().SetData().ForPath(t.nodes[(i+1)*(len(t.nodes)-1)/changedWhileAway], data)
	}
	_, err := c.Transaction().ForOperations(ctx, ops...)
	return err
}

// benchTree is the nodes of one run.
type benchTree struct {
	client curatorClient
	nodes  []string // the first is the root of the tree; a parent comes before its children
}

// perDirectory is the number of nodes in a directory of a tree of more than 10,000. Smaller trees have no directories.
const perDirectory = 1000

// tree creates as many nodes as the window is wide.
func (t *target) tree(ctx context.Context, l load) (*benchTree, error) {
	c, err := t.client(ctx, 0)
	if err != nil {
		return nil, err
	}
	own, ok := c.(curatorClient)
	if !ok {
		return nil, fmt.Errorf("%T has no cache", c)
	}
	path, err := t.node(ctx, "cache", nil)
	if err != nil {
		return nil, err
	}
	tree := &benchTree{client: own, nodes: []string{path}}
	directory := path
	for i := range l.Window {
		if l.Window > 10_000 && i%perDirectory == 0 {
			directory = path + "/directory-" + strconv.Itoa(i/perDirectory)
			tree.nodes = append(tree.nodes, directory)
		}
		tree.nodes = append(tree.nodes, directory+"/node-"+strconv.Itoa(i))
	}
	data := make([]byte, l.Payload)
	return tree, tree.inBatches(1, func(from, to int) error {
		var ops []builders.TransactionOperation
		for _, path := range tree.nodes[from:to] {
			ops = append(ops, own.TransactionOp().Create().ForPath(path, data))
		}
		_, err := own.Transaction().ForOperations(ctx, ops...)
		return err
	})
}

// inBatches calls fn for the nodes from a number on, some hundred at a time.
func (t *benchTree) inBatches(from int, fn func(from, to int) error) error {
	for ; from < len(t.nodes); from += 500 {
		if err := fn(from, min(from+500, len(t.nodes))); err != nil {
			return err
		}
	}
	return nil
}

func (t *benchTree) remove(ctx context.Context) error {
	last := len(t.nodes)
	return t.inBatches(0, func(from, to int) error {
		paths := make([]string, 0, to-from)
		for i := from; i < to; i++ {
			paths = append(paths, t.nodes[last-1-i])
		}
		return t.client.deleteAll(ctx, paths)
	})
}

// cached returns a cache of the tree that has all nodes.
func (t *benchTree) cached(ctx context.Context, listeners ...cache.Listener) (*cache.CuratorCache, error) {
	c := cache.NewCuratorCache(t.client.Client, t.nodes[0])
	for _, listener := range listeners {
		c.AddListener(listener)
	}
	err := c.Start()
	if err == nil {
		err = c.Ready(ctx)
	}
	if err == nil && c.Size() != len(t.nodes) {
		err = fmt.Errorf("the cache has %d nodes of %d", c.Size(), len(t.nodes))
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}
