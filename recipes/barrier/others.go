package barrier

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// waitForOthers waits, without a node of our own, until nobody is in whom we have entered with.
func (x *exit) waitForOthers(ctx context.Context) error {
	for {
		waited, err := x.awaitOther(ctx)
		if lineup.IsOutage(err) {
			waited, err = true, x.client.BlockUntilConnected(ctx)
		}
		if !waited || err != nil {
			return err
		}
	}
}

// awaitOther waits until something happens to the lowest of the others, or to ready, and reports whether there was
// somebody to wait for.
//
// As long as the ready of our round is there, it is over for nobody who has a node. Without it, somebody did not wait
// for us: our node has gone with our session, or Java's Leave has returned when it saw one node, or when its time was
// up. Those who have come again since are younger than the round; to wait for them would be to wait for ever.
func (x *exit) awaitOther(ctx context.Context) (waited bool, err error) {
	flight := builders.InOneFlight(ctx)
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

// awaitChange waits until something happens to a member or to ready. It does not wait for one that is younger than the
// round if that is over.
func (x *exit) awaitChange(ctx, flight context.Context, name string, open bool) (waited bool, err error) {
	w := x.signal.watch(flight, zkpath.Join(x.path, name))
	defer w.remove(ctx)
	if there, err := w.exists(ctx); !there {
		return false, err
	}
	if !open && w.stat.Czxid > x.round.opened {
		return false, nil
	}
	_, err = w.await(ctx)
	return true, err
}
