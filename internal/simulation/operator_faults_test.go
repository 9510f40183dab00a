package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/gocurator/curator/zkpath"
)

// operatorFaults are mistakes of operators.
var operatorFaults = []fault{
	{name: "operator deletes a node", strike: func(w *world, random *rand.Rand) (string, func()) {
		r := pick(random, w.judge.resources)
		return w.deleteNodes(random, r, pick(random, r.lines), 1), nil
	}},
	{name: "operator deletes nodes", strike: func(w *world, random *rand.Rand) (string, func()) {
		r := pick(random, w.judge.resources)
		return w.deleteNodes(random, r, pick(random, r.lines), 2+random.IntN(3)), nil
	}},
}

// deleteNodes deletes up to n nodes of a line. Some of them may stand for a hold.
func (w *world) deleteNodes(random *rand.Rand, r *resource, l line, n int) (what string) {
	leader, err := w.cluster.Leader()
	if err != nil {
		return ""
	}
	children := slices.DeleteFunc(leader.Children(l.path), func(name string) bool {
		return r.isKept != nil && r.isKept(leader, name)
	})
	random.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
	var deleted []string
	for _, child := range children[:min(n, len(children))] {
		path := l.path + "/" + child
		if l.holds {
			node, _ := leader.Node(path)
			var within time.Duration
			if r.notifiedOfNode {
				within = 4 * sessionTimeout // a server that lags sends events late
			}
			w.judge.taken(r, path, w.processOf(node.Stat.EphemeralOwner), within)
		}
		if err := w.delete(path); err != nil {
			child += " (" + err.Error() + ")"
		}
		deleted = append(deleted, zkpath.Normalize(child))
	}
	if len(deleted) == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s", strings.Join(deleted, ", "), l.path)
}

func (w *world) delete(path string) error {
	ctx, cancel := context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	return w.operator.Delete().ForPath(ctx, path)
}
