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
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/internal/wire"
)

// Policy is a retry policy as the executor uses it.
type Policy interface {
	NewBackOff() backoff.BackOff
	Retryable(err error) bool
}

// Executor drives operations. All methods are safe for concurrent use.
type Executor struct {
	conn           func() *wire.Conn // returns the connection of the current session, nil before the first
	policy         Policy
	prompt         bool // the policy returns at once: it may be called on any goroutine
	crosses        bool // the policy lets operations continue in the next session
	connectTimeout time.Duration
	dispatcher     func(dispatch.Task)
	library        func(dispatch.Task) // runs the callbacks of the library; nil means the dispatcher
	telemetry      *telemetry.Telemetry
	slots          sync.Pool // channels for Do; not global, because a channel belongs to a bubble of testing/synctest
	epoch          time.Time

	// holding is set while operations are in the line: later ones queue behind them. sending is set while the first of
	// them may be sent: operations that do not keep the order queue too, for that moment.
	holding, sending atomic.Bool
	pending          pending

	life atomic.Int32 // a copy of state that is read without the lock

	mu        sync.Mutex
	state     lifeState  // changed with setState
	line      line       // operations that wait for a connection or behind a retry, in order
	waking    bool       // a goroutine is in Connected, or begins attempts in wake
	again     bool       // Connected was called while waking was set
	woken     bool       // the timer has fired while waking was set
	swept     *wire.Conn // the connection for which takeOver has run
	timers    timers     // deadlines of parked operations, and ends of the pauses before retries
	decisions decisions
}

type lifeState int

const (
	latent lifeState = iota
	open
	closed
)

// New returns an executor that accepts operations after Start. conn returns the connection of the current session, nil
// before the first. dispatcher runs the callbacks in order. t records all operations; it may be nil.
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
	defer usercode.Catch("the retry policy", nil)
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
	op.caller.done = e.slot()
	if err := e.Begin(ctx, op); err != nil {
		return err
	}
	err := e.Wait(ctx, op)
	if !op.isAbandoned() {
		e.slots.Put(op.caller.done)
	}
	return err
}

// slot returns a channel for the end of an operation of Do, if possible that of an earlier operation.
func (e *Executor) slot() chan struct{} {
	if slot, ok := e.slots.Get().(chan struct{}); ok {
		return slot
	}
	return make(chan struct{}, 1)
}

// Begin starts op, for which Wait must be called.
func (e *Executor) Begin(ctx context.Context, op *Operation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if op.caller.done == nil {
		op.caller.done = make(chan struct{})
	}
	if err := e.accept(ctx, op); err != nil {
		return err
	}
	op.begin()
	return nil
}

// Wait waits for the end of op. When ctx ends first, op continues without a caller: its answer is still read, and it
// cleans up.
func (e *Executor) Wait(ctx context.Context, op *Operation) error {
	if op.record != nil {
		op.record.waited.Store(true)
	}
	record := op.recorded()
	select {
	case <-op.caller.done:
		return op.outcome()
	case <-ctx.Done():
	}
	cause := e.explain(ctx.Err())
	if !op.abandon(cause) {
		<-op.caller.done
		return op.outcome()
	}
	isOurs := e.takeBack(op) || e.withdraw(op)
	err := e.unanswered(op, cause) // after the withdrawal: nothing more of op is sent
	op.caller.abandoned.err = err
	if record != nil {
		record.End(time.Now(), telemetry.Facts{Err: err, Children: -1, Waits: e.waitsOf(op)})
	}
	if isOurs {
		op.Finish(cause)
	}
	close(op.caller.done) // nothing refers to the caller's memory any more; a second Wait returns the same error
	return err
}

// unanswered returns the error of a caller that has given up op for cause.
func (e *Executor) unanswered(op *Operation, cause error) error {
	if op.state.on == nil {
		return cause
	}
	server, since, wrote := op.state.on.Unanswered(&op.wire)
	if server != "" {
		cause = fmt.Errorf("%w: %s has not answered for %v", cause, server, since.Round(time.Millisecond))
	}
	if wrote {
		cause = uncertainEnd{cause}
	}
	return cause
}

// uncertainEnd is the end of a caller's context that leaves open whether a write has taken effect. It matches
// [ErrUncertain], but no lost connection.
type uncertainEnd struct{ error }

func (u uncertainEnd) Error() string {
	return u.error.Error() + ", and the write may have taken effect"
}

func (u uncertainEnd) Unwrap() error { return u.error }

func (uncertainEnd) Is(target error) bool { return target == ErrUncertain }

