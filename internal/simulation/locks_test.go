package simulation_test

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/recipes/locks"
)

// acquire acquires a lock, and gives up after wait unless that is forever.
func acquire(ctx context.Context, lock locks.InterProcessLock, wait time.Duration) (*locks.Hold, error) {
	if wait == forever {
		return lock.Acquire(ctx)
	}
	return lock.TryAcquire(ctx, wait)
}

// exclusively returns the attempt to hold a lock that excludes all others.
func exclusively(w *world, r *resource, lock locks.InterProcessLock) attempt {
	return func(ctx context.Context, wait time.Duration) (*holding, error) {
		hold, err := acquire(ctx, lock, wait)
		if err != nil {
			return nil, err
		}
		return holdingOf(hold, &claim{resource: r, owner: w.owners.Add(1)}), nil
	}
}

// holdingOf returns the holding of a hold, with its claims.
func holdingOf(hold *locks.Hold, claims ...*claim) *holding {
	for i, c := range claims {
		c.context = hold.Context()
		if i == 0 {
			c.path, c.token, c.fence = hold.Path(), hold.Token(), hold
		}
	}
	return &holding{claims: claims, context: hold.Context(), release: hold.Release}
}

// mutexRecipe is the mutex. Some actors enter it twice, some release it when they are asked to, and others ask them.
func mutexRecipe(w *world) recipe {
	r := newResource("/mutex")
	return recipe{name: "mutex", resources: []*resource{r}, actors: []role{
		{"mutex", func(ctx context.Context, a *actor) {
			lock := locks.NewInterProcessMutex(a.client, r.path)
			try := exclusively(w, r, lock)
			if a.random.IntN(2) == 0 {
				try = revocably(a, r, lock)
			}
			a.contend(ctx, func(ctx context.Context, wait time.Duration) (*holding, error) {
				if a.random.IntN(4) > 0 {
					return try(ctx, wait)
				}
				return twice(locks.WithOwner(ctx), lock, try, wait)
			})
		}},
		{"revoker", func(ctx context.Context, a *actor) { a.revoke(ctx, r) }},
	}}
}

// twice enters a mutex and enters it again.
func twice(ctx context.Context, lock *locks.InterProcessMutex, try attempt, wait time.Duration) (*holding, error) {
	h, err := try(ctx, wait)
	if err != nil {
		return nil, err
	}
	again, err := lock.Acquire(ctx)
	if err != nil {
		return h, nil //nolint:nilerr // it was lost between the two
	}
	once := h.release
	h.release = func(ctx context.Context) error { return errors.Join(again.Release(ctx), once(ctx)) }
	return h, nil
}

// readWriteRecipe is the read-write lock; some writers go on as readers.
func readWriteRecipe(w *world) recipe {
	r := newResource("/read-write")
	return recipe{name: "read-write lock", resources: []*resource{r}, actors: []role{
		{"reader", func(ctx context.Context, a *actor) {
			lock := locks.NewInterProcessReadWriteLock(a.client, r.path)
			a.contend(ctx, func(ctx context.Context, wait time.Duration) (*holding, error) {
				hold, err := acquire(ctx, lock.ReadLock(), wait)
				if err != nil {
					return nil, err
				}
				return holdingOf(hold, &claim{resource: r, owner: w.owners.Add(1), shared: true}), nil
			})
		}},
		{"writer", func(ctx context.Context, a *actor) {
			lock := locks.NewInterProcessReadWriteLock(a.client, r.path)
			a.contend(ctx, func(ctx context.Context, wait time.Duration) (*holding, error) {
				ctx = locks.WithOwner(ctx)
				h, err := exclusively(w, r, lock.WriteLock())(ctx, wait)
				if err == nil && a.random.IntN(3) == 0 {
					h.next = downgrade(ctx, lock, h.claims[0])
				}
				return h, err
			})
		}},
	}}
}

// downgrade acquires the read lock for the owner of ctx, who holds the write lock.
func downgrade(
	owned context.Context, lock *locks.InterProcessReadWriteLock, writer *claim,
) func(context.Context) (*holding, error) {
	return func(ctx context.Context) (*holding, error) {
		owned, cancel := context.WithCancel(context.WithoutCancel(owned))
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		hold, err := lock.ReadLock().Acquire(owned)
		if err != nil {
			return nil, err
		}
		return holdingOf(hold, &claim{
			resource: writer.resource, owner: writer.owner, shared: true, follows: writer,
		}), nil
	}
}

// leases is the number of leases of the semaphore.
const leases = 2

// semaphoreRecipe is a semaphore. Some actors take two leases at once. The number of leases may change.
func semaphoreRecipe(w *world) recipe {
	r := newSemaphore("/semaphore", leases)
	if w.random("lease count").IntN(2) == 0 {
		w.leaseCount = newLeaseCount(leases)
	}
	act := func(ctx context.Context, a *actor) {
		semaphore := locks.NewInterProcessSemaphoreV2(a.client, r.path, leases)
		most := func() int { return leases }
		if w.leaseCount != nil {
			count := &countReader{leaseCount: w.leaseCount}
			semaphore = locks.NewInterProcessSemaphoreV2(a.client, r.path, 0, locks.WithLeaseCount(count))
			most = count.most
		}
		a.contend(ctx, func(ctx context.Context, wait time.Duration) (*holding, error) {
			n := 1 + a.random.IntN(2)
			var got []*locks.Lease
			var err error
			if wait == forever {
				got, err = semaphore.AcquireN(ctx, n)
			} else {
				got, err = semaphore.TryAcquireN(ctx, n, wait)
			}
			if err != nil {
				return nil, err
			}
			h := &holding{context: got[0].Context(), release: func(ctx context.Context) error {
				return semaphore.ReturnAll(ctx, got...)
			}}
			for _, lease := range got {
				h.claims = append(h.claims, &claim{
					resource: r, owner: w.owners.Add(1), shared: true, path: lease.Path(), context: lease.Context(),
					fence: lease, most: most(),
				})
			}
			return h, nil
		})
	}
	return recipe{
		name: "semaphore", resources: []*resource{r}, actors: []role{{"semaphore", act}, {"other semaphore", act}},
	}
}

// multiRecipe is a multi lock over a mutex and a semaphore mutex. Other actors contend for one of these.
func multiRecipe(w *world) recipe {
	first, second := newResource("/multi/mutex"), newSemaphore("/multi/semaphore-mutex", 0)
	return recipe{name: "multi lock", resources: []*resource{first, second}, actors: []role{
		{"both", func(ctx context.Context, a *actor) {
			lock := locks.NewInterProcessMultiLock(
				locks.NewInterProcessMutex(a.client, first.path),
				locks.NewInterProcessSemaphoreMutex(a.client, second.path))
			a.contend(ctx, func(ctx context.Context, wait time.Duration) (*holding, error) {
				hold, err := acquire(ctx, lock, wait)
				if err != nil {
					return nil, err
				}
				return holdingOf(hold,
					&claim{resource: first, owner: w.owners.Add(1)},
					&claim{resource: second, owner: w.owners.Add(1)}), nil
			})
		}},
		{"first", func(ctx context.Context, a *actor) {
			a.contend(ctx, exclusively(w, first, locks.NewInterProcessMutex(a.client, first.path)))
		}},
		{"second", func(ctx context.Context, a *actor) {
			a.contend(ctx, exclusively(w, second, locks.NewInterProcessSemaphoreMutex(a.client, second.path)))
		}},
	}}
}
