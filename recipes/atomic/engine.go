package atomic

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/retry"
)

// engine changes one node. Changes that are wanted at the same time travel as one write. A goroutine writes while there
// are calls, for all of them: a caller may leave in the middle of a write that others wait for.
type engine struct {
	client   *framework.Client
	path     string
	err      error // of every call: the path or an option is invalid
	policy   retry.Policy
	promoted *promotion // nil without a lock
	receipts *receipts  // nil without them
	watch    *watch
	obs      report.Value
	isText   func(data []byte) bool // reports whether a number must not have these bytes; only numbers use it

	mu      sync.Mutex
	queued  []*call
	running bool // a goroutine is in run

	// Only the goroutine in run uses these.
	known  snapshot // after the last write, or the zero value
	isUsed bool     // there was a round before
}

// promotion is the lock of changes that others keep overtaking.
type promotion struct {
	queue  waitqueue.Queue
	wait   time.Duration
	policy retry.Policy
}

// change returns the value after a change, or the reason why there is none. pre is nil if the node does not exist.
type change func(pre []byte) (post []byte, refusal error)

// call is a caller's change.
type call struct {
	change change
	force  bool // it is tried until it is applied
	ctx    context.Context
	done   chan struct{} // closed when the call has ended

	// mu of the engine guards these.
	round     *round // nil while the call is queued
	phase     phase
	pre, post []byte // of the last try
	refusal   error  // of the last try
	out       outcome
}

type phase int

const (
	open phase = iota // nothing of the call is sent, or that was refused
	sent              // the write of the call may have been applied
	over              // the call has ended, or its caller has left
)

// outcome is the result of a call.
type outcome struct {
	succeeded bool
	pre, post []byte
	stats     Stats
	err       error
}

// round is a group of calls that are written together.
type round struct {
	calls  []*call
	n      int // calls that are not over; mu of the engine guards it
	cancel context.CancelFunc
	stats  Stats // only the goroutine in run uses it
}

// do applies the change of c, and returns its outcome. When ctx ends, the change is taken back if it is not sent.
func (e *engine) do(ctx context.Context, verb string, c *call) outcome {
	out := e.doUnnamed(ctx, c)
	if out.err != nil {
		out.err = errtext.Wrap(out.err, "atomic", "%s %s", verb, e.path)
	}
	return out
}

func (e *engine) doUnnamed(ctx context.Context, c *call) outcome {
	if e.err != nil {
		return outcome{err: e.err}
	}
	if err := ctx.Err(); err != nil {
		return outcome{err: waitqueue.Explain(ctx, e.client, err)}
	}
	c.ctx, c.done = ctx, make(chan struct{})
	e.mu.Lock()
	e.queued = append(e.queued, c)
	if !e.running {
		e.running = true
		go e.run()
	}
	e.mu.Unlock()
	select {
	case <-c.done:
		return c.out
	case <-ctx.Done():
		return e.leave(c)
	}
}

// leave ends a call whose context has ended.
func (e *engine) leave(c *call) outcome {
	out := outcome{err: waitqueue.Explain(c.ctx, e.client, c.ctx.Err())}
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.phase == over {
		return c.out
	}
	if c.phase == sent {
		e.obs.Uncertain(c.ctx)
		out.pre, out.post, out.err = c.pre, c.post, errtext.Join(ErrUncertain, errtext.Sent(out.err, framework.ErrNotSent))
	}
	c.phase = over
	if c.round == nil {
		e.queued = slices.DeleteFunc(e.queued, func(q *call) bool { return q == c })
	} else if c.round.n--; c.round.n == 0 {
		c.round.cancel()
	}
	return out
}

// run writes for all calls until there is none.
func (e *engine) run() { usercode.Loop(usercode.Go, e.next) }

// next writes a round of the calls that have come. It returns false if there is none.
func (e *engine) next() bool {
	e.mu.Lock()
	if len(e.queued) == 0 {
		e.running = false
		e.mu.Unlock()
		return false
	}
	ctx, cancel := context.WithCancel(hook.WithRetries(context.WithoutCancel(e.queued[0].ctx)))
	defer cancel()
	r := &round{calls: e.queued, n: len(e.queued), cancel: cancel}
	for _, c := range r.calls {
		c.round = r
	}
	e.queued = nil
	e.mu.Unlock()
	if !e.isUsed {
		e.obs.Started(ctx)
	}
	err := usercode.Exited("the retry policy")
	defer func() { e.end(r, err) }()
	e.write(hook.Telemetry(e.client).ExpectingErrors(ctx), r)
	err, e.isUsed = nil, true
	return true
}

// write applies the changes of a round, or ends its calls in another way.
func (e *engine) write(ctx context.Context, r *round) {
	start := time.Now()
	err := e.tryAll(ctx, r, e.policy, &r.stats.OptimisticTries, &r.stats.OptimisticTime, start)
	if err == nil && e.promoted != nil && e.isOpen(r) {
		err = e.writePromoted(ctx, r)
	}
	e.end(r, err)
	for e.isOpen(r) { // with force
		e.end(r, e.tryAll(ctx, r, e.policy, &r.stats.OptimisticTries, &r.stats.OptimisticTime, start))
	}
}

