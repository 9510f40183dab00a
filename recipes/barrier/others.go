package barrier

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// waitForOthers waits until all other members of our round have left. Our own node does not exist any more.
func (x *exit) waitForOthers(ctx context.Context) error {
	for {
		waited, err := x.awaitOther(ctx)
		if waitqueue.IsPassing(err) {
			waited, err = true, waitqueue.AwaitConnection(ctx, x.client)
		}
		if !waited || err != nil {
			return err
		}
	}
}

// awaitOther waits for an event of the lowest of the others or of ready. It returns false if there is no other member
// to wait for. A listed member that is gone may have been the one that a late member saw in and joined: while the round
// is open, that takes another list.
//
// While the ready of our round exists, every member with a node is in our round. If it is gone, a member did not wait
// for us: our node has gone with our session, or Java's Leave has returned because it saw a single node, or because its
// time was up. Nodes of the next round are younger than our round. awaitOther does not wait for them, as that could
// last for ever.
func (x *exit) awaitOther(ctx context.Context) (waited bool, err error) {
	flight := builders.Pipelined(ctx)
	ready := x.signal.watch(flight, x.ready())
	defer ready.remove(ctx)
	children, err := x.client.GetChildren().ForPath(flight, x.path)
	open, readyErr := ready.exists(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	if err = errors.Join(err, readyErr); err != nil {
		return false, err
	}
	open = open && ready.stat.Czxid == x.round.opened
	for _, name := range membersAmong(children) {
		if !open && !slices.Contains(x.round.members, name) {
			continue
		}
		if waited, err = x.awaitChange(ctx, flight, name, open); waited || err != nil {
			return waited, err
		}
	}
	return false, nil
}

// awaitChange waits for an event of a member or of ready, if the member is still there. It returns false if the next
// member can be looked at without another list. After the end of the round it does not wait for a node that is younger
// than the round.
func (x *exit) awaitChange(ctx, flight context.Context, name string, open bool) (waited bool, err error) {
	w := x.signal.watch(flight, zkpath.Join(x.path, name))
	defer w.remove(ctx)
	if there, err := w.exists(ctx); !there {
		return open, err
	}
	if !open && w.stat.Czxid > x.round.opened {
		return false, nil
	}
	_, err = w.await(ctx)
	return true, err
}
