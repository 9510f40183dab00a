package main

import (
	"context"

	"github.com/gocurator/curator/recipes/locks"
)

// curatorLock is a lock and, while it is held, its hold.
type curatorLock struct {
	lock locks.InterProcessLock
	hold *locks.Hold
}

func (l *curatorLock) acquire(ctx context.Context) (err error) {
	l.hold, err = l.lock.Acquire(ctx)
	return err
}

func (l *curatorLock) release(ctx context.Context) error { return l.hold.Release(ctx) }

// curatorSemaphore is a semaphore and the lease of it, if there is one.
type curatorSemaphore struct {
	semaphore *locks.InterProcessSemaphoreV2
	lease     *locks.Lease
}

func (s *curatorSemaphore) acquire(ctx context.Context) (err error) {
	s.lease, err = s.semaphore.Acquire(ctx)
	return err
}

func (s *curatorSemaphore) release(ctx context.Context) error { return s.lease.Return(ctx) }