// writePromoted tries again with the lock. Those without the lock may still be faster.
func (e *engine) writePromoted(ctx context.Context, r *round) error {
	start := time.Now()
	contender, err := e.promoted.queue.Acquire(ctx, e.promoted.wait)
	if err != nil {
		r.stats.PromotedTime = time.Since(start)
		if errors.Is(err, waitqueue.ErrNotAcquired) {
			return nil
		}
		return err
	}
	defer e.promoted.queue.ReleaseInBackground(ctx, contender.Path)
	return e.tryAll(ctx, r, e.promoted.policy, &r.stats.PromotedTries, &r.stats.PromotedTime, start)
}

// tryAll tries until all calls are over or the policy gives up.
func (e *engine) tryAll(
	ctx context.Context, r *round, policy retry.Policy, tries *int, spent *time.Duration, start time.Time,
) error {
	var schedule backoff.BackOff
	for {
		*tries++
		isConflict, err := e.try(ctx, r, func() { *spent = time.Since(start) })
		if err != nil || !e.isOpen(r) {
			return err
		}
		if !isConflict {
			continue
		}
		pause := backoff.Stop
		if err := usercode.Call("the retry policy", func() {
			if schedule == nil {
				schedule = scheduleOf(policy, start)
			}
			pause = schedule.NextBackOff()
		}); err != nil {
			return err
		}
		if pause == backoff.Stop {
			return nil
		}
		if pause > 0 && waitqueue.Pause(ctx, pause) != nil {
			return ctx.Err()
		}
	}
}

func scheduleOf(policy retry.Policy, start time.Time) backoff.BackOff {
	if p, ok := policy.(retry.SinceStarter); ok {
		return p.NewBackOffSince(start)
	}
	return policy.NewBackOff()
}

// isOpen reports whether a call of the round is not over.
func (e *engine) isOpen(r *round) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.n > 0
}

// try reads the node if it must, applies the changes to what it has read, and writes the result. isConflict means that
// another client was faster. An error is one of all calls that are not over: nothing of them was applied.
func (e *engine) try(ctx context.Context, r *round, note func()) (isConflict bool, err error) {
	base, isRemembered := e.known, e.known.exists && e.watch.covers(e.known.epoch)
	e.known = snapshot{}
	if !isRemembered {
		if base, err = e.read(ctx, false); err != nil {
			return false, err
		}
	}
	post, isChanged := e.apply(r, base)
	if !isChanged && !base.isSynced { // what is refused must be refused by the present value
		if base, err = e.read(ctx, true); err != nil {
			return false, err
		}
		post, isChanged = e.apply(r, base)
	}
	if !isChanged {
		note()
		e.endTried(r, true, nil)
		return false, nil
	}
	v, next, err := e.settle(ctx, base, post)
	note()
	switch v {
	case applied:
		e.known = next
		e.endTried(r, true, nil)
		return false, nil
	case refused:
		e.obs.Conflict(ctx)
		e.reopen(r)
		return !isRemembered, nil
	case uncertain:
		e.obs.Uncertain(ctx)
		e.endTried(r, false, errtext.Join(ErrUncertain, errtext.Sent(err, framework.ErrNotSent)))
		e.reopen(r)
		return false, nil
	}
	e.reopen(r)
	return false, err
}

// apply applies the changes to base, one after the other. Those that are not refused are sent from now on.
func (e *engine) apply(r *round, base snapshot) (post []byte, isChanged bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	pre := base.data
	for _, c := range r.calls {
		if c.phase == over {
			continue
		}
		c.pre = pre
		if base.isWrapped() && !c.force {
			c.refusal = errVersion
			continue
		}
		c.post, c.refusal = c.change(pre)
		if c.refusal == nil {
			c.phase, pre, isChanged = sent, c.post, true
		}
	}
	return pre, isChanged
}

// reopen makes the calls whose write was refused wait for another try.
func (e *engine) reopen(r *round) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range r.calls {
		if c.phase == sent {
			c.phase = open
		}
	}
}

// endTried ends the calls that were sent, as applied or with err, and those that were refused if withRefused is set:
// the write has proved, or a read has, that they were refused by the present value.
func (e *engine) endTried(r *round, withRefused bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range r.calls {
		switch {
		case c.phase == sent:
			r.finish(c, outcome{succeeded: err == nil, pre: c.pre, post: c.post, err: err})
		case c.phase == open && withRefused:
			out := outcome{pre: c.pre, err: c.refusal}
			if errors.Is(out.err, errDiffers) || errors.Is(out.err, errExists) {
				out.err = nil
			}
			r.finish(c, out)
		}
	}
}

// end ends all calls, with err or because others were faster. Without an error those with force stay.
func (e *engine) end(r *round, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range r.calls {
		if c.phase != over && (err != nil || !c.force) {
			r.finish(c, outcome{pre: c.pre, err: err})
		}
	}
}

// finish ends a call. mu of the engine is held.
func (r *round) finish(c *call, out outcome) {
	out.stats = r.stats
	c.out, c.phase = out, over
	r.n--
	close(c.done)
}

// close removes what the client and the server keep for this value, in the background.
func (e *engine) close() error {
	if e.err != nil {
		return errtext.Wrap(e.err, "atomic", "close")
	}
	ctx := context.Background() //nolint:forbidigo // nobody waits for it
	e.watch.remove(ctx)
	if e.receipts != nil {
		e.receipts.remove(ctx)
	}
	return nil
}
