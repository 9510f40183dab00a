package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/wire"
)

// Policy is what the executor needs of a retry policy.
type Policy interface {
	NewBackOff() backoff.BackOff
	Retryable(err error) bool
}

// sinceStarter is a Policy whose schedules depend on when the operation began.
type sinceStarter interface {
	NewBackOffSince(start time.Time) backoff.BackOff
}

// Executor drives operations. All methods are safe for concurrent use.
type Executor struct {
	conn           func() *wire.Conn // of the current session, nil before the first
	policy         Policy
	connectTimeout time.Duration
	dispatcher     func(dispatch.Task)
	telemetry      *telemetry.Telemetry

	// holding is set while operations are parked: whatever comes then queues behind them.
	holding atomic.Bool

	mu       sync.Mutex
	state    lifeState
	parked   []*Operation // waiting for a connection, in order
	expiry   *time.Timer  // ends the wait of those that have waited long enough
	expiryAt time.Time
	sleeping map[*Operation]*time.Timer
	alive    int // operations accepted and not finished
	idle     chan struct{}
}

// detachedPause is the pause of a detached operation between two rounds of the retry policy.
const detachedPause = time.Second

type lifeState int

const (
	latent lifeState = iota
	open
	closed
)

// New returns an executor; it takes operations after Start. conn returns the connection of the current session, nil
// before the first; dispatcher runs what is delivered, in order; t, which may be nil, is told of all operations.
func New(
	conn func() *wire.Conn, policy Policy, connectTimeout time.Duration, dispatcher func(dispatch.Task), t *telemetry.Telemetry,
) *Executor {
	return &Executor{
		conn: conn, policy: policy, connectTimeout: connectTimeout, dispatcher: dispatcher, telemetry: t,
		sleeping: make(map[*Operation]*time.Timer), idle: make(chan struct{}),
	}
}

// Start lets operations in.
func (e *Executor) Start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = open
}

// Err returns why no operation is accepted, or nil.
func (e *Executor) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.errLocked()
}

