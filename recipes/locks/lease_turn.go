package locks

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// leaseTurn takes the leases of one Acquire while it has the turn. It has no node among the leases before it takes
// them, so nobody waits for who only waits.
type leaseTurn struct {
	semaphore *InterProcessSemaphoreV2
	turn      *lineup.Contender
	wanted    int // leases
	wait      time.Duration
}

// take waits until the wanted leases are free and takes them, which ends the turn. An outage does not end the wait,
// unless wait is 0. What it has taken when it fails is returned, too.
func (t *leaseTurn) take(ctx context.Context) (taken []*lineup.Contender, err error) {
	// Nobody else adds a lease: the turn was ours when they were counted.
	room := t.turn.ChildCount >= 0 && t.fits(t.turn.ChildCount)
	for {
		if room {
			taken, err = t.create(ctx)
		} else {
			taken, err = t.takeWatching(ctx)
		}
		if t.wait == 0 || !lineup.IsOutage(err) {
			return taken, err
		}
		if err := t.semaphore.client.BlockUntilConnected(ctx); err != nil {
			return nil, err
		}
		room = false // the next transaction fails without the turn, so only one takes leases
	}
}

// fits reports whether there is room beside the leases that are taken.
func (t *leaseTurn) fits(taken int) bool { return taken+t.wanted <= t.semaphore.limit.Count() }

// takeWatching takes the leases when there is room. What it takes fires its watch.
func (t *leaseTurn) takeWatching(ctx context.Context) ([]*lineup.Contender, error) {
	watcher, err := t.awaitRoom(ctx)
	if err != nil {
		return nil, err
	}
	taken, err := t.create(ctx)
	if err != nil {
		lineup.Unwatch(ctx, t.semaphore.client, watcher, t.semaphore.leases.Path)
	}
	return taken, err
}

// awaitRoom waits until the wanted leases are free. The watcher that it returns is still set, unless nobody ever had a
// lease. When the limit falls below what is wanted, it fails with [lineup.ErrNodeLost]: the turn is for others.
func (t *leaseTurn) awaitRoom(ctx context.Context) (*callbacks.Watcher, error) {
	client, path := t.semaphore.client, t.semaphore.leases.Path
	for {
		changed := t.semaphore.limit.Changed()
		woken := make(chan zk.Event, 1)
		watcher := callbacks.NewChanWatcher(woken) // a new one: the late removal of the last must not take it
		children, err := client.GetChildren().UsingWatcher(watcher).ForPath(ctx, path)
		switch {
		case errors.Is(err, zk.ErrNoNode), err == nil && t.fits(len(children)):
			return watcher, nil
		case err == nil && t.wait == 0:
			err = lineup.ErrNotAcquired
		case err == nil && !t.fits(0):
			err = lineup.ErrNodeLost
		}
		if err != nil {
			lineup.Unwatch(ctx, client, watcher, path)
			return nil, err
		}
		select {
		case ev := <-woken:
			if ev.Type == zk.EventSession { // else the watch has ended with its event
				lineup.Unwatch(ctx, client, watcher, path)
			}
		case <-changed:
			lineup.Unwatch(ctx, client, watcher, path)
		case <-ctx.Done():
			lineup.Unwatch(ctx, client, watcher, path)
			return nil, ctx.Err()
		}
	}
}

// create creates the nodes of the leases and ends the turn, all in one: a turn that is lost takes no lease.
func (t *leaseTurn) create(ctx context.Context) ([]*lineup.Contender, error) {
	s := t.semaphore
	op := s.client.TransactionOp()
	lease := op.Create().WithProtection().WithMode(builders.EphemeralSequential)
	ops := make([]builders.TransactionOperation, t.wanted, t.wanted+1)
	for i := range ops {
		ops[i] = lease.ForPath(zkpath.Join(s.leases.Path, s.leases.Prefix), s.leases.Data)
	}
	ops = append(ops, op.Delete().ForPath(t.turn.Path))
	stat := zk.Stat{EphemeralOwner: t.turn.Stat.EphemeralOwner}
	transaction := s.client.Transaction().StoringZxidIn(&stat.Czxid)
	for {
		results, err := transaction.ForOperations(ctx, ops...)
		switch {
		case err == nil:
			return created(results[:t.wanted], stat, t.turn.Session)
		case errors.Is(err, zk.ErrNoNode) && len(results) > 0 && results[0].Err != nil: // an empty container may vanish
			if err := s.makeLeases(ctx); err != nil {
				return nil, err
			}
		case errors.Is(err, zk.ErrNoNode): // the turn
			return nil, lineup.ErrNodeLost
		default:
			return nil, err
		}
	}
}

// created returns the leases that were created.
func created(
	results []callbacks.OperationResult, stat zk.Stat, session *framework.Session,
) (leases []*lineup.Contender, err error) {
	for _, r := range results {
		if r.ResultPath == "" { // somebody has deleted it before we knew of it
			err = lineup.ErrNodeLost
			continue
		}
		leases = append(leases, &lineup.Contender{Path: r.ResultPath, Stat: stat, Session: session})
	}
	return leases, err
}
