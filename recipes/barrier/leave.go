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

// leave waits until all have left. With an error it returns what is still to be deleted.
//
// As in Java the one with the lowest name goes last, and all others wait for it: so each of them is woken once. It waits
// for each of them, where Java's waits for the highest, then for the highest of those that are left.
func (d *DistributedDoubleBarrier) leave(ctx context.Context) (left []string, err error) {
	if d.round.lowest() == d.name { // of those that we have seen: it may be that some have come later
		d.round, err = d.round.learn(ctx)
	}
	var x *exit
	switch {
	case err != nil:
	case d.round.lowest() < d.name:
		x, err = d.goAhead(ctx)
	default:
		x, err = d.goLast(ctx)
	}
	if err == nil && x == nil {
		x, err = d.lookBack(ctx)
	}
	if err != nil {
		return []string{d.own()}, err
	}
	if x.last {
		return []string{d.own(), d.ready()}, d.end(ctx)
	}
	if err := d.awaitAll(ctx, newAlarm(d.client, 0), x); err != nil || !x.ready {
		return nil, err
	}
	return []string{d.ready()}, d.remove(ctx, d.ready())
}

// goAhead is how one leaves who does not go last, while the barrier is open: our node goes, and when the one who goes last
// has gone, too, it sees who is still in. It returns nil if the barrier is not open any more: somebody has not waited for
// us.
func (d *DistributedDoubleBarrier) goAhead(ctx context.Context) (x *exit, err error) {
	x = &exit{}
	flight, op := builders.InOneFlight(ctx), d.client.TransactionOp()
	going := d.client.Transaction().StoringZxidIn(&x.newest).
		Submit(flight, op.Check().ForPath(d.ready()), op.Delete().ForPath(d.own()))
	if d.round, err = d.round.learn(ctx); err != nil {
		return nil, err
	}
	w := d.watchOut(flight)
	_, err = going.Wait(ctx)
	if err == nil && w.lowest == there && w.born <= x.newest {
		err = w.await(ctx)
	}
	w.end(ctx)
	switch {
	case errors.Is(err, zk.ErrNoNode), lineup.IsOutage(err):
		return nil, nil
	case err != nil:
		return nil, err
	case w.over && !d.round.late: // else another who is late may be in: the lowest has not waited for either
		return x, nil
	}
	return x, d.lookAround(ctx, x)
}

// lookAround sees who is in behind us.
func (d *DistributedDoubleBarrier) lookAround(ctx context.Context, x *exit) error {
	return d.insist(ctx, func() error {
		children, err := d.client.GetChildren().ForPath(ctx, d.path)
		x.others, x.ready = membersAmong(children), slices.Contains(children, readyNode)
		return unlessAbsent(err)
	})
}

// goLast is how one leaves who goes last: all others go before. It returns nil if we have no node, or the barrier is not
// open any more.
func (d *DistributedDoubleBarrier) goLast(ctx context.Context) (x *exit, err error) {
	known := &exit{others: slices.Clone(d.round.members), newest: d.round.newest}
	known.dropOne(d.name)
	err = d.insist(ctx, func() error {
		for {
			if x, err = d.outwait(ctx, known); err != nil || !x.last || len(x.others) == 0 {
				return err
			}
		}
	})
	if err != nil || !x.last {
		return nil, err
	}
	return x, nil
}

// outwait watches each of those that are known and lists the barrier, in one flight. If there are no others it waits until
// they have gone. It returns what the list has shown, and leaves in known who may still be there: somebody may come late.
func (d *DistributedDoubleBarrier) outwait(ctx context.Context, known *exit) (*exit, error) {
	a, flight := newAlarm(d.client, len(known.others)), builders.InOneFlight(ctx)
	watching := d.watchEach(flight, a, known)
	var parent zk.Stat
	children, err := d.client.GetChildren().StoringStatIn(&parent).ForPath(flight, d.path)
	x := exitOf(children, parent.Pzxid, d.name, d.round)
	rest := &exit{others: slices.Clone(x.others), newest: x.newest}
	if err = errors.Join(watching(ctx), unlessAbsent(err)); err == nil && x.last && x.isAmong(known.others) {
		err = d.hearOfEach(ctx, a, rest)
	}
	for _, name := range known.others {
		if err != nil || slices.Contains(rest.others, name) {
			a.off(ctx, zkpath.Join(d.path, name))
		}
	}
	*known = *rest
	return x, err
}

// lookBack is how one leaves who knows nothing: our node goes, and in the same flight it sees who is in.
func (d *DistributedDoubleBarrier) lookBack(ctx context.Context) (x *exit, err error) {
	err = d.insist(ctx, func() error {
		flight := builders.InOneFlight(ctx)
		deletion := d.client.Delete().Quietly().Submit(flight, d.own())
		var parent zk.Stat
		children, err := d.client.GetChildren().StoringStatIn(&parent).ForPath(flight, d.path)
		x = exitOf(children, parent.Pzxid, d.name, d.round)
		_, deleteErr := deletion.Wait(ctx)
		return errors.Join(unlessAbsent(err), deleteErr)
	})
	return x, err
}

