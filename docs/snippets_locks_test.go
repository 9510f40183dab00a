package docs_test

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
)

var _ = []any{
	readLock, writeThenRead, semaphore, severalLeases, semaphoreMutex, multiLock, releaseOfHold, releaseOfOwner, claimed,
}

// read stands for the work of a reader.
func read(ctx context.Context) error { return ctx.Err() }

func readLock(ctx context.Context, client *framework.Client) error {
	lock := locks.NewInterProcessReadWriteLock(client, "/rw")
	hold, err := lock.ReadLock().Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Release(hold.Context())
	return read(hold.Context())
}

func writeThenRead(ctx context.Context, lock *locks.InterProcessReadWriteLock) error {
	ctx = locks.WithOwner(ctx) // what the thread is in Java
	writing, err := lock.WriteLock().Acquire(ctx)
	if err != nil {
		return err
	}
	defer writing.Release(writing.Context())
	if err := write(writing.Context()); err != nil {
		return err
	}
	reading, err := lock.ReadLock().Acquire(ctx) // the same owner
	if err != nil {
		return err
	}
	defer reading.Release(reading.Context())
	if err := writing.Release(writing.Context()); err != nil {
		return err
	}
	return read(reading.Context()) // no writer came in between
}

func semaphore(ctx context.Context, client *framework.Client) error {
	semaphore := locks.NewInterProcessSemaphoreV2(
		client, "/slots", 5)
	lease, err := semaphore.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lease.Return(lease.Context())
	return write(lease.Context())
}

func severalLeases(ctx context.Context, semaphore *locks.InterProcessSemaphoreV2) error {
	leases, err := semaphore.TryAcquireN(ctx, 2, 10*time.Second)
	switch {
	case errors.Is(err, locks.ErrNotAcquired):
		return nil // others have them
	case err != nil:
		return err
	}
	defer semaphore.ReturnAll(context.WithoutCancel(ctx), leases...)
	return write(leases[0].Context())
}

func semaphoreMutex(ctx context.Context, client *framework.Client) error {
	mu := locks.NewInterProcessSemaphoreMutex(client, "/one")
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Release(hold.Context()) // any goroutine may
	return write(hold.Context())
}

func multiLock(ctx context.Context, client *framework.Client) error {
	both := locks.NewInterProcessMultiLock(
		locks.NewInterProcessMutex(client, "/a"),
		locks.NewInterProcessMutex(client, "/b"))
	hold, err := both.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Release(hold.Context())
	return write(hold.Context()) // ends when either is lost
}

func releaseOfHold(ctx context.Context, mu *locks.InterProcessMutex) error {
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Release(hold.Context())
	return write(hold.Context())
}

func releaseOfOwner(ctx context.Context, mu *locks.InterProcessMutex) error {
	ctx = locks.WithOwner(ctx)
	if _, err := mu.Acquire(ctx); err != nil {
		return err
	}
	defer mu.Release(context.WithoutCancel(ctx))
	return write(ctx)
}

func claimed(ctx context.Context, client *framework.Client, address, state []byte) error {
	claim, err := client.Claim(ctx, "/workers/7", "/workers-epochs/7", address)
	if err != nil {
		return err // framework.ErrClaimed: another session has the node
	}
	_, err = claim.Client().SetData().ForPath(ctx, "/state/7", state)
	return err
}
