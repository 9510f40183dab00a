package simulation_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/zkpath"
)

// nodeFaults affect desired nodes and shared values.
var nodeFaults = []fault{
	{name: "desired node is deleted", strike: func(w *world, random *rand.Rand) (string, func()) {
		path := w.pickNode(random)
		if path == "" || w.delete(path) != nil {
			return "", nil
		}
		return path, nil
	}},
	{name: "desired node is changed", strike: func(w *world, random *rand.Rand) (string, func()) {
		path := w.pickNode(random)
		if path == "" || w.retryOutage(func(ctx context.Context) error {
			_, err := w.operator.SetData().ForPath(ctx, path, []byte("of the operator"))
			return err
		}) != nil {
			return "", nil
		}
		return path, nil
	}},
	{name: "desired node is replaced", long: true, strike: func(w *world, random *rand.Rand) (string, func()) {
		path := w.pickNode(random)
		if path == "" {
			return "", nil
		}
		ops := w.operator.TransactionOp()
		err := w.retryOutage(func(ctx context.Context) error {
			_, err := w.operator.Transaction().ForOperations(ctx, ops.Delete().ForPath(path),
				ops.Create().ForPath(path, []byte("of the operator")))
			return err
		})
		return path, func() { // a lost answer may hide that it was replaced
			if node, ok := w.nodeOf(path); err == nil || ok && node == "of the operator" {
				for { // its parent may be protected
					err := w.retryOutage(func(ctx context.Context) error {
						return w.operator.Delete().Quietly().ForPath(ctx, path)
					})
					if !errors.Is(err, zk.ErrNoAuth) || !wait(w.ctx, tick) {
						return
					}
				}
			}
		}
	}},
	{name: "desired nodes are deleted with their parent", strike: func(w *world, random *rand.Rand) (string, func()) {
		path := w.pickNode(random)
		if path == "" {
			return "", nil
		}
		parent := zkpath.Parent(path)
		_ = w.retryOutage(func(ctx context.Context) error {
			return w.operator.Delete().DeletingChildrenIfNeeded().Quietly().ForPath(ctx, parent)
		})
		return parent, nil
	}},
	{name: "desired node is protected", strike: func(w *world, random *rand.Rand) (string, func()) {
		path := w.pickNode(random)
		if path == "" {
			return "", nil
		}
		return w.protectTo(path, zk.PermRead)
	}},
	{name: "shared value is deleted", strike: func(w *world, _ *rand.Rand) (string, func()) {
		return w.deleteShared(), nil
	}},
	{name: "shared value is deleted and made anew", strike: func(w *world, _ *rand.Rand) (string, func()) {
		path := w.deleteShared()
		if path != "" {
			_ = w.retryOutage(func(ctx context.Context) error {
				_, err := w.operator.Create().ForPath(ctx, path, []byte("of the operator"))
				return err
			})
		}
		return path, nil
	}},
	{name: "shared value is protected", strike: func(w *world, random *rand.Rand) (string, func()) {
		if len(w.shared) == 0 {
			return "", nil
		}
		return w.protectTo(w.shared[0].path, pick(random, []int32{0, zk.PermRead}))
	}},
	{name: "parent of desired nodes is protected", strike: func(w *world, random *rand.Rand) (string, func()) {
		path := w.pickNode(random)
		if path == "" {
			return "", nil
		}
		return w.protectTo(zkpath.Parent(path),
			zk.PermRead|pick(random, []int32{0, zk.PermCreate, zk.PermDelete}))
	}},
}

// pickNode returns the path of a desired node that is there, or "".
func (w *world) pickNode(random *rand.Rand) string {
	leader, err := w.cluster.Leader()
	if err != nil {
		return ""
	}
	var paths []string
	for _, d := range w.desired {
		for _, parent := range []string{d.nodes, d.group} {
			for _, name := range leader.Children(parent) {
				paths = append(paths, zkpath.Join(parent, name))
			}
		}
	}
	if len(paths) == 0 {
		return ""
	}
	// The unique part of a name differs from run to run.
	slices.SortFunc(paths, func(a, b string) int {
		return strings.Compare(zkpath.NormalizePath(a), zkpath.NormalizePath(b))
	})
	return pick(random, paths)
}

// deleteShared deletes the node of the shared value and returns its path, or "" if there is none.
func (w *world) deleteShared() string {
	for _, s := range w.shared {
		if _, ok := w.nodeOf(s.path); ok {
			_ = w.retryOutage(func(ctx context.Context) error {
				return w.operator.Delete().Quietly().ForPath(ctx, s.path)
			})
			return s.path
		}
	}
	return ""
}

// nodeOf returns the data of a node as the leader has it.
func (w *world) nodeOf(path string) (data string, ok bool) {
	leader, err := w.cluster.Leader()
	if err != nil {
		return "", false
	}
	node, ok := leader.Node(path)
	return string(node.Data), ok
}
