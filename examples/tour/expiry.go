package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
)

// expire ends the session of a client that holds the lock, as the server does when it has not heard of the client for
// too long. The hold ends, another client gets the lock, and what the first one still writes is refused.
func expire(ctx context.Context, s *stage) (err error) {
	s.out.step("A session that ends under a holder")
	first, err := openContender(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, first.client.Close()) }()
	second, err := openContender(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.client.Close()) }()

	hold, err := first.mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	before, err := first.counter.increment(hold.Context(), hold.Token())
	if err != nil {
		return err
	}
	lostSession := first.client.SessionID()
	s.out.say("the first client holds the lock in session %#x, token %#x", lostSession, hold.Token())

	next := second.acquire(ctx) // waits for the first one
	if err := s.server.expire(ctx, lostSession); err != nil {
		return errors.Join(err, hold.Release(context.WithoutCancel(ctx)))
	}
	s.out.say("the server ends that session")

	if err := awaitLoss(ctx, s, hold); err != nil {
		return err
	}
	secondHold, err := next.wait(ctx)
	if err != nil {
		return err
	}
	s.out.check(secondHold.Token() > hold.Token(), "another client has the lock, with a higher token: %#x",
		secondHold.Token())
	if _, err := second.counter.increment(secondHold.Context(), secondHold.Token()); err != nil {
		return err
	}

	// What a process would do that was paused in the middle of its work: it does not look at the context of its hold.
	_, late := first.counter.increment(ctx, hold.Token())
	s.out.check(errors.Is(late, errFenced), "the late write of the first is refused: %v", late)
	after, _, err := second.counter.read(ctx)
	if err != nil {
		return err
	}
	s.out.check(after.Value == before.Value+1, "the counter has the write of the new holder, and only that")

	if err := hold.Release(ctx); err != nil {
		return fmt.Errorf("release of a lock that is lost: %w", err)
	}
	s.out.check(second.mutex.IsAcquiredInThisProcess() && secondHold.Context().Err() == nil,
		"the release by the first one leaves the new holder its lock")
	if err := secondHold.Release(ctx); err != nil {
		return err
	}
	return lockAgain(ctx, s, first, lostSession)
}

// awaitLoss waits until a hold has lost its lock.
func awaitLoss(ctx context.Context, s *stage, hold *locks.Hold) error {
	select {
	case <-hold.Context().Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	cause := context.Cause(hold.Context())
	s.out.check(errors.Is(cause, locks.ErrLockLost), "the context of its hold has ended: %v", cause)
	return nil
}

// lockAgain shows that the client goes on by itself: it has a new session, and can lock again.
func lockAgain(ctx context.Context, s *stage, c *contender, lostSession int64) error {
	hold, err := c.mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	_, err = c.counter.increment(hold.Context(), hold.Token())
	s.out.check(err == nil && c.client.SessionID() != lostSession,
		"the first client has a new session, %#x, and locks and writes again", c.client.SessionID())
	return hold.Release(ctx)
}

// contender is a client that wants the lock, for the counter.
type contender struct {
	client  *framework.Client
	mutex   *locks.InterProcessMutex
	counter counter
}

func openContender(s *stage) (*contender, error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	return &contender{client, locks.NewInterProcessMutex(client, lockPath), counter{client, counterPath}}, nil
}

// acquisition is an Acquire that is under way.
type acquisition struct {
	held chan *locks.Hold
	err  chan error
}

// acquire asks for the lock and does not wait for it.
func (c *contender) acquire(ctx context.Context) acquisition {
	a := acquisition{held: make(chan *locks.Hold, 1), err: make(chan error, 1)}
	go func() {
		hold, err := c.mutex.Acquire(ctx)
		if err != nil {
			a.err <- err
			return
		}
		a.held <- hold
	}()
	return a
}

// wait returns the hold when it is there. The Acquire ends with its own context.
func (a acquisition) wait(ctx context.Context) (*locks.Hold, error) {
	select {
	case hold := <-a.held:
		return hold, nil
	case err := <-a.err:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
