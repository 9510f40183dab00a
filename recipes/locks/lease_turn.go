package locks

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// leaseTurn takes the leases of one Acquire while it has the turn. It creates no lease node while it waits, so a waiter
// never blocks others.
type leaseTurn struct {
	semaphore *InterProcessSemaphoreV2
	turn      *waitqueue.Contender
	wanted    int // number of leases
	wait      time.Duration
}

// take waits until the wanted leases are free and takes them, which ends the turn. An error that passes does not
// end the wait, unless wait is 0. If it fails, it still returns the leases that it has taken.
func (t *leaseTurn) take(ctx context.Context) (taken []*waitqueue.Contender, err error) {
	// No other client has added a lease since the count, because the turn was ours.
	free := t.turn.ChildCount >= 0 && t.fits(t.turn.ChildCount)
	for {
		if free {
			taken, err = t.create(ctx)
		} else {
			taken, err = t.takeWhenFree(ctx)
		}
		if t.wait == 0 || !waitqueue.IsPassing(err) {
			return taken, err
		}
		if err := waitqueue.AwaitConnection(ctx, t.semaphore.client); err != nil {
			return nil, err
		}
		free = false // a lost transaction may have taken the leases; then the turn is gone and the next one fails
	}
}

// fits reports whether the wanted leases are free while others are taken.
func (t *leaseTurn) fits(taken int) bool { return taken+t.wanted <= t.semaphore.limit.Count() }

// takeWhenFree takes the leases when they are free. The create of the leases fires the watch.
func (t *leaseTurn) takeWhenFree(ctx context.Context) ([]*waitqueue.Contender, error) {
	watcher, err := t.awaitFree(ctx)
	if err != nil {
		return nil, err
	}
	taken, err := t.create(ctx)
	if err != nil {
		waitqueue.Unwatch(ctx, t.semaphore.client, watcher, t.semaphore.leaseQueue.Path)
	}
	return taken, err
}

// awaitFree waits until the wanted leases are free. The watch of the returned watcher is still set, unless the leases
// have no parent node yet. When the limit falls below the wanted number, it fails with [waitqueue.ErrNodeLost], which
// gives the turn to others.
func (t *leaseTurn) awaitFree(ctx context.Context) (*callbacks.Watcher, error) {
	client, path := t.semaphore.client, t.semaphore.leaseQueue.Path
	for {
		changed := t.semaphore.limit.Changed()
		events := make(chan zk.Event, 1)
		watcher := callbacks.NewChanWatcher(events) // a new one: a late removal of the last watch must not remove it
		children, err := client.GetChildren().UsingWatcher(watcher).ForPath(ctx, path)
		switch {
		case errors.Is(err, zk.ErrNoNode), err == nil && t.fits(len(children)):
			return watcher, nil
		case err == nil && t.wait == 0:
			err = waitqueue.ErrNotAcquired
		case err == nil && !t.fits(0):
			err = waitqueue.ErrNodeLost
		}
		if err != nil {
			waitqueue.Unwatch(ctx, client, watcher, path)
			return nil, err
		}
		select {
		case ev := <-events:
			if ev.Type == zk.EventSession { // any other event has ended the watch
				waitqueue.Unwatch(ctx, client, watcher, path)
			}
		case <-changed:
			waitqueue.Unwatch(ctx, client, watcher, path)
		case <-ctx.Done():
			waitqueue.Unwatch(ctx, client, watcher, path)
			return nil, ctx.Err()
		}
	}
}

// create creates the nodes of the leases and ends the turn in one transaction: a lost turn takes no lease.
func (t *leaseTurn) create(ctx context.Context) ([]*waitqueue.Contender, error) {
	s := t.semaphore
	op := s.client.TransactionOp()
	lease := op.Create().WithProtection().WithMode(builders.EphemeralSequential)
	ops := make([]builders.TransactionOperation, t.wanted, t.wanted+1)
	for i := range ops {
		ops[i] = lease.ForPath(zkpath.Join(s.leaseQueue.Path, s.leaseQueue.Prefix), s.leaseQueue.Data)
	}
	ops = append(ops, op.Delete().ForPath(t.turn.Path))
	stat := zk.Stat{EphemeralOwner: t.turn.Stat.EphemeralOwner}
	transaction := s.client.Transaction().StoringZxidIn(&stat.Czxid)
	for {
		results, err := transaction.ForOperations(ctx, ops...)
		switch {
		case err == nil:
			return leaseContenders(results[:t.wanted], stat, t.turn.Session)
		case errors.Is(err, zk.ErrNoNode) && len(results) > 0 && results[0].Err != nil: // the server deletes empty containers
			if err := s.createLeaseContainer(ctx); err != nil {
				return nil, err
			}
		case errors.Is(err, zk.ErrNoNode): // the turn is gone
			return nil, waitqueue.ErrNodeLost
		default:
			return nil, err
		}
	}
}

// leaseContenders returns the contenders of new leases.
func leaseContenders(
	results []callbacks.OperationResult, stat zk.Stat, session *framework.Session,
) (leases []*waitqueue.Contender, err error) {
	for _, r := range results {
		if r.ResultPath == "" { // another client has deleted the node before the lost reply was replaced
			err = waitqueue.ErrNodeLost
			continue
		}
		leases = append(leases, &waitqueue.Contender{Path: r.ResultPath, Stat: stat, Session: session})
	}
	return leases, err
}
