// Package demo has clients at work on an ensemble, so that a new user has something to look at.
package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/recipes/queue"
)

// Root is the node that all is below.
const Root = "/demo"

// The nodes of the recipes.
const (
	Orders    = Root + "/locks/orders"
	Catalogue = Root + "/locks/catalogue"
	Licences  = Root + "/licences"
	Leader    = Root + "/leader"
	Jobs      = Root + "/jobs"
	Shop      = Root + "/services/shop"
)

const hosts = 3

// pace is the time that a piece of work takes, more or less.
const pace = 2 * time.Second

// Run runs some hosts, each with a client, until ctx ends. Its error is about their start.
func Run(ctx context.Context, connect string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	defer work.Wait()
	for n := range hosts {
		name := fmt.Sprint("host-", n+1)
		client, err := framework.New(connect, framework.WithDefaultData([]byte(name)))
		if err != nil {
			cancel(err)
			return err
		}
		if err := client.Start(); err != nil {
			cancel(err)
			return err
		}
		h := &host{client: client, number: n + 1, name: name}
		work.Go(func() {
			defer func() { _ = client.Close() }() // the ensemble ends too
			if err := h.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// host is a client with everything that it does.
type host struct {
	client *framework.Client
	number int
	name   string
}

// run does all at once until ctx ends, or something fails for good.
func (h *host) run(ctx context.Context) error {
	if err := h.client.BlockUntilConnected(ctx); err != nil {
		return h.ended(ctx, err)
	}
	parts := []func(context.Context) error{
		h.orders, h.licences, h.election, h.jobs, h.shop, h.member, h.catalogue,
	}
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	for _, part := range parts {
		work.Go(func() {
			if err := h.ended(working, part(working)); err != nil {
				cancel(fmt.Errorf("%s: %w", h.name, err))
			}
		})
	}
	work.Wait()
	return h.ended(ctx, context.Cause(working))
}

// ended returns the error of work that has not ended because ctx has.
func (h *host) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// pause waits for about so long, less if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	d = d/2 + rand.N(d)
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// passing reports whether an error is one that the next try may not have: the faults of a server under commands are for
// this.
func passing(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !errors.Is(err, framework.ErrBadArguments)
}

// orders contends for a lock.
func (h *host) orders(ctx context.Context) error {
	lock := locks.NewInterProcessMutex(h.client, Orders, locks.WithLockNodeData([]byte(h.name)))
	for ctx.Err() == nil {
		err := locks.Do(ctx, lock, func(ctx context.Context) error {
			pause(ctx, pace)
			return nil
		})
		if err != nil && !passing(ctx, err) {
			return err
		}
		pause(ctx, pace/4)
	}
	return nil
}

// catalogue reads, and sometimes writes, under a read-write lock.
func (h *host) catalogue(ctx context.Context) error {
	lock := locks.NewInterProcessReadWriteLock(h.client, Catalogue, locks.WithLockNodeData([]byte(h.name)))
	for i := h.number; ctx.Err() == nil; i++ {
		side := lock.ReadLock()
		if i%4 == 0 {
			side = lock.WriteLock()
		}
		err := locks.Do(ctx, side, func(ctx context.Context) error {
			pause(ctx, pace)
			return nil
		})
		if err != nil && !passing(ctx, err) {
			return err
		}
		pause(ctx, pace)
	}
	return nil
}

// licences takes one of two leases.
func (h *host) licences(ctx context.Context) error {
	semaphore := locks.NewInterProcessSemaphoreV2(h.client, Licences, 2, locks.WithLeaseData([]byte(h.name)))
	for ctx.Err() == nil {
		lease, err := semaphore.Acquire(ctx)
		if err != nil {
			if !passing(ctx, err) {
				return err
			}
			pause(ctx, pace/2)
			continue
		}
		pause(ctx, 2*pace)
		_ = lease.Return(ctx) // one that is lost has gone already; the others go with the session
		pause(ctx, pace/2)
	}
	return nil
}

// election leads for a while, and gives others their turn.
func (h *host) election(ctx context.Context) error {
	for ctx.Err() == nil {
		latch := leader.NewLeaderLatch(h.client, Leader, leader.WithID(h.name))
		if err := latch.Start(); err != nil {
			return err
		}
		if _, err := latch.Await(ctx); err == nil {
			pause(ctx, 2*pace)
		} else {
			pause(ctx, pace/2)
		}
		if err := latch.Close(); err != nil && !passing(ctx, err) {
			return err
		}
	}
	return nil
}

// backlog is how many jobs there are at most: enough that some wait, and no more from hour to hour.
const backlog = 6

// jobs puts jobs into a queue on the first host, and does them on the others.
func (h *host) jobs(ctx context.Context) error {
	var consumer queue.Consumer[string]
	if h.number > 1 {
		consumer = func(ctx context.Context, _ string) error {
			pause(ctx, pace)
			return nil
		}
	}
	q, err := queue.NewBuilder(h.client, consumer, codec.Text{}, Jobs).LockPath(Jobs + "-locks").Prefetch(1).
		FinalFlushTime(100 * time.Millisecond).BuildQueue()
	if err != nil {
		return err
	}
	if err := q.Start(); err != nil {
		return err
	}
	defer func() { _ = q.Close() }() // jobs that are not done stay
	for i := 1; ctx.Err() == nil; {
		pause(ctx, pace/4)
		if h.number > 1 {
			continue
		}
		waiting, err := h.client.GetChildren().ForPath(ctx, Jobs)
		if err == nil && len(waiting) < backlog {
			err = q.Put(ctx, fmt.Sprint("job ", i))
			i++
		}
		if err != nil && !passing(ctx, err) {
			return err
		}
	}
	return nil
}

// shop is a service. That of the last host comes and goes.
func (h *host) shop(ctx context.Context) error {
	services := discovery.New[struct{}](h.client, Root+"/services")
	if err := services.Start(); err != nil {
		return err
	}
	defer func() { _ = services.Close(context.WithoutCancel(ctx)) }() // the session ends too
	in := discovery.NewServiceInstance[struct{}]("shop", fmt.Sprintf("10.0.0.%d", h.number), 8080)
	in.ID = h.name
	for ctx.Err() == nil {
		if err := services.Register(ctx, in); err != nil {
			if !passing(ctx, err) {
				return err
			}
			pause(ctx, pace/2)
			continue
		}
		if h.number < hosts {
			<-ctx.Done()
			return nil
		}
		pause(ctx, 2*pace)
		if err := services.Unregister(ctx, in); err != nil && !passing(ctx, err) {
			return err
		}
		pause(ctx, pace)
	}
	return nil
}

// member is in a group.
func (h *host) member(ctx context.Context) error {
	m := nodes.NewGroupMember(h.client, Root+"/hosts", h.name, fmt.Appendf(nil, "10.0.0.%d", h.number))
	if err := m.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	return m.Close(context.WithoutCancel(ctx))
}
