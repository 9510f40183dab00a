package exec

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/wire"
)

// Policy is a retry policy as the executor uses it.
type Policy interface {
	NewBackOff() backoff.BackOff
	Retryable(err error) bool
}

// Executor drives operations. All methods are safe for concurrent use.
type Executor struct {
	conn           func() *wire.Conn // of the current session, nil before the first
	policy         Policy
	prompt         bool // the policy answers at once: it may be called on any goroutine
	crosses        bool // the policy lets operations continue in the next session
	connectTimeout time.Duration
	dispatcher     func(dispatch.Task)
	telemetry      *telemetry.Telemetry
	epoch          time.Time

	// holding is set while operations are parked: later ones queue behind them.
	holding atomic.Bool
	pending pending

	life atomic.Int32 // state, without the lock

	mu        sync.Mutex
	state     lifeState  // changed with setState
	parked    parkedList // waiting for a connection, in order
	timers    timers     // of operations that sleep until a retry, and of parked ones
	decisions decisions
}

type lifeState int

const (
	latent lifeState = iota
	open
	closed
)

// New returns an executor, which accepts operations after Start. conn returns the connection of the current session,
// nil before the first. dispatcher runs the callbacks in order. t records all operations; it may be nil.
func New(
	conn func() *wire.Conn, policy Policy, connectTimeout time.Duration, dispatcher func(dispatch.Task),
	t *telemetry.Telemetry,
) *Executor {
	prompter, prompt := policy.(interface{ Prompt() bool })
	e := &Executor{
		conn: conn, policy: policy, prompt: prompt && prompter.Prompt(), crosses: crosses(policy),
		connectTimeout: connectTimeout, dispatcher: dispatcher, telemetry: t, epoch: time.Now(),
	}
	e.pending.idle = make(chan struct{})
	return e
}

// crosses reports whether operations may continue in the next session. With a policy that panics they may not.
func crosses(policy Policy) bool {
	defer func() { _ = recover() }()
	return policy.Retryable(zk.ErrSessionExpired)
}

// Start begins to accept operations.
func (e *Executor) Start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.setState(open)
}

// setState is called with mu held.
func (e *Executor) setState(s lifeState) {
	e.state = s
	e.life.Store(int32(s))
}

// Err returns the reason why no operation is accepted, or nil.
func (e *Executor) Err() error {
	switch lifeState(e.life.Load()) {
	case latent:
		return ErrNotStarted
	case closed:
		return ErrClosed
	}
	return nil
}

// Policy returns the retry policy.
func (e *Executor) Policy() Policy { return e.policy }

// Conn returns the connection of the current session, nil before the first.
func (e *Executor) Conn() *wire.Conn { return e.conn() }

// now returns the time in ns since epoch.
func (e *Executor) now() int64 { return int64(time.Since(e.epoch)) }

func (e *Executor) at(ns int64) time.Time { return e.epoch.Add(time.Duration(ns)) }

// Do runs op and waits for its end.
func (e *Executor) Do(ctx context.Context, op *Operation) error {
	op.inline = true
	op.waited.Store(true)
	if err := e.Begin(ctx, op); err != nil {
		return err
	}
	return e.Wait(ctx, op)
}

// Begin starts op, for which Wait must be called.
func (e *Executor) Begin(ctx context.Context, op *Operation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	op.done = make(chan struct{})
	if err := e.accept(ctx, op); err != nil {
		return err
	}
	op.begin()
	return nil
}

// Wait waits for the end of op. When ctx ends first, op continues alone: its answer is still read, and it cleans up.
func (e *Executor) Wait(ctx context.Context, op *Operation) error {
	op.waited.Store(true)
	record := op.recorded()
	select {
	case <-op.done:
		return op.outcome()
	case <-ctx.Done():
	}
	cause := e.explain(ctx.Err())
	if !op.abandon(cause) {
		<-op.done
		return op.outcome()
	}
	if record != nil {
		record.End(time.Now(), telemetry.Facts{Err: cause, Children: -1, Waits: e.waitsOf(op)})
	}
	if e.takeBack(op) || e.withdraw(op) {
		op.Finish(cause)
	}
	close(op.done) // nothing refers to the caller's memory any more; another Wait returns the same
	return cause
}

// explain adds the reason of the lost connection to err. The result matches the same errors as err, and the reason.
func (e *Executor) explain(err error) error {
	if conn := e.conn(); conn != nil {
		if cause := conn.LastError(); cause != nil {
			return fmt.Errorf("%w: %w", err, cause)
		}
	}
	return err
}

// withdraw takes op back from the connection if its request is not encoded yet: the request refers to the caller's
// memory.
func (e *Executor) withdraw(op *Operation) bool {
	return op.on != nil && op.on.Withdraw(&op.Request)
}

