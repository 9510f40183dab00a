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

// listing is a list that is on its way.
type listing struct {
	children builders.Future[[]string]
	parent   zk.Stat
}

func (r round) lowest() string { return r.members[0] }

// learn waits for the list that is on its way, and returns the round with what that shows. A list without ready comes too
// late: members may have begun to come again.
func (r round) learn(ctx context.Context) (round, error) {
	if r.list == nil {
		return r, nil
	}
	children, err := r.list.children.Wait(ctx)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if members := membersAmong(children); err == nil && len(members) > 0 && slices.Contains(children, readyNode) {
		r.newest, r.members = r.list.parent.Pzxid, members
	}
	r.list = nil
	return r, nil
}

// membersAmong returns the names of the members among the children of the barrier, in order.
func membersAmong(children []string) []string {
	members := slices.DeleteFunc(slices.Clone(children), func(name string) bool { return name == readyNode })
	slices.Sort(members)
	return members
}
