package barrier

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
)

// round is a member's knowledge of the round that it has entered.
type round struct {
	// opened is the transaction that created ready, or an earlier one if it is not known. The nodes of counted members
	// are older.
	opened  int64
	members []string // the known members, in order
	session int64    // the session of our node
	list    *listing // sent after the opening; nil if ready is known
}

// listing is a read of ready and a list of the barrier, in one flight.
type listing struct {
	ready    builders.Future[*zk.Stat]
	children builders.Future[[]string]
}

// list sends a listing. It does not wait.
func (d *DistributedDoubleBarrier) list(ctx context.Context) *listing {
	flight := builders.Pipelined(ctx)
	return &listing{
		ready:    d.client.CheckExists().Submit(flight, d.ready()),
		children: d.client.GetChildren().Submit(flight, d.path),
	}
}

func (l *listing) wait(ctx context.Context) (ready *zk.Stat, children []string, err error) {
	ready, readyErr := l.ready.Wait(ctx)
	children, err = l.children.Wait(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	return ready, children, errors.Join(readyErr, err)
}

func (r round) lowest() string { return r.members[0] }

// learn returns the round with the results of a listing. While our node exists, ready is that of our round. If either
// is missing, the listing may show the next round, and learn ignores it.
func (r round) learn(own string, ready *zk.Stat, children []string) round {
	if ready != nil && slices.Contains(children, own) {
		r.opened, r.members = ready.Czxid, membersAmong(children)
	}
	return r
}

// membersAmong returns the names of the members among the children of the barrier, in order.
func membersAmong(children []string) []string {
	members := slices.DeleteFunc(slices.Clone(children), func(name string) bool { return name == readyNode })
	slices.Sort(members)
	return members
}
