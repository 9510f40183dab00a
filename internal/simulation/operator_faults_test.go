package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/zkpath"
)

// operatorFaults are mistakes of operators.
var operatorFaults = []fault{
	{name: "operator deletes a node", strike: func(w *world, random *rand.Rand) (string, func()) {
		r, l := w.pickLine(random)
		return w.deleteNodes(random, r, l, 1), nil
	}},
	{name: "operator deletes nodes", strike: func(w *world, random *rand.Rand) (string, func()) {
		r, l := w.pickLine(random)
		return w.deleteNodes(random, r, l, 2+random.IntN(3)), nil
	}},
	{name: "operator deletes a line", strike: func(w *world, random *rand.Rand) (string, func()) {
		r, l := w.pickLine(random)
		return w.deleteLine(random, r, l), nil
	}},
}

// pickLine returns a line of a resource. In a world without resources it is an empty one.
func (w *world) pickLine(random *rand.Rand) (*resource, line) {
	if len(w.judge.resources) == 0 {
		r := newResource("/none")
		return r, r.lines[0]
	}
	r := pick(random, w.judge.resources)
	return r, pick(random, r.lines)
}

// deleteNodes deletes up to n nodes of a line, one after the other. Some of them may stand for a hold.
func (w *world) deleteNodes(random *rand.Rand, r *resource, l line, n int) (what string) {
	paths := w.nodesOf(random, r, l)
	paths = paths[:min(n, len(paths))]
	for _, path := range paths {
		w.take(r, l, path)
		if err := w.delete(path); err != nil {
			w.history.note("%s is not deleted: %v", path, err)
		}
	}
	return describeNodes(l, paths)
}

// deleteLine deletes all nodes of a line at one moment: a waiter, the node before it, and those that come first.
func (w *world) deleteLine(random *rand.Rand, r *resource, l line) (what string) {
	paths := w.nodesOf(random, r, l)
	if len(paths) < 2 {
		return ""
	}
	var ops []builders.TransactionOperation
	for _, path := range paths {
		w.take(r, l, path)
		ops = append(ops, w.operator.TransactionOp().Delete().ForPath(path))
	}
	ctx, cancel := context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	if _, err := w.operator.Transaction().ForOperations(ctx, ops...); err != nil {
		w.history.note("%s is not deleted: %v", l.path, err)
		return ""
	}
	if l.turns {
		w.judge.deletedLine(r, paths)
	}
	return describeNodes(l, paths)
}

// nodesOf returns the nodes of a line that may be deleted, in random order.
func (w *world) nodesOf(random *rand.Rand, r *resource, l line) (paths []string) {
	leader, err := w.cluster.Leader()
	if err != nil {
		return nil
	}
	for _, child := range leader.Children(l.path) {
		if r.isKept == nil || !r.isKept(leader, child) {
			paths = append(paths, l.path+"/"+child)
		}
	}
	random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	return paths
}

// take records that a node is about to be deleted, if it may stand for a hold.
func (w *world) take(r *resource, l line, path string) {
	leader, err := w.cluster.Leader()
	if err != nil || !l.holds {
		return
	}
	node, _ := leader.Node(path)
	var within time.Duration
	if r.notifiedOfNode {
		within = 4 * sessionTimeout // a server that lags sends events late
	}
	w.judge.taken(r, path, w.processOf(node.Stat.EphemeralOwner), within)
}

// describeNodes returns the names of nodes of a line, "" for none.
func describeNodes(l line, paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	var names []string
	for _, path := range paths {
		names = append(names, zkpath.Normalize(zkpath.Node(path)))
	}
	return fmt.Sprintf("%s of %s", strings.Join(names, ", "), l.path)
}

func (w *world) delete(path string) error {
	ctx, cancel := context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	return w.operator.Delete().ForPath(ctx, path)
}
