package framework

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/exec"
)

// CallWithRetry calls fn until it succeeds, fails with an error that may not be retried, or the retry policy of the
// client gives up. Operations with the context of fn are tried once each: the loop retries the whole of fn, and loops
// within it share this one. It waits for a connection once, at most the connection timeout. In Java:
// RetryLoop.callWithRetry.
func (c *Client) CallWithRetry(ctx context.Context, fn func(ctx context.Context) error) error {
	if exec.IsSingleAttempt(ctx) {
		return fn(ctx)
	}
	if err := c.core.executor.Err(); err != nil {
		return err
	}
	schedule := exec.NewSchedule(c.core.cfg.retryPolicy, time.Now())
	wait, cancel := context.WithTimeout(ctx, c.core.cfg.connectionTimeout)
	err := c.BlockUntilConnected(wait)
	cancel()
	if errors.Is(err, ErrClosed) {
		return err
	}
	policy := c.core.cfg.retryPolicy
	inner := exec.WithSingleAttempt(ctx)
	wasSent := false
	for {
		err := fn(inner)
		if err == nil || !policy.Retryable(err) {
			return err
		}
		if wasSent { // by an earlier call: the error of the last one must not deny it
			err = errtext.Sent(err, ErrNotSent)
		}
		wasSent = wasSent || MayHaveTakenEffect(err)
		pause := schedule.NextBackOff()
		if pause == backoff.Stop {
			return err
		}
		if stop := c.sleep(ctx, pause); stop != nil {
			return errors.Join(stop, err)
		}
	}
}

// sleep waits for d, unless ctx ends or the client is closed.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		_, changed := c.core.connection.isConnected()
		if err := c.core.executor.Err(); err != nil {
			return err
		}
		select {
		case <-t.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// CallInSession runs fn within a single session. The context of fn ends when the session is lost. If the session was
// lost while fn ran, CallInSession calls fn again in the next session if again is set, and returns [ErrSessionFailed]
// otherwise. In Java: SessionFailRetryLoop.callWithRetry.
func (c *Client) CallInSession(ctx context.Context, again bool, fn func(ctx context.Context) error) error {
	for {
		if err := c.BlockUntilConnected(ctx); err != nil {
			return err
		}
		session := c.core.connection.currentSession()
		inner, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(session.Context(), func() { cancel(ErrSessionFailed) })
		err := fn(inner)
		stop()
		cancel(nil)
		switch {
		case session.Context().Err() == nil:
			return err
		case c.core.executor.Err() != nil:
			return errtext.Join(c.core.executor.Err(), err)
		case !again:
			return errtext.Join(ErrSessionFailed, err)
		}
	}
}
