package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gocurator/curator/recipes/locks"
)

const (
	contenders = 4  // clients
	increments = 20 // of each
)

const (
	lockPath    = "/lock"
	counterPath = "/counter"
)

// contend has several clients, each as if it were a process on another machine, increment one counter under a mutex.
func contend(ctx context.Context, s *stage) error {
	s.out.step("Several clients, one lock")
	s.out.say("%d clients increment a counter %d times each, under a mutex", contenders, increments)
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is lost: all it did was waited for
	guarded := counter{client, counterPath}
	if err := guarded.create(ctx); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error)
	var w witness
	for range contenders {
		go func() { results <- w.oneClient(ctx, s) }()
	}
	var errs []error
	for range contenders {
		if err := <-results; err != nil {
			errs = append(errs, err)
			cancel() // the others need not go on
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("contention: %w", errors.Join(errs...))
	}

	n, _, err := guarded.read(ctx)
	if err != nil {
		return err
	}
	const all = contenders * increments
	s.out.check(n.Value == all, "the counter is %d of %d", n.Value, all)
	s.out.check(w.overlaps.Load() == 0, "there was never more than one holder")
	s.out.check(w.grows(), "the fencing token grew from holder to holder, %#x to %#x",
		w.tokens[0], w.tokens[len(w.tokens)-1])
	return nil
}

// witness watches the holders of the lock, from where only one of them can be at a time.
type witness struct {
	holders  atomic.Int32
	overlaps atomic.Int32

	mu     sync.Mutex
	tokens []int64 // in the order of the holds
}

// oneClient is the work of each client.
func (w *witness) oneClient(ctx context.Context, s *stage) (err error) {
	client, err := s.client()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	mutex := locks.NewInterProcessMutex(client, lockPath)
	guarded := counter{client, counterPath}
	for range increments {
		if err := w.underLock(ctx, mutex, guarded); err != nil {
			return err
		}
	}
	return nil
}

// underLock increments the counter once. The work is done under the context of the hold, which ends when the lock is
// lost, and the release is not given up when ctx ends.
func (w *witness) underLock(ctx context.Context, mutex *locks.InterProcessMutex, guarded counter) (err error) {
	hold, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release(context.WithoutCancel(ctx))) }()

	w.enter(hold.Token())
	defer w.leave()
	_, err = guarded.increment(hold.Context(), hold.Token())
	return err
}

func (w *witness) enter(token int64) {
	if w.holders.Add(1) > 1 {
		w.overlaps.Add(1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens = append(w.tokens, token)
}

func (w *witness) leave() { w.holders.Add(-1) }

// grows reports whether each token was higher than the one before it.
func (w *witness) grows() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 1; i < len(w.tokens); i++ {
		if w.tokens[i] <= w.tokens[i-1] {
			return false
		}
	}
	return true
}