// unlessAbsent returns err, unless it says that there is no node.
func unlessAbsent(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// exit is a Leave under way.
type exit struct {
	others []string // who have to go before we are done, in order
	newest int64    // of them, those up to this transaction: who is younger has come for another round
	last   bool     // we go last, and all others wait for that
	ready  bool     // the barrier is still open
}

func (x *exit) drop(which func(name string) bool) { x.others = slices.DeleteFunc(x.others, which) }

// isAmong reports whether only some of these have to go.
func (x *exit) isAmong(names []string) bool {
	return !slices.ContainsFunc(x.others, func(other string) bool { return !slices.Contains(names, other) })
}

func (x *exit) dropOne(name string) { x.drop(func(other string) bool { return other == name }) }

// exitOf decides for whom one waits who is about to leave a round, has the node of the name own, and sees these children,
// which there are up to the transaction newest.
//
// Who has left deletes ready before it comes again. So while there is a ready, all whose nodes are there are of our
// round. Without it somebody has not waited for us: because our node has gone with our session, or because Java's Leave
// returns when it sees one node, whoever that is, and when its time is up. They come again under the same names and wait
// for us to do so too, and one who waited for them would wait for ever. Their nodes are younger than the round.
func exitOf(children []string, newest int64, own string, r round) *exit {
	x := &exit{others: membersAmong(children), newest: r.newest, ready: slices.Contains(children, readyNode)}
	if x.ready {
		x.newest = newest
	}
	if i := slices.Index(x.others, own); i >= 0 {
		x.others = slices.Delete(x.others, i, i+1)
		x.last = x.ready && i == 0
	}
	return x
}

// awaitAll waits until each of those that x is about has gone.
func (d *DistributedDoubleBarrier) awaitAll(ctx context.Context, a *alarm, x *exit) error {
	for len(x.others) > 0 {
		name := x.others[0]
		younger, err := d.await(ctx, a, name, x.newest)
		if err == nil && younger {
			x.dropOne(name)
			continue
		}
		if err == nil {
			err = d.lookAgain(ctx, x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watchEach begins to watch all members that x waits for. What it returns waits for the answers, and drops those who have
// gone.
func (d *DistributedDoubleBarrier) watchEach(flight context.Context, a *alarm, x *exit) func(context.Context) error {
	watched := slices.Clone(x.others)
	stats := make([]zk.Stat, len(watched))
	answers := make([]builders.Future[[]byte], len(watched))
	for i, name := range watched {
		watch := d.client.GetData().StoringStatIn(&stats[i]).UsingWatcher(a.watcher)
		answers[i] = watch.Submit(flight, zkpath.Join(d.path, name))
	}
	return func(ctx context.Context) error {
		var errs []error
		for i, name := range watched {
			_, err := answers[i].Wait(ctx)
			switch {
			case errors.Is(err, zk.ErrNoNode):
				x.dropOne(name)
			case err != nil:
				errs = append(errs, err)
			case stats[i].Czxid > x.newest:
				a.off(ctx, zkpath.Join(d.path, name))
				x.dropOne(name)
			}
		}
		return errors.Join(errs...)
	}
}

// hearOfEach waits until all of those have gone, or something else has happened.
func (d *DistributedDoubleBarrier) hearOfEach(ctx context.Context, a *alarm, x *exit) error {
	for len(x.others) > 0 {
		select {
		case ev := <-a.heard:
			if ev.Type != zk.EventNodeDeleted {
				return nil
			}
			x.dropOne(zkpath.Node(ev.Path))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// await waits until a member has gone, or something else has happened. It does not wait for one that is younger than
// newest, and reports that.
func (d *DistributedDoubleBarrier) await(ctx context.Context, a *alarm, name string, newest int64) (younger bool, err error) {
	path := zkpath.Join(d.path, name)
	born, err := d.watch(ctx, a, path)
	if err == nil && born == 0 {
		return false, nil
	}
	if younger = born > newest; err == nil && !younger {
		select {
		case <-a.heard: // whatever it was: look again
			return false, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	a.off(ctx, path)
	return younger, err
}

// watch watches a member, and returns the transaction it was born in; 0 if it is gone.
func (d *DistributedDoubleBarrier) watch(ctx context.Context, a *alarm, path string) (born int64, err error) {
	var stat zk.Stat
	err = d.insist(ctx, func() error {
		// Not exists: that would leave a watch on a node that is gone.
		_, err := d.client.GetData().StoringStatIn(&stat).UsingWatcher(a.watcher).ForPath(ctx, path)
		return unlessAbsent(err)
	})
	return stat.Czxid, err
}

// lookAgain drops those who have gone.
func (d *DistributedDoubleBarrier) lookAgain(ctx context.Context, x *exit) error {
	return d.insist(ctx, func() error {
		children, err := d.client.GetChildren().ForPath(ctx, d.path)
		if unlessAbsent(err) != nil {
			return err
		}
		gone := func(name string) bool { return !slices.Contains(children, name) }
		x.drop(gone)
		x.ready = x.ready && !gone(readyNode)
		return nil
	})
}