// Go runs op without waiting. An error means only that it was not accepted. Otherwise its result is delivered once.
func (e *Executor) Go(ctx context.Context, op *Operation) error {
	op.background = true
	if err := e.accept(ctx, op); err != nil {
		return err
	}
	op.begin()
	return nil
}

func (e *Executor) accept(ctx context.Context, op *Operation) error {
	op.Flight, op.single = ctx.Value(singleAttemptKey{}).(*wire.Flight)
	op.ex, op.ctx, op.started, op.observed = e, ctx, e.now(), e.telemetry.On()
	op.Request.Handler = op
	if op.observed {
		op.lazy = new(lazyRecord)
	}
	isRecorded := op.isRecordedAtOnce() && op.lazy.makeFirst(op)
	if op.background && !isRecorded && ctx.Done() != nil { // it outlives ctx; a record has a context that does
		op.ctx = context.WithoutCancel(ctx)
	}
	if err := e.admit(ctx, op); err != nil {
		if !op.Detached { // a detached one may begin on a goroutine that must not block
			op.recorded().End(time.Now(), telemetry.Facts{Err: err, Children: -1})
		}
		op.ex = nil // it never began
		return err
	}
	op.since, op.conn = op.started, e.conn()
	if e.pending.most > 0 { // it may have waited for room, not for a connection
		op.since = e.now()
	}
	return nil
}

// admit counts an operation, or returns the reason why it is refused.
func (e *Executor) admit(ctx context.Context, op *Operation) error {
	exempt := op.Detached || op.Internal || e.pending.most > 0 && ctx.Value(unboundedKey{}) != nil
	if err := e.pending.enter(ctx, op.background, exempt); err != nil {
		return err
	}
	if err := e.Err(); err != nil { // after counting: Stop waits for all counted operations
		e.pending.finished()
		e.pending.left()
		return err
	}
	return nil
}

func (op *Operation) begin() {
	op.attempts.Add(1)
	op.Protocol.Begin()
}

func (e *Executor) deliver(t dispatch.Task) { e.dispatcher(t) }

// send submits op's request, or parks op while there is no connection. A background operation that was submitted
// belongs to the goroutine that reads: it may have ended, and serve another call, before send returns.
func (e *Executor) send(op *Operation) {
	inline := op.inline
	op.inline, op.decided = false, false // only the first request: later ones are sent by the reader, which must not write
	guarded := !inline && !op.background
	if guarded {
		op.gate.Lock()
	}
	gone := op.isAbandoned()
	var sent bool
	var refused error
	if !gone && !e.holding.Load() {
		sent, refused = e.submit(op, inline)
	}
	if guarded {
		op.gate.Unlock()
	}
	switch {
	case sent:
	case gone: // there is no receiver for the rest
		op.Finish(op.cause)
	case refused != nil:
		op.Finish(refused)
	default:
		e.park(op)
	}
}

// submit reports whether op is on its way. It returns the error if op never will be.
func (e *Executor) submit(op *Operation, inline bool) (bool, error) {
	conn := e.conn()
	if conn == nil {
		return false, nil
	}
	if e.outlived(op, conn) {
		return false, zk.ErrSessionExpired
	}
	op.on = conn // before the answer can come
	err := conn.Submit(&op.Request, inline)
	if err == nil {
		return true, nil
	}
	if errors.Is(err, zk.ErrAuthFailed) { // for good: no session will follow
		return false, err
	}
	return false, nil // the next session can take it
}

// outlived reports whether op began in an earlier session than that of conn and may not continue in this one.
func (e *Executor) outlived(op *Operation, conn *wire.Conn) bool {
	return op.conn != nil && op.conn != conn && !op.Detached && !e.crosses
}

// Stop refuses further operations and finishes those that wait for a connection or a retry with ErrClosed. Those
// in flight finish with their answer.
func (e *Executor) Stop() {
	e.mu.Lock()
	if e.state == closed {
		e.mu.Unlock()
		return
	}
	e.setState(closed)
	waiting := e.parked.takeAll()
	waiting = append(waiting, e.timers.stop()...)
	undecided := e.decisions.takeAll()
	e.mu.Unlock()
	e.pending.close()
	for _, op := range waiting {
		op.Finish(ErrClosed)
	}
	for _, d := range undecided {
		d.op.continueClosed(d)
	}
}

// Drain waits up to limit until every accepted operation has ended, with its callback, and the retry policy has
// returned. It reports whether they have. Call it after Stop, without a connection.
func (e *Executor) Drain(limit time.Duration) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-e.pending.idle
		e.decisions.wg.Wait()
	}()
	return dispatch.Within(limit, done)
}
