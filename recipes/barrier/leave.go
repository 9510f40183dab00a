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

// leave waits until all have left. After an error it deletes our node in the background.
//
// As in Java, the member with the lowest name leaves last and the others wait for it, so each of them wakes once.
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
	version int32 // the version of ready, which is the number of members that joined late
	alone   bool  // all others have left
}

// These errors of leaveFirst and leaveLast make run continue in another way.
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

// learn waits for the list that begin sent. If that has failed it lists again, while our node still shows that ready
// belongs to our round: the list was sent during Enter, and its error may be over.
func (x *exit) learn(ctx context.Context) error {
	if x.round.list == nil {
		return nil
	}
	ready, children, err := x.round.list.wait(ctx)
	if err != nil {
		err = waitqueue.RetryPassing(ctx, x.client, func() (err error) {
			ready, children, err = x.list(ctx).wait(ctx)
			return err
		})
	}
	x.round = x.round.learn(x.name, ready, children)
	return err
}

// leaveFirst deletes our node while a lower one exists, and waits for the lower one. The transaction checks ready,
// which is that of our round because our node exists too. It also checks the lower node, whose member ends the round.
func (x *exit) leaveFirst(ctx context.Context) error {
	flight, op := builders.Pipelined(ctx), x.client.TransactionOp()
	lowest := zkpath.Join(x.path, x.round.lowest())
	deletion := x.client.Transaction().Submit(flight,
		op.Check().ForPath(x.ready()), op.Check().ForPath(lowest), op.Delete().ForPath(x.own()))
	w := x.signal.watch(flight, lowest)
	defer w.remove(ctx)
	there, watchErr := w.exists(ctx)
	if _, err := deletion.Wait(ctx); errors.Is(err, zk.ErrNoNode) || waitqueue.IsPassing(err) {
		return x.leaveLast(ctx, nil) // it lists the members
	} else if err != nil {
		return err
	}
	switch {
	case watchErr != nil && !waitqueue.IsPassing(watchErr):
		return watchErr
	case there && isIn(&w.stat, x.round.opened): // a member that is not in may wait for our next Enter
		if event, err := w.await(ctx); err != nil || event == zk.EventNodeDataChanged && w.over { // see end
			return err
		}
	}
	return x.waitForOthers(ctx)
}

// leaveLast waits until all others have left, and ends the round. others has the other members known so far.
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
		case errors.Is(err, zk.ErrBadVersion): // a late member has joined
			x.alone = false
			err = x.readVersion(ctx)
		case waitqueue.IsPassing(err):
			err = waitqueue.AwaitConnection(ctx, x.client)
		}
		if err != nil {
			return err
		}
		others = nil
	}
}

// awaitAlone waits until only our node is left.
func (x *exit) awaitAlone(ctx context.Context, others []string) error {
	for {
		if err := x.awaitHighest(ctx, &others); err != nil || len(x.round.members) == 1 {
			return err
		}
	}
}

// awaitHighest watches the highest of the known others, as Java does, and lists the barrier, in one flight. Then it
// waits for an event of that node.
//
// While there is one other, the list has a watch, too. If the first event is then the end of that node, no member has
// come since the list: our node was alone when that node ended.
func (x *exit) awaitHighest(ctx context.Context, others *[]string) error {
	flight := builders.Pipelined(ctx)
	var w *nodeWatch
	list := x.client.GetChildren()
	if n := len(*others); n > 0 {
		w = x.signal.watch(flight, zkpath.Join(x.path, (*others)[n-1]))
		defer w.remove(ctx)
		if n == 1 {
			list = list.UsingWatcher(w.watcher) // it fires with the end of our node at the latest
		}
	}
	children, err := list.ForPath(flight, x.path)
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
	watched := slices.Equal(*others, x.round.members[1:])
	*others = x.round.members[1:]
	if !there || len(*others) == 0 {
		return nil
	}
	event, err := w.await(ctx)
	*others = (*others)[:len(*others)-1]
	if watched && len(*others) == 0 && w.over && event == zk.EventNodeDeleted && x.inSession(x.round.session) {
		x.round.members = x.round.members[:1]
	}
	return err
}

// end deletes ready and our node, as the last member of the round. No other member can be in: all others have left, and
// a late member would have changed the version of ready. Our node exists, so ready is that of our round.
//
// The transaction changes the data of our node before it deletes the node. The members that watch it get an event of a
// change, which means that all have left. If we died, they would get an event of a deletion.
func (x *exit) end(ctx context.Context) error {
	op, tx := x.client.TransactionOp(), x.client.Transaction()
	ready, own := op.Delete().WithVersion(x.version).ForPath(x.ready()), op.Delete().ForPath(x.own())
	_, err := tx.ForOperations(ctx, ready, op.SetData().ForPath(x.own(), nil), own)
	if errors.Is(err, zk.ErrNoAuth) { // without write permission
		_, err = tx.ForOperations(ctx, ready, own)
	}
	return err
}

// readVersion reads the version of ready, before the next list of the members.
func (x *exit) readVersion(ctx context.Context) error {
	return waitqueue.RetryPassing(ctx, x.client, func() error {
		stat, err := x.client.CheckExists().ForPath(ctx, x.ready())
		if stat != nil {
			x.version = stat.Version
		}
		return err
	})
}

// giveUp deletes our node, and ready too if all others have left.
func (x *exit) giveUp(ctx context.Context) error {
	if x.alone {
		if err := waitqueue.RetryPassing(ctx, x.client, func() error { return x.end(ctx) }); err == nil {
			return nil
		}
	}
	return x.remove(ctx)
}