func (e *Executor) errLocked() error {
	switch e.state {
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

// Do runs op and waits for its end.
func (e *Executor) Do(ctx context.Context, op *Operation) error {
	op.inline = true
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

// Wait waits for the end of op. When ctx ends first, op is left to itself: its answer is still read and what has to
// be cleaned up is.
func (e *Executor) Wait(ctx context.Context, op *Operation) error {
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
	record.End(time.Now(), telemetry.Facts{Err: cause, Children: -1})
	if e.unpark(op) || e.withdraw(op) {
		op.Finish(cause)
	}
	close(op.done) // nothing refers to what is the caller's any more; whoever waits once more is told the same
	return cause
}

// explain joins why there is no connection to err, which is about one. What err matches stays the same.
func (e *Executor) explain(err error) error {
	if conn := e.conn(); conn != nil {
		if cause := conn.LastError(); cause != nil {
			return fmt.Errorf("%w: %w", err, cause)
		}
	}
	return err
}

// withdraw takes op back from the connection if its request is not encoded yet: what it refers to is the caller's.
func (e *Executor) withdraw(op *Operation) bool {
	return op.on != nil && op.on.Withdraw(&op.Request)
}

// Go runs op without waiting. The error says only whether it was accepted; if so, its result is delivered once.
func (e *Executor) Go(ctx context.Context, op *Operation) error {
	op.background = true
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	if err := e.accept(ctx, op); err != nil {
		return err
	}
	op.begin()
	return nil
}

func (e *Executor) accept(ctx context.Context, op *Operation) error {
	op.ex, op.ctx, op.started, op.told = e, ctx, time.Now(), e.telemetry.On()
	op.Flight, op.single = ctx.Value(singleAttemptKey{}).(*wire.Flight)
	op.conn = e.conn()
	op.Request.Handler = op
	if op.isRecordedAtOnce() {
		op.recorded()
	}
	if err := e.admit(); err != nil {
		op.recorded().End(time.Now(), telemetry.Facts{Err: err, Children: -1})
		return err
	}
	return nil
}

// admit counts an operation in, or says why it does not.
func (e *Executor) admit() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.errLocked(); err != nil {
		return err
	}
	e.alive++
	return nil
}

func (op *Operation) begin() {
	op.attempts.Add(1)
	op.Protocol.Begin()
}

func (e *Executor) ended() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.alive--; e.alive == 0 && e.state == closed {
		close(e.idle)
	}
}

func (e *Executor) deliver(t dispatch.Task) { e.dispatcher(t) }

// send submits op's request, or parks op while there is no connection.
func (e *Executor) send(op *Operation) {
	inline := op.inline
	op.inline = false // only the first request: whoever reads its answer goes on, and must not write
	if !inline {
		op.gate.Lock()
	}
	gone := op.isAbandoned()
	var sent bool
	var refused error
	if !gone && !e.holding.Load() {
		sent, refused = e.submit(op, inline)
	}
	if !inline {
		op.gate.Unlock()
	}
	switch {
	case gone: // nobody wants what would follow
		op.Finish(op.cause)
	case refused != nil:
		op.Finish(refused)
	case !sent:
		e.park(op)
	}
}

// submit reports whether op is on its way, or why it never will be.
func (e *Executor) submit(op *Operation, inline bool) (bool, error) {
	conn := e.conn()
	if conn == nil {
		return false, nil
	}
	if e.outlived(op, conn) {
		return false, zk.ErrSessionExpired
	}
	sent := op.sent
	op.sent, op.on = true, conn // before the answer can come
	err := conn.Submit(&op.Request, inline)
	if err == nil {
		return true, nil
	}
	op.sent = sent
	if errors.Is(err, zk.ErrAuthFailed) { // for good: no session will follow
		return false, err
	}
	return false, nil // the session that follows will do
}

// outlived reports whether op began in an earlier session than that of conn and the policy does not let it go on.
func (e *Executor) outlived(op *Operation, conn *wire.Conn) bool {
	return op.conn != nil && op.conn != conn && !op.Detached && !e.policy.Retryable(zk.ErrSessionExpired)
}

// park lets op wait for a connection, for as long as the connection timeout since its start. One that has waited
// so long before fails at once: an operation waits once, not at each attempt.
func (e *Executor) park(op *Operation) {
	e.mu.Lock()
	if e.state == closed {
		e.mu.Unlock()
		op.Finish(ErrClosed)
		return
	}
	patience := e.connectTimeout - time.Since(op.started)
	if (patience <= 0 || op.single) && !op.Detached {
		e.mu.Unlock()
		e.again(op, op.loss())
		return
	}
	e.parked = append(e.parked, op)
	e.holding.Store(true)
	if deadline := op.started.Add(e.connectTimeout); !op.Detached && (e.expiry == nil || deadline.Before(e.expiryAt)) {
		e.stopExpiry()
		e.expiry, e.expiryAt = time.AfterFunc(patience, e.expire), deadline
	}
	conn := e.conn()
	e.mu.Unlock()
	if op.isAbandoned() { // its caller found nothing to take back
		if e.unpark(op) {
			op.Finish(op.cause)
		}
	}
	if conn != nil && conn.IsConnected() { // it came while op was on its way here
		e.Connected()
	}
}

// Connected sends what is parked, in order, before anything else. It is called when a connection stands.
func (e *Executor) Connected() {
	for {
		e.mu.Lock()
		if len(e.parked) == 0 {
			e.holding.Store(false)
			e.stopExpiry()
			e.mu.Unlock()
			return
		}
		op := e.parked[0]
		conn := e.conn()
		if conn != nil && e.outlived(op, conn) {
			e.parked = e.parked[1:]
			e.mu.Unlock()
			op.Finish(zk.ErrSessionExpired)
			continue
		}
		sent := op.sent
		op.sent, op.on = true, conn
		// Submitted under the lock: whoever comes meanwhile parks behind.
		if conn == nil || conn.Submit(&op.Request, false) != nil {
			op.sent = sent
			e.mu.Unlock()
			return
		}
		e.parked[0] = nil
		e.parked = e.parked[1:]
		e.mu.Unlock()
	}
}

func (e *Executor) stopExpiry() {
	if e.expiry != nil {
		e.expiry.Stop()
		e.expiry, e.expiryAt = nil, time.Time{}
	}
}

// expire ends the wait of those that have waited for a connection long enough.
func (e *Executor) expire() {
	var over []*Operation
	e.mu.Lock()
	e.stopExpiry()
	now := time.Now()
	e.parked = slices.DeleteFunc(e.parked, func(op *Operation) bool {
		if op.Detached || now.Sub(op.started) < e.connectTimeout {
			return false
		}
		over = append(over, op)
		return true
	})
	for _, op := range e.parked {
		deadline := op.started.Add(e.connectTimeout)
		if !op.Detached && (e.expiryAt.IsZero() || deadline.Before(e.expiryAt)) {
			e.expiryAt = deadline
		}
	}
	if !e.expiryAt.IsZero() {
		e.expiry = time.AfterFunc(e.expiryAt.Sub(now), e.expire)
	}
	e.mu.Unlock()
	for _, op := range over {
		e.again(op, op.loss())
	}
}

// unpark takes op back if it is neither on the wire nor about to be.
func (e *Executor) unpark(op *Operation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.parked, op); i >= 0 {
		e.parked = slices.Delete(e.parked, i, i+1)
		return true
	}
	if t, ok := e.sleeping[op]; ok {
		delete(e.sleeping, op)
		t.Stop()
		return true
	}
	return false
}

