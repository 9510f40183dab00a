package barrier

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/zkpath"
)

// leave waits until all have left. With an error it returns what is still to be deleted.
//
// As in Java the one with the lowest name goes last, and all others wait for it: so each of them is woken once. It waits
// for the highest, then for the highest of those that are left.
func (d *DistributedDoubleBarrier) leave(ctx context.Context) (left []string, err error) {
	if d.round, err = d.round.learn(ctx); err != nil {
		return []string{d.own()}, err
	}
	goes := d.round.lowest < d.name // somebody lower goes last
	x, err := d.lookBack(ctx, goes)
	if err == nil && !goes && !x.last {
		goes, err = true, d.remove(ctx, d.own())
	}
	if err != nil {
		return []string{d.own()}, err
	}
	if !goes {
		left = []string{d.own()}
	}
	if err := d.awaitAll(ctx, newAlarm(d.client), x); err != nil {
		return left, err
	}
	if x.ready {
		left = append(left, d.ready())
	}
	return left, d.remove(ctx, left...)
}

// lookBack sees who is in; in the same flight our node goes if it is to.
func (d *DistributedDoubleBarrier) lookBack(ctx context.Context, goes bool) (x *exit, err error) {
	err = d.insist(ctx, func() error {
		flight := builders.InOneFlight(ctx)
		var deletion builders.Future[struct{}]
		if goes {
			deletion = d.client.Delete().Quietly().Submit(flight, d.own())
		}
		var parent zk.Stat
		children, err := d.client.GetChildren().StoringStatIn(&parent).ForPath(flight, d.path)
		x = exitOf(children, parent.Pzxid, d.name, d.round)
		if goes {
			_, deleteErr := deletion.Wait(ctx)
			return errors.Join(unlessAbsent(err), deleteErr)
		}
		return unlessAbsent(err)
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
		if x.last {
			name = x.others[len(x.others)-1]
		}
		e, err := d.await(ctx, a, name, x.newest)
		switch {
		case err != nil:
			return err
		case e == younger:
			x.drop(func(other string) bool { return other == name })
			continue
		case e == gone && x.last && len(x.others) == 1:
			return nil
		}
		if err := d.lookAgain(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// end is how one ends that waits for a member.
type end int

const (
	woken   end = iota // by something
	gone               // the member is
	younger            // than the round
)

// await waits until a member has gone, or something else has happened. One that has come after newest is not waited for.
func (d *DistributedDoubleBarrier) await(ctx context.Context, a *alarm, name string, newest int64) (end, error) {
	path := zkpath.Join(d.path, name)
	born, err := d.watch(ctx, a, path)
	switch {
	case err != nil:
	case born == 0:
		return gone, nil
	case born > newest:
		a.off(ctx, path)
		return younger, nil
	default:
		select {
		case ev := <-a.heard:
			if ev.Type == zk.EventNodeDeleted && ev.Path == path {
				return gone, nil
			}
			return woken, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	a.off(ctx, path)
	return woken, err
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
