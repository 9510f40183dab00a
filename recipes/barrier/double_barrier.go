package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// DistributedDoubleBarrier has a number of members begin together and end together: Enter returns when all have come,
// Leave when all have gone. The members may do that again and again. One value is one member: each of them, in this
// process or another, has its own. In Java: DistributedDoubleBarrier.
type DistributedDoubleBarrier struct {
	client  Client
	path    string
	members int
	name    string // of our node: the same in each round, so that no server counts us twice
	bad     error  // why the path or the number cannot be
	told    telemetry.Barrier

	mu    sync.Mutex
	place place
	// Of the one who enters or leaves.
	round round         // that we are in
	swept bool          // there is no ready of another round
	gone  chan struct{} // closed when what we left to the background is deleted; nil if that is nothing
}

// place is where a member is.
type place int

const (
	outside place = iota
	entering
	inside
	leaving
)

// readyNode is the node that tells the members to go in, beside those of the members.
const readyNode = "ready"

// NewDistributedDoubleBarrier returns a member of the barrier of a path with that number of members, on which all of
// them have to agree. It does no I/O; a path or a number that cannot be is the error of every method.
func NewDistributedDoubleBarrier(client Client, path string, members int, opts ...Option) *DistributedDoubleBarrier {
	d := &DistributedDoubleBarrier{
		client:  client,
		path:    path,
		members: members,
		name:    zkpath.NewProtectionID(),
		bad:     zkpath.Validate(path, false),
		told:    telemetry.Of(client).NewBarrier("double_barrier", settingsOf(opts).name, path),
	}
	if d.bad == nil && members < 1 {
		d.bad = fmt.Errorf("barrier: %d members", members)
	}
	return d
}

func (d *DistributedDoubleBarrier) own() string   { return zkpath.Join(d.path, d.name) }
func (d *DistributedDoubleBarrier) ready() string { return zkpath.Join(d.path, readyNode) }

// Enter waits until as many members as there are to be have come. With an error we have not entered, and our node is
// gone or being deleted in the background; the others may have counted it already, and have entered.
//
// ctx bounds the waiting. While the connection is lost our place is kept; when the session is lost we come anew with the
// next one. Other errors: [ErrEntered], and those of the first look and of the create, when the retry policy of the
// client has given up. In Java: enter.
func (d *DistributedDoubleBarrier) Enter(ctx context.Context) error {
	if d.bad != nil {
		return errtext.Wrap(d.bad, "barrier", "enter")
	}
	if !d.move(outside, entering) {
		return errtext.Wrap(ErrEntered, "barrier", "enter %s", d.path)
	}
	ctx, asked := d.told.Wait(d.client.Telemetry().Handling(ctx), "enter", d.members)
	err := d.awaitGone(ctx)
	if err == nil {
		if d.round, err = d.enter(ctx); err != nil {
			d.leaveToBackground(ctx, d.own())
		}
	}
	asked.End(telemetry.Outcome(err, telemetry.Passed), err)
	if err != nil {
		d.move(entering, outside)
		return errtext.Wrap(err, "barrier", "enter %s", d.path)
	}
	d.move(entering, inside)
	return nil
}

// Leave waits until all members who are in have called it, or their sessions have ended. With an error not all have, as
// far as we know; we have left all the same: our node is gone or being deleted in the background.
//
// ctx bounds the waiting, never the deleting. An outage does not end the wait. If our session was lost since Enter, the
// others have not waited for us; Leave waits for those who are still in. [ErrNotEntered] says that there is nothing to
// leave. In Java: leave.
func (d *DistributedDoubleBarrier) Leave(ctx context.Context) error {
	if d.bad != nil {
		return errtext.Wrap(d.bad, "barrier", "leave")
	}
	if !d.move(inside, leaving) {
		return errtext.Wrap(ErrNotEntered, "barrier", "leave %s", d.path)
	}
	defer d.move(leaving, outside)
	ctx, asked := d.told.Wait(d.client.Telemetry().Handling(ctx), "leave", d.members)
	left, err := d.leave(ctx)
	asked.End(telemetry.Outcome(err, telemetry.Passed), err)
	if err != nil {
		d.leaveToBackground(ctx, left...)
		return errtext.Wrap(err, "barrier", "leave %s without the others", d.path)
	}
	d.swept = true
	return nil
}

// move goes from one place to another, if that is where we are.
func (d *DistributedDoubleBarrier) move(from, to place) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.place != from {
		return false
	}
	d.place = to
	return true
}

// end ends the round, as the one who goes last: ready goes and, at once, our node. Before it does its data is set, so that
// who watches it is told that it has changed, and not that it is gone, as when we had died: then nobody else is left of those
// whom ready found.
func (d *DistributedDoubleBarrier) end(ctx context.Context) error {
	return d.insist(ctx, func() error {
		op, tx := d.client.TransactionOp(), d.client.Transaction()
		ready, own := op.Delete().ForPath(d.ready()), op.Delete().ForPath(d.own())
		_, err := tx.ForOperations(ctx, ready, op.SetData().ForPath(d.own(), nil), own)
		if errors.Is(err, zk.ErrNoAuth) { // we may create and delete only
			_, err = tx.ForOperations(ctx, ready, own)
		}
		if errors.Is(err, zk.ErrNoNode) { // one of them is gone
			return d.remove(ctx, d.own(), d.ready())
		}
		return err
	})
}

// remove deletes nodes, if they are there. It goes on while only the connection is missing.
func (d *DistributedDoubleBarrier) remove(ctx context.Context, paths ...string) error {
	return d.insist(ctx, func() error {
		deletions := make([]builders.Future[struct{}], len(paths))
		for i, path := range paths {
			deletions[i] = d.client.Delete().Quietly().Submit(ctx, path)
		}
		var errs []error
		for _, deletion := range deletions {
			_, err := deletion.Wait(ctx)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// insist does fn until it does not fail for want of a connection.
func (d *DistributedDoubleBarrier) insist(ctx context.Context, fn func() error) error {
	for {
		err := fn()
		if !lineup.IsOutage(err) {
			return err
		}
		if err := d.client.BlockUntilConnected(ctx); err != nil {
			return err
		}
	}
}

// leaveToBackground has nodes deleted until they are gone. A delete of its own, not a guaranteed one: of that nobody
// could tell when it is over, and the node that it deletes late would be that of the next round.
func (d *DistributedDoubleBarrier) leaveToBackground(ctx context.Context, paths ...string) {
	d.gone, d.swept = make(chan struct{}), false
	d.deleteInBackground(ctx, paths, d.gone)
}

func (d *DistributedDoubleBarrier) deleteInBackground(ctx context.Context, paths []string, done chan struct{}) {
	if len(paths) == 0 {
		close(done)
		return
	}
	err := d.client.Delete().Guaranteed().Quietly().InBackground(func(ctx context.Context, ev callbacks.Event) {
		if !lineup.IsOutage(ev.Err) {
			paths = paths[1:]
		}
		d.deleteInBackground(ctx, paths, done)
	}).ForPath(ctx, paths[0])
	if err != nil { // the client is closed
		close(done)
	}
}

// awaitGone waits until nothing of ours is left from before.
func (d *DistributedDoubleBarrier) awaitGone(ctx context.Context) error {
	if d.gone == nil {
		return nil
	}
	select {
	case <-d.gone:
		d.gone = nil
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// membersAmong returns the names of the members among the children of the barrier, in order.
func membersAmong(children []string) []string {
	members := slices.DeleteFunc(slices.Clone(children), func(name string) bool { return name == readyNode })
	slices.Sort(members)
	return members
}
