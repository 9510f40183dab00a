package barrier

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/waitqueue"
)

// enter waits until the barrier opens, and returns the new round.
func (d *DistributedDoubleBarrier) enter(ctx context.Context) (round, error) {
	if err := d.awaitCleanup(ctx); err != nil {
		return round{}, err
	}
	d.name = d.newName()
	e := &entry{DistributedDoubleBarrier: d, signal: newSignal(d.client)}
	r, err := e.run(ctx)
	if !e.fired {
		waitqueue.Unwatch(ctx, e.client, e.signal.watcher, d.ready())
	}
	if err != nil {
		d.cleanUp(ctx, d.remove)
	}
	return r, err
}

// entry is one call of Enter.
type entry struct {
	*DistributedDoubleBarrier
	signal   *signal
	created  bool    // a create was sent
	node     zk.Stat // the Stat of our node
	seen     bool    // a list had our node
	opening  int64   // the transaction in which we created ready; 0 if another member did
	fired    bool    // the watch of ready has reported its creation, or will
	refusals int     // number of refused watches of our node in a row

	session int64     // the session of the last look
	renewed bool      // our node may have been in a round of an earlier session that is over
	last    *snapshot // the last list before renewed; nil if there was none
}

// run reads the barrier after each event until it is open.
func (e *entry) run(ctx context.Context) (round, error) {
	for {
		s, err := e.look(ctx)
		if err != nil {
			return round{}, err
		}
		in := false
		switch s.verdict() {
		case unknown:
			err = waitqueue.AwaitConnection(ctx, e.client)
		case absent: // look creates the node again if it is gone
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

// look creates our node, unless it exists in the current session, lists the barrier and watches ready, all in one
// flight.
func (e *entry) look(ctx context.Context) (*snapshot, error) {
	if !e.seen {
		e.signal.received(zk.EventNodeCreated) // the event may be older than our node
	}
	s := &snapshot{quorum: e.members, flight: builders.Pipelined(ctx)}
	e.noteSession()
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
	if errors.Is(listErr, zk.ErrNoNode) { // the barrier is created with our node
		listErr = nil
	}
	if waitqueue.IsPassing(listErr) || waitqueue.IsPassing(existsErr) || e.sessionChanged() {
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
		e.node, e.seen = zk.Stat{}, false // another client has deleted it
	}
	return s, e.checkMissed(s)
}

// noteSession records a change of the session since the last look.
func (e *entry) noteSession() {
	if s := e.client.Session(); s != nil && s.Context().Err() == nil {
		e.renewed = e.renewed || e.session != 0 && e.session != s.ID()
		e.session = s.ID()
	}
}

// sessionChanged reports whether another session has begun since noteSession. If the create was sent in one session and
// the list in the next, the list does not show what happened in between.
func (e *entry) sessionChanged() bool {
	return e.session != 0 && e.client.SessionID() != e.session
}

// checkMissed returns an error if a round may have begun and ended since the node of an earlier session was created.
// The others may have counted that node. In the next round this member would stay one round behind them. While ready
// exists, the member joins that round.
func (e *entry) checkMissed(s *snapshot) error {
	if e.renewed && s.ready != nil {
		return nil
	}
	if e.renewed && s.mayHaveMissed(e.last, e.name) {
		return ErrSessionEnded
	}
	e.renewed, e.last = false, s
	return nil
}

// isCurrent reports whether our node belongs to the client's session.
func (e *entry) isCurrent() bool { return e.inSession(e.node.EphemeralOwner) }

// rename deletes the node of an earlier session and chooses a name for the next node. A late request of that session
// then cannot change the next node.
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

// adopt reads the node that already exists. It is ours if it belongs to the current session: then the reply of the
// create was lost.
func (e *entry) adopt(ctx context.Context) error {
	stat, err := e.client.CheckExists().ForPath(ctx, e.own())
	if err == nil && stat != nil {
		e.node = *stat
	}
	return err
}

// moment is much longer than the last member needs to create ready.
const moment = 20 * time.Millisecond

// open creates ready while our node exists, on the connection of the snapshot. Members other than the last one wait a
// moment for the last one to do so: otherwise all members that see the complete barrier would write, and all but one of
// the writes would fail.
func (e *entry) open(ctx context.Context, s *snapshot) (in bool, err error) {
	if !s.last() {
		if woken, in, err := e.awaitMoment(ctx); woken {
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
	case errors.Is(err, zk.ErrNoNode): // look again
		return false, nil
	}
	return false, e.again(ctx, err)
}

// awaitOthers waits until ready is created, or our node is gone: without a node the others would not count us. After a
// moment it watches our node, on the connection of the snapshot. The watch ends with the node. A node without read
// permission is not watched; run looks again after a pause.
func (e *entry) awaitOthers(ctx context.Context, s *snapshot) (in bool, err error) {
	if woken, in, err := e.awaitMoment(ctx); woken {
		return in, err
	}
	_, err = e.client.GetData().Undecompressed().UsingWatcher(e.signal.watcher).Submit(s.flight, e.own()).Wait(ctx)
	switch {
	case errors.Is(err, zk.ErrNoNode): // look again
		return false, nil
	case errors.Is(err, zk.ErrNoAuth):
		e.refusals++
		_, in, err = e.awaitFor(ctx, waitqueue.ReadPause(e.refusals))
		return in, err
	case err != nil:
		return false, e.again(ctx, err)
	}
	e.refusals = 0
	return e.awaitReady(ctx)
}

// again waits until it makes sense to look again if err passes, and returns nil. It returns other errors unchanged.
func (e *entry) again(ctx context.Context, err error) error {
	if waitqueue.IsPassing(err) {
		return waitqueue.AwaitConnection(ctx, e.client)
	}
	return err
}

// awaitReady waits for an event, and reports whether ready was created. If it was, the round has begun, and may already
// have ended.
func (e *entry) awaitReady(ctx context.Context) (created bool, err error) {
	_, created, err = e.awaitReadyUntil(ctx, nil)
	return created, err
}

// awaitMoment is awaitFor with moment.
func (e *entry) awaitMoment(ctx context.Context) (woken, created bool, err error) {
	return e.awaitFor(ctx, moment)
}

// awaitFor is awaitReady for some time. It also reports whether there was an event.
func (e *entry) awaitFor(ctx context.Context, d time.Duration) (woken, created bool, err error) {
	t := time.NewTimer(d)
	defer t.Stop()
	return e.awaitReadyUntil(ctx, t.C)
}

// awaitReadyUntil is awaitReady with a timeout. woken is false after the timeout.
func (e *entry) awaitReadyUntil(ctx context.Context, timeout <-chan time.Time) (woken, created bool, err error) {
	select {
	case ev := <-e.signal.events:
		woken, created = true, ev.Type == zk.EventNodeCreated
	case <-timeout:
	case <-ctx.Done():
		woken, err = true, ctx.Err()
	}
	if e.signal.received(zk.EventNodeCreated) || created {
		e.fired = true
		return true, true, nil
	}
	return woken, false, err
}

// begin returns the round that has begun. A member that did not create ready may have missed the last members. It sends
// another list, and does not wait for the reply.
func (e *entry) begin(ctx context.Context, s *snapshot) round {
	r := round{opened: s.parent.Pzxid, members: membersAmong(s.children), session: e.node.EphemeralOwner}
	if e.opening != 0 {
		r.opened = e.opening
	} else {
		r.list = e.list(context.WithoutCancel(ctx))
	}
	return r
}
