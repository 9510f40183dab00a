package barrier

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// enter waits until the barrier opens, and returns the round that begins.
func (d *DistributedDoubleBarrier) enter(ctx context.Context) (round, error) {
	if err := d.awaitCleanup(ctx); err != nil {
		return round{}, err
	}
	d.name = d.newName()
	e := &entry{DistributedDoubleBarrier: d, signal: newSignal(d.client)}
	r, err := e.run(ctx)
	if !e.fired {
		e.signal.unwatch(ctx, e.signal.watcher, d.ready())
	}
	if err != nil {
		d.cleanUp(ctx, d.remove)
	}
	return r, err
}

// entry is one call of Enter.
type entry struct {
	*DistributedDoubleBarrier
	signal  *signal
	created bool    // a create was sent
	node    zk.Stat // our node
	seen    bool    // in a list
	opening int64   // the transaction in which we have created ready; 0 if another member has
	fired   bool    // the watch of ready has told of its creation, or will
}

// run reads the barrier until it is open: as often as something happens.
func (e *entry) run(ctx context.Context) (round, error) {
	for {
		s, err := e.look(ctx)
		if err != nil {
			return round{}, err
		}
		in := false
		switch s.verdict() {
		case unknown:
			err = e.client.BlockUntilConnected(ctx)
		case absent: // look again, and create the node if it has to be
		case waiting:
			in, err = e.awaitOthers(ctx, s)
		case complete:
			in, err = e.open(ctx, s)
		case opened:
			in = true
		case late:
			in, err = e.join(ctx, s)
		}
		if err != nil {
			return round{}, err
		}
		if in {
			return e.begin(ctx, s), nil
		}
	}
}

// look creates our node, unless there is one of the current session, lists the barrier, and watches ready: in one
// flight.
func (e *entry) look(ctx context.Context) (*snapshot, error) {
	if !e.seen {
		e.signal.received(zk.EventNodeCreated) // it may be older than our node
	}
	s := &snapshot{quorum: e.members, flight: builders.InOneFlight(ctx)}
	var creation builders.Future[string]
	create := !e.isCurrent()
	if create {
		if err := e.rename(ctx); err != nil {
			return nil, err
		}
		creation = e.client.Create().CreatingParentContainersIfNeeded().WithMode(builders.Ephemeral).
			StoringStatIn(&e.node).Submit(ctx, e.own(), nil)
	}
	list := e.client.GetChildren().StoringStatIn(&s.parent).Submit(s.flight, e.path)
	exists := e.client.CheckExists().UsingWatcher(e.signal.watcher).Submit(s.flight, e.ready())
	children, listErr := list.Wait(ctx)
	ready, existsErr := exists.Wait(ctx)
	if create {
		if _, err := creation.Wait(ctx); errors.Is(err, zk.ErrNodeExists) {
			return s, e.adopt(ctx)
		} else if err != nil {
			return nil, err
		}
	}
	if errors.Is(listErr, zk.ErrNoNode) { // it is created with our node
		listErr = nil
	}
	if lineup.IsOutage(listErr) || lineup.IsOutage(existsErr) {
		s.unknown = true
		return s, nil
	}
	if err := errors.Join(listErr, existsErr); err != nil {
		return nil, err
	}
	s.children, s.ready = children, ready
	switch listed := s.has(e.name); {
	case listed && e.isCurrent():
		s.born, e.seen = e.node.Czxid, true
	case !listed && !create:
		e.node, e.seen = zk.Stat{}, false // somebody has deleted it
	}
	return s, nil
}

// isCurrent reports whether our node is of the session that the client has.
func (e *entry) isCurrent() bool { return e.inSession(e.node.EphemeralOwner) }

// rename deletes the node of an earlier session, and gives the next one another name: what that session has sent cannot
// change it.
func (e *entry) rename(ctx context.Context) error {
	if e.created {
		if err := e.remove(ctx); err != nil {
			return err
		}
		e.name = e.newName()
	}
	e.created, e.node, e.seen = true, zk.Stat{}, false
	return nil
}

// adopt takes the node that is there already for ours, if it is of the current session: then only the answer to the
// create was lost.
func (e *entry) adopt(ctx context.Context) error {
	stat, err := e.client.CheckExists().ForPath(ctx, e.own())
	if err == nil && stat != nil {
		e.node = *stat
	}
	return err
}

// moment is far more than the last member needs to create ready.
const moment = 20 * time.Millisecond

// open creates ready, on the connection on which all were seen, and only while our node is there. Who did not come last
// leaves that to the last for a moment: else all but one of those who see all members would write in vain.
func (e *entry) open(ctx context.Context, s *snapshot) (in bool, err error) {
	if !s.last() {
		if happened, in, err := e.awaitMoment(ctx); happened {
			return in, err
		}
	}
	op := e.client.TransactionOp()
	_, err = e.client.Transaction().StoringZxidIn(&e.opening).ForOperations(s.flight,
		op.Check().ForPath(e.own()), op.Create().ForPath(e.ready(), nil))
	switch {
	case err == nil, errors.Is(err, zk.ErrNodeExists):
		e.fired = true
		return true, nil
	case errors.Is(err, zk.ErrNoNode), lineup.IsOutage(err): // look again
		return false, nil
	}
	return false, err
}

// awaitOthers waits until ready was created, or our node has gone: without it nobody would count us. A member that waits
// for more than a moment watches its node, on the connection on which it was seen; the watch ends with the node. A node
// that may not be read is not watched.
func (e *entry) awaitOthers(ctx context.Context, s *snapshot) (in bool, err error) {
	if happened, in, err := e.awaitMoment(ctx); happened {
		return in, err
	}
	_, err = e.client.GetData().Undecompressed().UsingWatcher(e.signal.watcher).Submit(s.flight, e.own()).Wait(ctx)
	switch {
	case errors.Is(err, zk.ErrNoNode), lineup.IsOutage(err): // look again
		return false, nil
	case err != nil && !errors.Is(err, zk.ErrNoAuth):
		return false, err
	}
	return e.awaitReady(ctx)
}

// awaitReady waits until something happens, and reports whether ready was created: then the round has begun, even if it
// is over.
func (e *entry) awaitReady(ctx context.Context) (created bool, err error) {
	_, created, err = e.awaitReadyUntil(ctx, nil)
	return created, err
}

// awaitMoment is awaitReady for a moment. It reports whether something has happened.
func (e *entry) awaitMoment(ctx context.Context) (happened, created bool, err error) {
	t := time.NewTimer(moment)
	defer t.Stop()
	return e.awaitReadyUntil(ctx, t.C)
}

func (e *entry) awaitReadyUntil(ctx context.Context, up <-chan time.Time) (happened, created bool, err error) {
	select {
	case ev := <-e.signal.events:
		happened, created = true, ev.Type == zk.EventNodeCreated
	case <-up:
	case <-ctx.Done():
		happened, err = true, ctx.Err()
	}
	if e.signal.received(zk.EventNodeCreated) || created {
		e.fired = true
		return true, true, nil
	}
	return happened, false, err
}

// begin returns the round that has begun. Who did not create ready has not seen those who came last: it lists them, and
// does not wait for the answer.
func (e *entry) begin(ctx context.Context, s *snapshot) round {
	r := round{opened: s.parent.Pzxid, members: membersAmong(s.children), session: e.node.EphemeralOwner}
	if e.opening != 0 {
		r.opened = e.opening
	} else {
		r.list = e.list(context.WithoutCancel(ctx))
	}
	return r
}