// again begins another attempt of op after the pause that the policy asks for, or ends op with err.
func (e *Executor) again(op *Operation, err error) {
	if op.single || op.isAbandoned() {
		op.Finish(err)
		return
	}
	if op.schedule == nil {
		if p, ok := e.policy.(sinceStarter); ok {
			op.schedule = p.NewBackOffSince(op.started)
		} else {
			op.schedule = e.policy.NewBackOff()
		}
	}
	pause := op.schedule.NextBackOff()
	switch {
	case pause == backoff.Stop && op.Detached:
		op.schedule, pause = nil, detachedPause
	case pause == backoff.Stop:
		op.note(func(r *telemetry.Record) { r.GivenUp(err) })
		op.Finish(err)
		return
	}
	op.note(func(r *telemetry.Record) { r.Retry(err, pause) })
	e.mu.Lock()
	if e.state == closed {
		e.mu.Unlock()
		op.Finish(ErrClosed)
		return
	}
	// Even a pause of nothing goes over the timer: an attempt that fails at once must not recurse.
	e.sleeping[op] = time.AfterFunc(pause, func() {
		if e.unpark(op) {
			if op.isAbandoned() {
				op.Finish(op.cause)
				return
			}
			op.begin()
		}
	})
	e.mu.Unlock()
	if op.isAbandoned() && e.unpark(op) {
		op.Finish(op.cause)
	}
}

// Stop refuses further operations and finishes those that wait for a connection or a retry with ErrClosed. Those
// in flight finish with their answer.
func (e *Executor) Stop() {
	e.mu.Lock()
	if e.state == closed {
		e.mu.Unlock()
		return
	}
	e.state = closed
	waiting := e.parked
	e.parked = nil
	for op, t := range e.sleeping {
		t.Stop()
		waiting = append(waiting, op)
	}
	clear(e.sleeping)
	e.stopExpiry()
	if e.alive == 0 {
		close(e.idle)
	}
	e.mu.Unlock()
	for _, op := range waiting {
		op.Finish(ErrClosed)
	}
}

// Drain waits up to limit until every accepted operation has finished, and reports whether they have. It is called
// after Stop, when no connection is left.
func (e *Executor) Drain(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-e.idle:
		return true
	case <-t.C:
	}
	select { // both may have been ready
	case <-e.idle:
		return true
	default:
		return false
	}
}