// explain adds the reason of the lost connection to err. The result matches the errors of both.
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
	return op.state.on != nil && op.state.on.Withdraw(&op.wire)
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
	switch attempts := ctx.Value(attemptsKey{}).(type) {
	case *wire.Flight:
		op.wire.Flight, op.single = attempts, true
	case outOfOrder:
		op.unordered = true
	}
	op.unordered = op.unordered || op.single || op.Detached
	op.ex, op.ctx, op.started = e, ctx, e.now()
	op.wire.Handler = op
	if e.telemetry.On() {
		op.record = new(lazyRecord)
		op.record.waited.Store(op.inline)
	}
	isRecorded := op.isRecordedAtOnce() && op.record.makeFirst(op)
	if op.background && !isRecorded && ctx.Done() != nil { // op outlives ctx; the context of a record does so already
		op.ctx = context.WithoutCancel(ctx)
	}
	if err := e.admit(ctx, op); err != nil {
		if !op.Detached { // a detached one may begin on a goroutine that must not block
			op.recorded().End(time.Now(), telemetry.Facts{Err: err, Children: -1})
		}
		op.ex = nil // it never began
		return err
	}
	op.waiting.since = op.started
	if conn := e.conn(); conn != nil && !conn.IsOver() { // otherwise sendOn sets it
		op.conn = conn
	}
	if e.pending.most > 0 { // a wait for room is no wait for a connection
		op.waiting.since = e.now()
	}
	return nil
}

// admit counts an operation, or returns the reason why it is refused.
func (e *Executor) admit(ctx context.Context, op *Operation) error {
	exempt := op.Detached || op.Internal || e.pending.most > 0 && ctx.Value(unboundedKey{}) != nil
	var err error
	if op.waiting.number, err = e.pending.enter(ctx, op.background, exempt); err != nil {
		return err
	}
	if err = e.Err(); err != nil { // after counting: Stop waits for all counted operations
		e.pending.finished()
		e.pending.exit()
		return err
	}
	return nil
}

func (op *Operation) begin() {
	op.state.attempts.Add(1)
	op.Protocol.Begin()
}

// DeliverLibrary sets what runs the callbacks of the library in order. It is called before Start.
func (e *Executor) DeliverLibrary(dispatcher func(dispatch.Task)) { e.library = dispatcher }

func (e *Executor) deliver(d *delivery) {
	if d.OfLibrary && e.library != nil {
		e.library(d)
		return
	}
	e.dispatcher(d)
}

// send submits op's request, or parks op while there is no connection. After the submission a background operation
// belongs to the goroutine that reads: op may have ended, and be in use for another call, before send returns.
func (e *Executor) send(op *Operation) {
	inline := op.inline
	op.inline = false // for the first request only: the reader sends the later ones, and must not write
	op.state.decided = false
	guarded := !inline && !op.background
	if guarded {
		op.caller.gate.Lock()
	}
	gone := op.isAbandoned()
	var sent bool
	var refused error
	if held := e.heldBy(op); !gone && (held == nil || !held.Load()) {
		sent, refused = e.submit(op, held, inline)
	}
	if guarded {
		op.caller.gate.Unlock()
	}
	switch {
	case sent:
	case gone: // no caller needs the rest of the operation
		op.Finish(op.caller.abandoned.cause)
	case refused != nil:
		op.Finish(refused)
	default:
		e.park(op)
	}
}

// heldBy returns the flag that holds op back. An operation that keeps the order waits for all that are in the line, but
// nothing holds the requests of an attempt for whose end all others wait.
func (e *Executor) heldBy(op *Operation) *atomic.Bool {
	switch {
	case op.waiting.reason == retrying && op.hasSteps():
		return nil
	case op.unordered:
		return &e.sending
	}
	return &e.holding
}

// submit reports whether the connection has accepted op. An error means that no connection ever will.
func (e *Executor) submit(op *Operation, held *atomic.Bool, inline bool) (bool, error) {
	conn := e.conn()
	if conn == nil {
		return false, nil
	}
	if e.outlived(op, conn) {
		if op.single { // which does not wait
			return false, zk.ErrSessionExpired
		}
		return false, nil // it ends behind those that began before it
	}
	op.sendOn(conn) // before the answer can come
	// Others may have been parked since send has looked, and the next connection stand already.
	err := conn.SubmitUnless(held, &op.wire, inline)
	if err == nil {
		return true, nil
	}
	if errors.Is(err, zk.ErrAuthFailed) {
		return false, op.refusal(conn, err)
	}
	return false, nil // the next session can accept it
}

// sendOn sets the connection of the next request.
func (op *Operation) sendOn(conn *wire.Conn) {
	if op.state.on == nil { // the first request
		op.state.known = conn.Known()
	}
	if op.conn == nil && !conn.IsOver() {
		op.conn = conn
	}
	op.state.on = conn
}

// outlived reports whether op began before the session of conn and may not continue in it.
func (e *Executor) outlived(op *Operation, conn *wire.Conn) bool {
	return conn != nil && op.conn != nil && op.conn != conn && !op.Detached && !e.crosses
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
	waiting := e.line.takeAll()
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
