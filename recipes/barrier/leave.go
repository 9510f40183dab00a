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

// leave waits until all have left. With an error, our node is deleted in the background.
//
// As in Java the member with the lowest name goes last, and the others wait for it: so each of them is woken once.
func (d *DistributedDoubleBarrier) leave(ctx context.Context) error {
	x := &exit{DistributedDoubleBarrier: d, signal: newSignal(d.client), round: d.round}
	err := x.run(ctx)
	if err != nil {
		d.cleanUp(ctx, x.giveUp)
	}
	return err
}

// exit is one call of Leave.
type exit struct {
	*DistributedDoubleBarrier
	signal  *signal
	round   round
	version int32 // of ready: it counts those who joined late
	alone   bool  // all others have gone
}

// What the two ways to leave come to when they cannot be gone to the end.
var (
	errNotLowest = errors.New("barrier: another member goes last")
	errClosed    = errors.New("barrier: our node or ready is gone")
)

func (x *exit) run(ctx context.Context) (err error) {
	if err = x.learn(ctx); err != nil {
		return err
	}
	err = errNotLowest
	for errors.Is(err, errNotLowest) {
		if x.round.lowest() == x.name {
			err = x.leaveLast(ctx, x.round.members[1:])
		} else {
			err = x.leaveFirst(ctx)
		}
	}
	if errors.Is(err, errClosed) {
		if err = x.remove(ctx); err == nil {
			err = x.waitForOthers(ctx)
		}
	}
	return err
}

// learn waits for the list behind the opening. If that was lost it lists again: without our node, the ready of our
// round would be like any other.
func (x *exit) learn(ctx context.Context) error {
	if x.round.list == nil {
		return nil
	}
	ready, children, err := x.round.list.wait(ctx)
	if lineup.IsOutage(err) {
		err = x.retryOutage(ctx, func() (err error) {
			ready, children, err = x.list(ctx).wait(ctx)
			return err
		})
	}
	x.round = x.round.learn(x.name, ready, children)
	return err
}

// leaveFirst deletes our node while another one is lower, and waits for that. The transaction shows that ready is
// there: it is that of our round, for our node was there, too. And it shows that the lower one is: else nobody would
// end the round.
func (x *exit) leaveFirst(ctx context.Context) error {
	flight, op := builders.InOneFlight(ctx), x.client.TransactionOp()
	lowest := zkpath.Join(x.path, x.round.lowest())
	deletion := x.client.Transaction().Submit(flight,
		op.Check().ForPath(x.ready()), op.Check().ForPath(lowest), op.Delete().ForPath(x.own()))
	w := x.signal.watch(flight, lowest)
	defer w.remove(ctx)
	there, watchErr := w.exists(ctx)
	if _, err := deletion.Wait(ctx); errors.Is(err, zk.ErrNoNode) || lineup.IsOutage(err) {
		return x.leaveLast(ctx, nil) // it sees who is there
	} else if err != nil {
		return err
	}
	switch {
	case watchErr != nil && !lineup.IsOutage(watchErr):
		return watchErr
	case there && isIn(&w.stat, x.round.opened): // one who is not may wait for us to come again
		if event, err := w.await(ctx); err != nil || event == zk.EventNodeDataChanged && w.over { // see end
			return err
		}
	}
	return x.waitForOthers(ctx)
}

// leaveLast waits until all others have gone, of whom these are known, and ends the round.
func (x *exit) leaveLast(ctx context.Context, others []string) error {
	for {
		err := x.awaitAlone(ctx, others)
		if err == nil {
			x.alone = true
			err = x.end(ctx)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zk.ErrNoNode):
			return errClosed
		case errors.Is(err, zk.ErrBadVersion): // somebody has joined
			x.alone = false
			err = x.readVersion(ctx)
		case lineup.IsOutage(err):
			err = x.client.BlockUntilConnected(ctx)
		}
		if err != nil {
			return err
		}
		others = nil
	}
}

// awaitAlone waits until only our node is there.
func (x *exit) awaitAlone(ctx context.Context, others []string) error {
	for {
		if err := x.awaitHighest(ctx, &others); err != nil || len(x.round.members) == 1 {
			return err
		}
	}
}

// awaitHighest watches the highest of the others that are known, as Java does, and lists the barrier, in one flight.
// Then it waits until something happens to the one that it watches.
func (x *exit) awaitHighest(ctx context.Context, others *[]string) error {
	flight := builders.InOneFlight(ctx)
	var w *nodeWatch
	if n := len(*others); n > 0 {
		w = x.signal.watch(flight, zkpath.Join(x.path, (*others)[n-1]))
		defer w.remove(ctx)
	}
	children, err := x.client.GetChildren().ForPath(flight, x.path)
	if err != nil {
		return err
	}
	there := false
	if w != nil {
		if there, err = w.exists(ctx); err != nil {
			return err
		}
	}
	if !slices.Contains(children, x.name) || !slices.Contains(children, readyNode) || !x.inSession(x.round.session) {
		return errClosed
	}
	if x.round.members = membersAmong(children); x.round.lowest() != x.name {
		return errNotLowest
	}
	*others = x.round.members[1:]
	if there && len(*others) > 0 {
		_, err = w.await(ctx)
		*others = (*others)[:len(*others)-1]
	}
	return err
}

// end deletes ready and our node, as the one that goes last. Nobody else can be in: all have been seen to go, and who
// joined later has changed the version of ready. Our node is there, so ready is that of our round.
//
// The data of our node is set before it is deleted: those who watch it are told that it has changed, and know that all
// have left. Had we died, they would be told that it is deleted.
func (x *exit) end(ctx context.Context) error {
	op, tx := x.client.TransactionOp(), x.client.Transaction()
	ready, own := op.Delete().WithVersion(x.version).ForPath(x.ready()), op.Delete().ForPath(x.own())
	_, err := tx.ForOperations(ctx, ready, op.SetData().ForPath(x.own(), nil), own)
	if errors.Is(err, zk.ErrNoAuth) { // we may create and delete only
		_, err = tx.ForOperations(ctx, ready, own)
	}
	return err
}

// readVersion reads the version of ready, before the next look at who is there.
func (x *exit) readVersion(ctx context.Context) error {
	return x.retryOutage(ctx, func() error {
		stat, err := x.client.CheckExists().ForPath(ctx, x.ready())
		if stat != nil {
			x.version = stat.Version
		}
		return err
	})
}

// giveUp deletes our node; and ready with it, if only that was left to do.
func (x *exit) giveUp(ctx context.Context) error {
	if x.alone {
		if err := x.retryOutage(ctx, func() error { return x.end(ctx) }); err == nil {
			return nil
		}
	}
	return x.remove(ctx)
}
