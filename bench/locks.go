package main

import (
	"context"
	"errors"
)

// lockWork measures the locks.
var lockWork = section{
	workloads: map[string]workload{
		lockAlone:     runLockAlone,
		lockShared:    runLockShared,
		lockOneClient: runLockOneClient,
		lockContended: runLockContended,
		lockLine:      runLockLine,
		waiting:       runWaiters,
	},
	rows: []row{
		{
			name: "mutex acquire and release", server: realServer, show: latency,
			entries: against(work(lockAlone), curator, plain, javas),
			budget:  []bound{atLeast(1.4, rate).of(plain), atLeast(1.4, rate).of(javas)},
		},
		{
			name: "mutex, 8 clients want it", server: realServer, show: latency,
			entries: against(work(lockContended).threads(8), curator, javas),
			budget:  []bound{atLeast(1.1, rate).of(javas), atMost(0.7, cpu).of(javas)},
		},
		{
			name: "mutex hand-over, a long line", server: realServer, show: waits, stretch: 2,
			entries: []entry{
				{name: "1000 in line", library: curator, load: work(lockLine).threads(1000)},
				{name: "10 in line", library: curator, load: work(lockLine).threads(10)},
			},
			budget: []bound{atMost(2, p50).of("10 in line")},
		},
		{
			name: "read lock, 8 clients read", server: realServer, show: latency,
			entries: against(work(lockShared).lock(readLock).threads(8), curator, javas),
			budget:  []bound{atLeast(1.3, rate).of(javas)},
		},
		{
			name: "read lock, 8 readers, one client", server: realServer, show: latency,
			entries: against(work(lockOneClient).lock(readLock).threads(8), curator, javas),
			budget:  []bound{atLeast(1.3, rate).of(javas)},
		},
		{
			name: "semaphore of 4 leases, 8 clients", server: realServer, show: latency,
			entries: against(work(lockShared).lock(semaphore).leases(4).threads(8), curator, javas),
			budget:  []bound{atLeast(1.9, rate).of(javas)},
		},
		blocked("1000 blocked acquirers", mutex, blocking...),
		// All readers get the lock at once: there is no hand-over.
		blocked("1000 blocked readers", readLock, memory, threads),
		blocked("1000 blocked writers", writeLock, blocking...),
		blocked("1000 blocked on a semaphore", semaphore, blocking...),
	},
}

// blocking are the columns of waiters that get the lock one after the other.
var blocking = []metric{memory, threads, p50, p99}

func blocked(name, kind string, show ...metric) row {
	return row{
		name: name, server: realServer, show: show, fresh: true,
		entries: against(work(waiting).lock(kind), curator, javas),
		budget:  []bound{atMost(0.1, memory).of(javas)},
	}
}

// runLockAlone acquires and releases a lock of its own in each thread, all with one client.
func runLockAlone(ctx context.Context, t *target, l load) (r result, err error) {
	c, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	operations := make([]operation, l.Threads)
	paths := make([]string, l.Threads)
	for i := range operations {
		if paths[i], err = t.node(ctx, "lock", nil); err != nil {
			return r, err
		}
		lock, err := c.lock(paths[i], l)
		if err != nil {
			return r, err
		}
		operations[i] = acquireAndRelease(ctx, lock)
	}
	r = loop(l.duration(), operations)
	for _, path := range paths {
		err = errors.Join(err, c.removeTree(ctx, path))
	}
	return r, err
}

// runLockShared acquires and releases one lock, which several may hold, in threads with a client each.
func runLockShared(ctx context.Context, t *target, l load) (result, error) {
	return t.oneLock(ctx, l, t.client, acquireAndRelease)
}

// runLockOneClient acquires and releases one lock, which several may hold, in threads with one client.
func runLockOneClient(ctx context.Context, t *target, l load) (result, error) {
	return t.oneLock(ctx, l, t.firstClient, acquireAndRelease)
}

// runLockContended acquires and releases one lock in threads with a client each.
func runLockContended(ctx context.Context, t *target, l load) (result, error) {
	return t.oneLock(ctx, l, t.client, new(handOver).operation)
}

// runLockLine acquires and releases one lock in threads with one client, so that its line always has that length.
func runLockLine(ctx context.Context, t *target, l load) (result, error) {
	return t.oneLock(ctx, l, t.firstClient, new(handOver).operation)
}

// firstClient returns the same client for all numbers.
func (t *target) firstClient(ctx context.Context, _ int) (client, error) { return t.client(ctx, 0) }

// oneLock runs the operation in each thread, with the client for its number and the same lock.
func (t *target) oneLock(
	ctx context.Context, l load,
	clientFor func(ctx context.Context, number int) (client, error),
	with func(ctx context.Context, l lock) operation,
) (r result, err error) {
	first, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	path, err := t.node(ctx, "lock", nil)
	if err != nil {
		return r, err
	}
	operations := make([]operation, l.Threads)
	for i := range operations {
		c, err := clientFor(ctx, i)
		if err != nil {
			return r, err
		}
		lock, err := c.lock(path, l)
		if err != nil {
			return r, err
		}
		operations[i] = with(ctx, lock)
	}
	r = loop(l.duration(), operations)
	return r, first.removeTree(ctx, path)
}

func acquireAndRelease(ctx context.Context, l lock) operation {
	return timed(func() error {
		if err := l.acquire(ctx); err != nil {
			return err
		}
		return l.release(ctx)
	})
}
