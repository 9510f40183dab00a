package barrier

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
)

// round is what a member knows of the round that it has entered.
type round struct {
	// newest is a transaction: ready and the members that it let in are not younger. What follows the end of the round is.
	newest  int64
	members []string // that were seen, in order
	list    *listing // of the members behind the opening, on its way; nil if all were seen
}

// listing is a list of the barrier, which may be on its way.
type listing struct {
	children builders.Future[[]string]
	parent   zk.Stat
}

// list lists the barrier, and does not wait.
func (d *DistributedDoubleBarrier) list(flight context.Context) *listing {
	l := &listing{}
	l.children = d.client.GetChildren().StoringStatIn(&l.parent).Submit(flight, d.path)
	return l
}

func (r round) lowest() string { return r.members[0] }

// learn returns the round with what a list shows. While our node and ready are there, that is the ready of our round. Without
// them the members may have begun to come again.
func (r round) learn(own string, children []string, parent zk.Stat) round {
	if slices.Contains(children, own) && slices.Contains(children, readyNode) {
		r.newest, r.members = parent.Pzxid, membersAmong(children)
	}
	return r
}

// membersAmong returns the names of the members among the children of the barrier, in order.
func membersAmong(children []string) []string {
	members := slices.DeleteFunc(slices.Clone(children), func(name string) bool { return name == readyNode })
	slices.Sort(members)
	return members
}
