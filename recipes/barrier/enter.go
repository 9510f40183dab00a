package barrier

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// enter waits until the barrier opens, and returns the round that this begins.
func (d *DistributedDoubleBarrier) enter(ctx context.Context) (round, error) {
	if err := d.sweep(ctx); err != nil {
		return round{}, err
	}
	e := &entry{DistributedDoubleBarrier: d, alarm: newAlarm(d.client, 0)}
	fires := false // the watch of ready has told of its creation, or will
	defer func() {
		if !fires {
			e.alarm.off(ctx, d.ready())
		}
	}()
	for {
		s, err := e.look(ctx)
		if err != nil {
			return round{}, err
		}
		if s.verdict() == complete && e.isLast(s) { // all wait for us: the answer to the watch can wait
			began, err := e.open(s)
			if ready, watchErr := s.watching.Wait(ctx); began || err != nil {
				fires = began && watchErr == nil && ready == nil // else it is a watch of what was there
				return s.round(), err
			}
		}
		if err := e.awaitWatch(ctx, s); err != nil {
			return round{}, err
		}
		switch s.verdict() {
		case blind:
			if err := d.client.BlockUntilConnected(ctx); err != nil {
				return round{}, err
			}
		case absent: // look again, and come anew if we have to
		case opened:
			return s.round(), nil
		case complete:
			if fires, err = e.leaveToTheLast(ctx, s); fires || err != nil {
				return s.round(), err
			}
			if fires, err = e.open(s); fires || err != nil {
				return s.round(), err
			}
		case waiting:
			if fires, err = e.await(ctx, nil); fires || err != nil {
				return e.told(ctx, s), err
			}
		}
	}
}

