package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// runMutexUncontended has each thread acquire and release a lock of its own, all with one client.
func runMutexUncontended(ctx context.Context, t *target, l load) (r result, err error) {
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
		lock := c.lock(paths[i])
		operations[i] = timed(func() error {
			if err := lock.acquire(ctx); err != nil {
				return err
			}
			return lock.release(ctx)
		})
	}
	r = loop(l.duration(), operations)
	return r, c.deleteAll(ctx, paths)
}

// runMutexContended has threads with a client each want one lock.
func runMutexContended(ctx context.Context, t *target, l load) (result, error) {
	return t.oneLock(ctx, l, t.client)
}

// runMutexLine has threads want one lock, all with one client, so that the line for it is always that long.
func runMutexLine(ctx context.Context, t *target, l load) (result, error) {
	return t.oneLock(ctx, l, func(ctx context.Context, _ int) (client, error) { return t.client(ctx, 0) })
}

// oneLock has each thread, with the client for its number, acquire and release the same lock.
func (t *target) oneLock(
	ctx context.Context, l load, clientFor func(ctx context.Context, number int) (client, error),
) (r result, err error) {
	first, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	path, err := t.node(ctx, "lock", nil)
	if err != nil {
		return r, err
	}
	var h handOver
	operations := make([]operation, l.Threads)
	for i := range operations {
		c, err := clientFor(ctx, i)
		if err != nil {
			return r, err
		}
		lock := c.lock(path)
		operations[i] = func() (time.Duration, error) { return h.through(ctx, lock) }
	}
	r = loop(l.duration(), operations)
	return r, first.deleteAll(ctx, []string{path})
}

// handOver measures from the call of one holder's release to the return of the next one's acquire.
type handOver struct{ released atomic.Int64 }

// epoch is what the times of handOver count from.
var epoch = time.Now()

func (h *handOver) through(ctx context.Context, l lock) (time.Duration, error) {
	if err := l.acquire(ctx); err != nil {
		return -1, err
	}
	latency := time.Duration(-1)
	if released := h.released.Load(); released != 0 {
		latency = time.Since(epoch) - time.Duration(released)
	}
	return latency, h.release(ctx, l)
}

func (h *handOver) release(ctx context.Context, l lock) error {
	h.released.Store(int64(time.Since(epoch)))
	return l.release(ctx)
}

// runWaiters has one client hold a lock that so many goroutines want. Memory is read before they come and when all of
// them wait; then the lock goes through all of them.
func runWaiters(ctx context.Context, t *target, l load) (r result, err error) {
	c, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	path, err := t.node(ctx, "lock", nil)
	if err != nil {
		return r, err
	}
	first := c.lock(path)
	if err := first.acquire(ctx); err != nil {
		return r, err
	}
	r.Before = memoryNow()

	var (
		h         handOver
		mu        sync.Mutex
		latencies histogram
		all       tally
		wg        sync.WaitGroup
	)
	start := time.Now()
	for range l.Waiters {
		wg.Go(func() {
			latency, err := h.through(ctx, c.lock(path))
			mu.Lock()
			defer mu.Unlock()
			if all.count(err) && latency >= 0 {
				latencies.add(latency)
			}
		})
	}
	if err := untilCalm(ctx, c, path, l.Waiters+1); err != nil {
		return r, errors.Join(err, first.release(ctx)) // and the others follow
	}
	r.Ready = time.Since(start)
	r.Waiting = memoryNow()

	watch := startWatch()
	if err := h.release(ctx, first); err != nil {
		return r, err
	}
	wg.Wait()
	watch.stop(&r)
	all.tell(&r)
	latencies.tell(&r)
	return r, c.deleteAll(ctx, []string{path})
}

// calmLooks is how often in a row a line must be complete: answers come in order, so what a waiter still asked for at
// one look is there at the next.
const calmLooks = 3

// untilCalm waits until so many stand in line and have nothing left to ask.
func untilCalm(ctx context.Context, c client, path string, contenders int) error {
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for looks := 0; looks < calmLooks; looks++ {
		children, err := c.children(ctx, path)
		if err != nil {
			return fmt.Errorf("look at the line: %w", err)
		}
		if len(children) < contenders {
			looks = -1
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
