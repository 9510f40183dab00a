package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// runWaiters holds a lock with one client while many goroutines wait for it: readers wait for a writer. It reads the
// memory before they start and when all of them wait. Then the lock goes through all of them.
func runWaiters(ctx context.Context, t *target, l load) (r result, err error) {
	c, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	path, err := t.node(ctx, "lock", nil)
	if err != nil {
		return r, err
	}
	holder := l
	if l.Lock == readLock {
		holder = l.lock(writeLock)
	}
	first, err := c.lock(path, holder)
	if err != nil {
		return r, err
	}
	if err := first.acquire(ctx); err != nil {
		return r, err
	}
	r.Before = memoryNow()

	w := &waiters{client: c, line: path, holders: 1}
	if l.Lock == semaphore { // the holder of a lease is no longer in the line
		w.line, w.holders = path+"/locks", 0
	}
	start := time.Now()
	if err := w.come(ctx, path, l); err != nil {
		return r, errors.Join(err, first.release(ctx)) // and the others follow
	}
	r.Ready = time.Since(start)
	r.Waiting = memoryNow()

	watch := startWatch()
	if err := w.handOver.release(ctx, first); err != nil {
		return r, err
	}
	w.wg.Wait()
	watch.stop(&r)
	w.tally.report(&r)
	w.latencies.report(&r)
	return r, c.removeTree(ctx, path)
}

// waiters wait for one lock, one goroutine each.
type waiters struct {
	client   client
	line     string // the parent node of the waiters
	holders  int    // number of children that do not wait
	handOver handOver
	wg       sync.WaitGroup

	mu        sync.Mutex
	latencies histogram
	tally     tally
}

const (
	// waitersAtOnce is how many start at a time. It bounds the lists of the whole line in memory.
	waitersAtOnce = 100
	// calmLooks is how many reads in a row must see the complete line: answers come in order, so a node that a waiter
	// still creates during one read is there at the next.
	calmLooks = 3
)

// come starts all waiters, and returns when all of them wait.
func (w *waiters) come(ctx context.Context, path string, l load) error {
	for i := range l.Waiters {
		if i > 0 && i%waitersAtOnce == 0 {
			if err := w.stand(ctx, i, 1); err != nil {
				return err
			}
		}
		lock, err := w.client.lock(path, l)
		if err != nil {
			return err
		}
		w.wg.Go(func() { w.through(ctx, lock) })
	}
	return w.stand(ctx, l.Waiters, calmLooks)
}

// stand waits until this many waiters are in line, in as many reads in a row.
func (w *waiters) stand(ctx context.Context, waiters, looks int) error {
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for calm := 0; calm < looks; calm++ {
		children, err := w.client.children(ctx, w.line)
		if err != nil && !errors.Is(err, zk.ErrNoNode) { // the server deletes a line that is empty for long
			return fmt.Errorf("look at the line: %w", err)
		}
		if len(children) != w.holders+waiters {
			calm = -1
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// through waits for the lock and releases it.
func (w *waiters) through(ctx context.Context, l lock) {
	latency, err := w.handOver.through(ctx, l)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tally.count(err) && latency >= 0 {
		w.latencies.add(latency)
	}
}
