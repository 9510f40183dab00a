// Package tree reads the nodes below a path, many at a time and with few requests in flight.
package tree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// The bounds of a reading. A request of many reads keeps its server busy for long, so there are few of those.
const (
	maxSingles = 50  // requests for a single node in flight
	maxMulti   = 8   // requests for many nodes in flight
	batch      = 128 // nodes in one of them
)

// Node is a node as it was read. Nodes are read one after the other: a tree that changes may look as it never was.
type Node struct {
	Path     string
	Data     []byte // nil unless the data was asked for
	Stat     *zk.Stat
	Children []string // the names, sorted
	Err      error    // why the data or the children could not be read
}

// Options says what is read.
type Options struct {
	Data  bool // the data of the nodes too; otherwise a node that may not be read has its stat nevertheless
	Depth int  // how many levels below the root; negative is all
	// Progress is called with the number of nodes that have been read since the last call, on several goroutines; it may
	// be nil.
	Progress func(n int)
}

// Tree is what was read, by path.
type Tree map[string]*Node

// Read reads the tree at root. Nodes that vanish while it reads are left out. Its error is about the root: that it does
// not exist, or may not be read; what is wrong with another node is in the node.
func Read(ctx context.Context, client *framework.Client, root string, o Options) (Tree, error) {
	r := &reader{client: client, data: o.Data, progress: o.Progress}
	if r.progress == nil {
		r.progress = func(int) {}
	}
	t := Tree{}
	for level := []string{root}; len(level) > 0; o.Depth-- {
		nodes, err := r.nodes(ctx, level)
		if err != nil {
			return nil, err
		}
		var parents []*Node
		for _, n := range nodes {
			if errors.Is(n.Err, zk.ErrNoNode) {
				if n.Path == root {
					return nil, n.Err
				}
				continue
			}
			t[n.Path] = n
			if o.Depth != 0 && (n.Stat == nil || n.Stat.NumChildren > 0) {
				parents = append(parents, n)
			}
		}
		if err := r.children(ctx, parents); err != nil {
			return nil, err
		}
		level = nil
		for _, n := range parents {
			for _, name := range n.Children {
				level = append(level, zkpath.Join(n.Path, name))
			}
		}
	}
	if err := t[root].Err; err != nil {
		return nil, err
	}
	t.prune()
	return t, nil
}

// prune takes the children that have vanished out of their parents.
func (t Tree) prune() {
	for _, n := range t {
		n.Children = slices.DeleteFunc(n.Children, func(name string) bool {
			_, ok := t[zkpath.Join(n.Path, name)]
			return !ok
		})
	}
}

// Paths returns the paths, each parent before its children.
func (t Tree) Paths() []string {
	// "/a/b" goes before "/a-c", so that what is below a node is behind it at once.
	return slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return slices.Compare(zkpath.Split(a), zkpath.Split(b))
	})
}

type reader struct {
	client   *framework.Client
	data     bool
	progress func(n int)
}

// nodes reads the nodes without their children, in the order of paths.
func (r *reader) nodes(ctx context.Context, paths []string) ([]*Node, error) {
	nodes := make([]*Node, len(paths))
	for i, path := range paths {
		nodes[i] = &Node{Path: path}
	}
	if !r.data {
		return nodes, each(ctx, maxSingles, nodes, func(ctx context.Context, n *Node) error {
			n.Stat, n.Err = r.client.CheckExists().ForPath(ctx, n.Path)
			if n.Err == nil && n.Stat == nil {
				n.Err = fmt.Errorf("%s: %w", n.Path, zk.ErrNoNode)
			}
			r.progress(1)
			return fatal(n.Err)
		})
	}
	return nodes, each(ctx, maxMulti, slices.Collect(slices.Chunk(nodes, batch)),
		func(ctx context.Context, some []*Node) error {
			defer r.progress(len(some))
			return r.many(ctx, some, false)
		})
}

// children reads the names of the children.
func (r *reader) children(ctx context.Context, nodes []*Node) error {
	return each(ctx, maxMulti, slices.Collect(slices.Chunk(nodes, batch)),
		func(ctx context.Context, some []*Node) error { return r.many(ctx, some, true) })
}

// many reads some nodes with one request. If the answer is too large, it asks for the halves.
func (r *reader) many(ctx context.Context, nodes []*Node, children bool) error {
	reads := make([]builders.Read, len(nodes))
	for i, n := range nodes {
		reads[i] = builders.Read{Path: n.Path, Children: children}
	}
	results, err := r.client.MultiRead().ForReads(ctx, reads...)
	switch {
	case errors.Is(err, builders.ErrReplyTooLarge) && len(nodes) > 1:
		half := len(nodes) / 2
		return errors.Join(r.many(ctx, nodes[:half], children), r.many(ctx, nodes[half:], children))
	case errors.Is(err, framework.ErrUnimplemented): // a server before 3.6
		for _, n := range nodes {
			if err := r.one(ctx, n, children); err != nil {
				return err
			}
		}
		return nil
	case errors.Is(err, builders.ErrReplyTooLarge):
		nodes[0].Err = err
		return nil
	case err != nil:
		return err
	}
	for i, n := range nodes {
		r.store(n, results[i].Data, results[i].Stat, results[i].Children, results[i].Err, children)
		if err := r.unreadable(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// one reads a node with a request of its own.
func (r *reader) one(ctx context.Context, n *Node, children bool) error {
	var s zk.Stat
	var data []byte
	var names []string
	var err error
	if children {
		names, err = r.client.GetChildren().ForPath(ctx, n.Path)
	} else {
		data, err = r.client.GetData().StoringStatIn(&s).ForPath(ctx, n.Path)
	}
	if fatal(err) != nil {
		return err
	}
	r.store(n, data, s, names, err, children)
	return r.unreadable(ctx, n)
}

func (r *reader) store(n *Node, data []byte, s zk.Stat, names []string, err error, children bool) {
	switch {
	case err != nil && children && errors.Is(err, zk.ErrNoNode): // it was there, and is not now
	case err != nil:
		n.Err = err
	case children:
		slices.Sort(names)
		n.Children = names
	default:
		n.Data, n.Stat = data, &s
	}
}

// unreadable reads the stat of a node whose data may not be read: that needs no permission.
func (r *reader) unreadable(ctx context.Context, n *Node) error {
	if n.Stat != nil || n.Err == nil || errors.Is(n.Err, zk.ErrNoNode) {
		return nil
	}
	s, err := r.client.CheckExists().ForPath(ctx, n.Path)
	n.Stat = s
	return fatal(err)
}

// fatal returns an error that ends the reading, and nil for one that is about a node alone.
func fatal(err error) error {
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) || errors.Is(err, builders.ErrReplyTooLarge) {
		return nil
	}
	return err
}

// each calls fn for all of the values, some at a time, until there is an error.
func each[T any](ctx context.Context, most int, values []T, fn func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan T)
	var workers sync.WaitGroup
	for range min(most, len(values)) {
		workers.Go(func() {
			for v := range work {
				if err := fn(ctx, v); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for _, v := range values {
		select {
		case work <- v:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(work)
	workers.Wait()
	return context.Cause(ctx)
}

// Each calls fn for each path, at most 50 at a time, and returns the first error.
func Each(ctx context.Context, paths []string, fn func(ctx context.Context, path string) error) error {
	return each(ctx, maxSingles, paths, fn)
}