// sweep deletes a ready that nobody has left behind who is still in: after a crash of all members the next round would
// pass through it. It is looked for before our node is made: else two members who come at the same time would take each
// other for somebody who is in. Whoever has left as one should knows that there is none, and none can come without us.
func (d *DistributedDoubleBarrier) sweep(ctx context.Context) error {
	if d.swept {
		return nil
	}
	children, err := d.client.GetChildren().ForPath(ctx, d.path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if slices.Contains(children, readyNode) && len(membersAmong(children)) == 0 {
		return d.remove(ctx, d.ready())
	}
	return nil
}

// entry is an Enter under way.
type entry struct {
	*DistributedDoubleBarrier
	alarm *alarm
	node  zk.Stat // of our node
}

// sight is what a member sees when it looks.
type sight struct {
	blind    bool     // there was no connection
	present  bool     // our node is there, and of the session that we have
	children []string // of the barrier
	newest   int64    // up to this transaction children come and go
	ready    bool     // the barrier is open
	late     bool     // it may have been when our node was made
	members  int      // that there have to be
	flight   context.Context
	watching builders.Future[*zk.Stat] // for the barrier to open
}

// round is one opening of a barrier, as a member knows it that has gone in.
type round struct {
	newest  int64      // up to this transaction, members are of this round
	members []string   // in order
	start   *beginning // nil if all were seen before it began
	late    bool       // we may have come when it had begun: others have not counted us
}

func (r round) lowest() string { return r.members[0] }

// beginning is who is in when a member is told that a round has begun: it has not seen those who have come last.
type beginning struct {
	children builders.Future[[]string]
	parent   zk.Stat
}

// told returns the round of one who saw s and was then told that it has begun. It asks who is in, and does not wait.
func (e *entry) told(ctx context.Context, s *sight) round {
	r := s.round()
	r.start = &beginning{}
	list := e.client.GetChildren().StoringStatIn(&r.start.parent)
	r.start.children = list.Submit(builders.InOneFlight(context.WithoutCancel(ctx)), e.path)
	return r
}

// learn waits for the answer, and returns what is known then.
func (r round) learn(ctx context.Context) (round, error) {
	if r.start == nil {
		return r, nil
	}
	children, err := r.start.children.Wait(ctx)
	members := membersAmong(children)
	if err == nil && len(members) > 0 && slices.Contains(children, readyNode) { // else some may have come again
		r.newest, r.members = r.start.parent.Pzxid, members
	}
	return r, ctx.Err()
}

// round returns the round that opens for one who sees s, or soon after.
func (s *sight) round() round {
	return round{newest: s.newest, members: membersAmong(s.children), late: s.late}
}

// verdict is what that means for one who enters.
type verdict int

const (
	waiting  verdict = iota // for others
	blind                   // nothing is known
	absent                  // others do not see us
	complete                // all have come, and nobody has said so yet
	opened                  // somebody has
)

func (s *sight) verdict() verdict {
	switch {
	case s.blind:
		return blind
	case !s.present:
		return absent
	case s.ready:
		return opened
	case len(membersAmong(s.children)) >= s.members:
		return complete
	}
	return waiting
}

// look makes our node, unless there is one of the session that we have, and then looks at the barrier and watches for it
// to open, all in one flight.
func (e *entry) look(ctx context.Context) (*sight, error) {
	s := &sight{members: e.members, flight: builders.InOneFlight(ctx)}
	var creation builders.Future[string]
	create := !e.isCurrent()
	if create {
		e.node = zk.Stat{}
		creation = e.client.Create().CreatingParentContainersIfNeeded().WithMode(builders.Ephemeral).
			StoringStatIn(&e.node).Submit(ctx, e.own(), nil)
	}
	var parent zk.Stat
	listing := e.client.GetChildren().StoringStatIn(&parent).Submit(s.flight, e.path)
	s.watching = e.client.CheckExists().UsingWatcher(e.alarm.watcher).Submit(s.flight, e.ready())
	children, err := listing.Wait(ctx)
	if create {
		if _, err := creation.Wait(ctx); errors.Is(err, zk.ErrNodeExists) {
			return s, e.adopt(ctx)
		} else if err != nil {
			return nil, err
		}
	}
	if errors.Is(err, zk.ErrNoNode) { // it is made with our node
		err = nil
	}
	if lineup.IsOutage(err) {
		s.blind = true
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.children, s.newest = children, parent.Pzxid
	s.ready = slices.Contains(children, readyNode)
	listed := slices.Contains(children, e.name)
	s.present = listed && e.isCurrent()
	if !listed && !create {
		e.node = zk.Stat{} // somebody has deleted it
	}
	return s, nil
}

// awaitWatch waits for the answer to the watch, which may have come too late to tell of the opening.
func (e *entry) awaitWatch(ctx context.Context, s *sight) error {
	ready, err := s.watching.Wait(ctx)
	switch {
	case lineup.IsOutage(err):
		s.blind = true
		return nil
	case err != nil:
		return err
	}
	s.late = s.ready && ready == nil || ready != nil && ready.Czxid < e.node.Czxid
	s.ready = s.ready || ready != nil
	return nil
}

// isLast reports whether we came last of those who are seen: our node is the latest change.
func (e *entry) isLast(s *sight) bool { return e.node.Czxid == s.newest }

// isCurrent reports whether our node is of the session that we have.
func (e *entry) isCurrent() bool {
	s := e.client.Session()
	return s != nil && s.ID() == e.node.EphemeralOwner && s.Context().Err() == nil
}

// adopt takes the node that is there already for ours, if it is of this session: then only the answer to the create was
// lost. One of an earlier session is about to vanish, and has to go first.
func (e *entry) adopt(ctx context.Context) error {
	stat, err := e.client.CheckExists().ForPath(ctx, e.own())
	if err != nil || stat == nil {
		return err
	}
	if e.node = *stat; e.isCurrent() {
		return nil
	}
	return e.remove(ctx, e.own())
}

// moment is far more than who has come last needs to open the barrier.
const moment = 20 * time.Millisecond

// leaveToTheLast gives the one who has come last a moment to open the barrier: if all who see that they are complete did,
// all but one would write in vain. If our node is the latest change that is us; if it is not, that may as well have been
// the end of somebody, or the last may have died.
func (e *entry) leaveToTheLast(ctx context.Context, s *sight) (began bool, err error) {
	if e.isLast(s) {
		return false, nil
	}
	t := time.NewTimer(moment)
	defer t.Stop()
	return e.await(ctx, t.C)
}

// open says that all have come. It does so on the connection on which that was seen, and only while our node is there: a
// ready that came later would let the next round through.
func (e *entry) open(s *sight) (began bool, err error) {
	op := e.client.TransactionOp()
	_, err = e.client.Transaction().ForOperations(s.flight,
		op.Check().ForPath(e.own()), op.Create().ForPath(e.ready(), nil))
	switch {
	case err == nil, errors.Is(err, zk.ErrNodeExists):
		return true, nil
	case errors.Is(err, zk.ErrNoNode), lineup.IsOutage(err): // look again
		return false, nil
	}
	return false, err
}

// await waits until something has happened or the time is up, and reports whether that was the opening: it has happened
// then, even if nothing is left to be seen of it.
func (e *entry) await(ctx context.Context, up <-chan time.Time) (began bool, err error) {
	select {
	case ev := <-e.alarm.heard:
		return e.alarm.heardOf(zk.EventNodeCreated) || ev.Type == zk.EventNodeCreated, nil
	case <-up:
		return false, nil
	case <-ctx.Done():
		if e.alarm.heardOf(zk.EventNodeCreated) {
			return true, nil
		}
		return false, ctx.Err()
	}
}
