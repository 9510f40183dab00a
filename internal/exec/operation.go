// Package exec drives operations: it sends their requests in order, waits for connections, retries, and hands their
// results to the caller or to the dispatcher.
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

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/wire"
)

// Protocol has the steps of an operation. Its methods run one at a time, on the caller's goroutine or on
// the one that reads the connection: they must not block.
type Protocol interface {
	// Begin starts an attempt: it sends a request or finishes.
	Begin()
	// Deliver hands the result of a background operation to its callback, on the dispatcher.
	Deliver()
}

// Stepper is a Protocol whose attempts after the first may have several requests.
type Stepper interface {
	// HasSteps reports whether the next attempt may have several requests. Later operations wait for its end then, or
	// until it reports false.
	HasSteps() bool
}

// Cleaner is a Protocol that may leave nodes behind.
type Cleaner interface {
	// CleanUp is called with the error of a failed operation. It is called with nil if the operation has succeeded after
	// its caller gave up. [Operation.Sent] reports whether there is anything to clean up.
	CleanUp(err error)
}

// Recycler is a Protocol that reuses its memory after the delivery of its result.
type Recycler interface{ Recycle() }

// Described is a Protocol that telemetry records.
type Described interface {
	// Describe returns the description for telemetry. Operations without a name are not recorded.
	Describe() telemetry.Operation
}

// Operation is one call of a builder from start to result: a chain of requests, each sent after the answer to the one
// before. The zero value with Protocol set is ready for [Executor.Do] or [Executor.Go].
type Operation struct {
	wire wire.Request // the request in flight, or the last answered one

	// Protocol decides which requests are sent.
	Protocol Protocol
	// Detached operations are clean-ups without a receiver. They wait for a connection without a limit, and are retried
	// until they succeed or the client is closed.
	Detached bool

	// Internal operations are the client's own: they do not count against its limit.
	Internal bool

	// OfLibrary marks an operation whose callback is the library's: its result does not wait for the program's callbacks.
	OfLibrary bool

	background bool // no caller waits: the result goes to a callback
	inline     bool // the caller waits and may write the first request by itself
	single     bool // no attempt follows: an outer loop retries
	unordered  bool // it does not wait behind the retries of other operations

	ex      *Executor
	ctx     context.Context
	conn    *wire.Conn // the session in which it began or, without one, was sent first; nil before that
	started int64      // ns since Executor.epoch

	state   state
	waiting waiting
	caller  caller
	record  *lazyRecord // for telemetry; nil if op is not observed
}

// state is the progress of an operation: its attempts and their answers.
type state struct {
	phase     atomic.Int32 // running, finished or abandoned
	attempts  atomic.Int32
	write     write
	gaveUp    bool // the operation failed with an error that may be retried
	decided   bool // the policy has decided about the last answer
	uncertain bool // the answer to a write was lost
	lost      bool // the answer to a request was lost

	next     func()
	known    int64      // a zxid below that of the first request
	on       *wire.Conn // the connection of the request in flight
	schedule backoff.BackOff
	err      error
}

// waiting is the state of an operation that waits for a connection or for another attempt. Executor.mu guards it once
// the operation has begun.
type waiting struct {
	has           bool // the operation has waited at least once
	reason        waitReason
	inLine        bool       // it is in Executor.line
	timer         int32      // index in the heap of timers, counted from 1; 0 without a timer
	number        int64      // its place in the order in which operations are accepted
	since         int64      // the beginning of the wait for a connection, in ns since Executor.epoch
	before, after *Operation // the neighbours in the line
}

// caller is the side of a caller that waits.
type caller struct {
	gate      sync.Mutex   // held while the caller's memory is encoded: the caller must not return meanwhile
	abandoned *abandonment // set when the caller has stopped waiting
	// done is closed at the end. For Do it has a buffer of one, gets a value instead, and is reused.
	done chan struct{}
}

// end wakes the caller. Nothing uses the operation after that.
func (c *caller) end() {
	if cap(c.done) > 0 {
		c.done <- struct{}{}
		return
	}
	close(c.done)
}

// abandonment has the errors of a caller that has stopped waiting. It is not a part of Operation, because an outage may
// leave many operations in memory.
type abandonment struct {
	cause error // the end of its context
	err   error // the error that the caller got, which wraps cause; set before done is closed
}

const (
	running int32 = iota
	finished
	abandoned // the caller has stopped waiting
)

// Context returns the context of the call, in the span of op if it has one. A background operation continues after its
// end.
func (op *Operation) Context() context.Context {
	if r := op.record.made(); r != nil {
		return r.Context()
	}
	return op.ctx
}

// recorded returns the record of op, nil if op is not recorded. The first call makes the record. It must not run on the
// reader, because a span processor may block: see note. The record of a foreground operation is made while its request
// is in flight.
func (op *Operation) recorded() *telemetry.Record {
	if op.record == nil {
		return nil
	}
	return op.record.make(op)
}

// newRecord begins the record of op, or returns nil if op is not recorded.
func (op *Operation) newRecord() *telemetry.Record {
	d, ok := op.Protocol.(Described)
	if !ok {
		return nil
	}
	what := d.Describe()
	if what.Name == "" {
		return nil
	}
	return op.ex.telemetry.Begin(op.ctx, &op.record.memory, what, op.background, op.ex.at(op.started))
}

// note adds a note to the record of op, now or when it is made.
func (op *Operation) note(in func(r *telemetry.Record)) {
	if op.record != nil {
		op.record.note(in)
	}
}

// isRecordedAtOnce reports whether the record of op is made before its first request, because its times or its context
// are needed. That of a detached operation is not: it may begin on the goroutine that reads the connection.
func (op *Operation) isRecordedAtOnce() bool {
	if op.record == nil || op.Detached {
		return false
	}
	return op.background || op.ex.telemetry.RequestSpans() || op.ex.telemetry.WatchSpans()
}

// recordEnd records the end of op. A second call waits for the first.
func (op *Operation) recordEnd() {
	if op.record != nil {
		op.record.ended.Do(op.endRecord)
	}
}

func (op *Operation) endRecord() {
	if r := op.recorded(); r != nil {
		r.End(op.ex.at(op.record.endAt), op.facts())
	}
}

// recordEndUnlessWaited records the end of op if no caller waits for it: a caller of Begin may never call Wait.
func (op *Operation) recordEndUnlessWaited() {
	if op.record != nil && !op.record.waited.Load() {
		op.ex.telemetry.Later(op.recordEnd)
	}
}

// Attempts returns the number of attempts so far.
func (op *Operation) Attempts() int { return int(op.state.attempts.Load()) }

// Sent reports whether anything was ever sent.
func (op *Operation) Sent() bool { return op.wire.WasSent() }

// GaveUp reports whether op failed with an error that may be retried.
func (op *Operation) GaveUp() bool { return op.state.gaveUp }

// loss returns the error of an attempt without a connection.
func (op *Operation) loss() error {
	if op.wire.WasSent() {
		return op.ex.explain(jute.ErrConnectionLoss)
	}
	return op.ex.explain(ErrNotSent)
}

// refusal returns the error of op when no server accepts the client, for the reason why; nil if op waits. A login may
// be accepted later, so that its refusal is a lost connection too: whoever waits for a connection waits for the login.
func (op *Operation) refusal(conn *wire.Conn, why error) error {
	switch {
	case conn.IsOver():
		return why
	case op.Detached:
		return nil
	case op.wire.WasSent():
		return fmt.Errorf("%w: %w", jute.ErrConnectionLoss, why)
	}
	return fmt.Errorf("%w: %w", ErrNotSent, why)
}

// Result returns the error of the finished operation.
func (op *Operation) Result() error { return op.state.err }

// Executor returns the executor of op.
func (op *Operation) Executor() *Executor { return op.ex }

// Background reports whether op has no waiting caller.
func (op *Operation) Background() bool { return op.background }

// Replier is a Protocol that handles the answers to requests that are sent with a nil function.
type Replier interface{ Replied() }

// Prepare sets the next request of op. Its answer replaces the last one.
func (op *Operation) Prepare(r jute.Request) {
	op.wire.Request, op.wire.Reply, op.wire.Watcher = r, jute.Reply{}, nil
}

// SetWatcher sets the watcher that the prepared request registers, or removes: see [wire.Request].
func (op *Operation) SetWatcher(w wire.Watcher) { op.wire.Watcher = w }

// SetAbsolute puts the paths of op's requests outside the chroot.
func (op *Operation) SetAbsolute() { op.wire.Absolute = true }

// Absolute reports whether the paths of op's requests are outside the chroot.
func (op *Operation) Absolute() bool { return op.wire.Absolute }

// Reply returns the last answer. It is complete if Err is nil; a failed multi has its results.
func (op *Operation) Reply() *jute.Reply { return &op.wire.Reply }

// Err returns the error of the last answer.
func (op *Operation) Err() error { return op.wire.Err }

// Zxid returns the id of the last transaction that the server had applied when it sent the last answer.
func (op *Operation) Zxid() int64 { return op.wire.Zxid }

// SetAnswer replaces the last answer.
func (op *Operation) SetAnswer(reply jute.Reply, err error) { op.wire.Reply, op.wire.Err = reply, err }

// Send sends the prepared request behind all earlier requests. next handles the answer, or Replied of the Protocol if
// it is nil. A failure that may be retried ends the attempt instead.
func (op *Operation) Send(next func()) {
	op.state.next, op.state.write = next, unmarked
	op.ex.send(op)
}

// SendWrite is Send for a write. If its answer is lost, an error of the operation is [ErrUncertain], and only a
// repeatable write is retried.
func (op *Operation) SendWrite(repeatable bool, next func()) {
	op.state.next, op.state.write = next, once
	if repeatable {
		op.state.write = repeated
	}
	op.ex.send(op)
}

// SetUncertain sets whether an error of op is [ErrUncertain], which leaves the effect of its writes open. A protocol
// clears it when it has found out the effect. It sets it after a write that is followed by another request: the failure
// of that request must not look as if nothing was written.
func (op *Operation) SetUncertain(uncertain bool) { op.state.uncertain = uncertain }

// LostAnswer reports whether the answer to a request of op was lost, so that the request may have taken effect. known
// is the newest zxid from before the request that the client knows, or 0.
func (op *Operation) LostAnswer() (known int64, lost bool) { return op.state.known, op.state.lost }

// AnsweredIn returns the id of the session of the last answer.
func (op *Operation) AnsweredIn() int64 { return op.state.on.SessionID() }

// noteRequest records the answered request.
func (op *Operation) noteRequest() {
	if op.record == nil || op.state.on == nil {
		return
	}
	if op.background && op.record.sent.IsZero() {
		op.record.sent = op.state.on.SentAt(&op.wire)
	}
	if !op.ex.telemetry.RequestSpans() || !op.Detached && op.record.made() == nil {
		return
	}
	name, sent, now, err := op.wire.Op.String(), op.state.on.SentAt(&op.wire), time.Now(), op.wire.Err
	op.note(func(r *telemetry.Record) { r.Request(name, sent, now, err) })
}

// Answered continues op. It runs on the goroutine that reads the connection.
func (op *Operation) Answered(*wire.Request) {
	op.noteRequest()
	err := op.wire.Err
	if isLost(err) {
		if !op.state.lost {
			op.state.lost, op.state.known = true, max(op.state.known, op.state.on.Zxid())
		}
		op.state.uncertain = op.state.uncertain || op.state.write != unmarked
		if op.state.write == once {
			op.note(func(r *telemetry.Record) { r.GivenUp(err) })
			op.state.gaveUp = true
			op.Finish(err)
			return
		}
	}
	if err != nil {
		op.ex.failed(op, err)
		return
	}
	op.resume()
}

// resume takes the next step.
func (op *Operation) resume() {
	if op.state.next == nil {
		op.Protocol.(Replier).Replied()
		return
	}
	op.state.next()
}

// Finish ends op. The memory of a background operation may be reused when Finish returns.
func (op *Operation) Finish(err error) {
	e := op.ex
	if err != nil && op.state.uncertain {
		err = e.uncertain(err)
	}
	op.state.err = err
	if op.waiting.inLine && e.giveUpPlace(op) { // a retry of several requests
		defer e.recheck(e.conn())
	}
	late := !op.state.phase.CompareAndSwap(running, finished)
	if op.record != nil {
		op.record.endAt = e.now()
	}
	if cleaner, ok := op.Protocol.(Cleaner); ok && (late || err != nil) {
		cleaner.CleanUp(err)
	}
	switch {
	case op.background:
		if !e.deliverBehind(op) {
			e.deliver((*delivery)(op))
		}
	case late:
		e.pending.exit()
	default:
		op.recordEndUnlessWaited()
		e.pending.exit()
		op.caller.end()
	}
	e.pending.finished()
}

// delivery is an operation with a result, as a task of the dispatcher.
type delivery Operation

func (d *delivery) Run() {
	p := &d.ex.pending
	p.calling(1)
	defer func() { // also when the callback ends its goroutine
		p.calling(-1)
		p.exit()
	}()
	(*Operation)(d).endRecord() // before the callback, whose span is its child
	protocol := d.Protocol
	protocol.Deliver()
	if r, ok := protocol.(Recycler); ok { // not behind a callback that ends its goroutine
		r.Recycle()
	}
}

// facts returns the facts of op's end for telemetry.
func (op *Operation) facts() telemetry.Facts {
	f := telemetry.Facts{Err: op.state.err, Children: -1, Server: op.wire.Server()}
	f.Unsent = op.single && errors.Is(op.state.err, ErrNotSent)
	f.Sent = op.record.sent
	if len(op.record.waits) > 0 {
		f.Waits = op.ex.waitsOf(op)
	}
	f.RequestSize, f.ResponseSize = op.wire.Sizes()
	f.Watch = op.wire.Watcher != nil && op.wire.Op != jute.OpRemoveWatches
	if op.wire.WasSent() && op.state.on != nil {
		f.Session = op.state.on.SessionID()
	}
	if op.wire.Err != nil {
		return f
	}
	if op.wire.Op == jute.OpGetChildren || op.wire.Op == jute.OpGetChildren2 {
		f.Children = len(op.wire.Reply.Children)
	}
	if op.ex.telemetry.HasDriver() && op.wire.Reply.Stat != (zk.Stat{}) { // only a driver uses it
		stat := op.wire.Reply.Stat
		f.Stat = &stat
	}
	return f
}

// Done returns a channel that is closed when an operation with a waiting caller has finished, or the caller has given
// up.
func (op *Operation) Done() <-chan struct{} { return op.caller.done }

// abandon records that the caller has given up, with the reason. It returns false if op has finished or was abandoned
// before.
func (op *Operation) abandon(cause error) bool {
	op.caller.gate.Lock()
	defer op.caller.gate.Unlock()
	if op.isAbandoned() {
		return false
	}
	op.caller.abandoned = &abandonment{cause: cause}
	return op.state.phase.CompareAndSwap(running, abandoned)
}

// outcome records the end of op and returns the error for its caller.
func (op *Operation) outcome() error {
	if op.isAbandoned() {
		return op.caller.abandoned.err
	}
	op.recordEnd()
	return op.state.err
}

// IsFree reports whether the memory of op may be reused after Do has returned. An operation that has waited may still
// be in use by the goroutine that woke it.
func (op *Operation) IsFree() bool {
	if op.state.phase.Load() != finished || op.waiting.has {
		return false
	}
	op.caller.gate.Lock() // wait for a goroutine in send
	defer op.caller.gate.Unlock()
	return true
}

func (op *Operation) isAbandoned() bool { return op.state.phase.Load() == abandoned }

// Root is the context of the client's own work, such as clean-ups and calls of listeners.
var Root = context.Background() //nolint:forbidigo // the one root

// attemptsKey has a *wire.Flight for operations with one attempt each, outOfOrder for those that do not keep the order,
// and nil for all others.
type attemptsKey struct{}

type outOfOrder struct{}

type unboundedKey struct{}

// WithoutBound returns a context for operations of the client itself, which do not count against its limit.
func WithoutBound(ctx context.Context) context.Context {
	return context.WithValue(ctx, unboundedKey{}, true)
}

// WithSingleAttempt returns a context whose operations have one attempt each: an outer loop retries.
func WithSingleAttempt(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptsKey{}, (*wire.Flight)(nil))
}

// WithFlight returns a context whose operations have one attempt each, all on the connection of f.
func WithFlight(ctx context.Context, f *wire.Flight) context.Context {
	return context.WithValue(ctx, attemptsKey{}, f)
}

// IsFlightLive reports whether the operations of a context from WithFlight have a connection that is not lost.
func IsFlightLive(ctx context.Context) bool {
	f, _ := ctx.Value(attemptsKey{}).(*wire.Flight)
	return f != nil && f.IsLive()
}

// WithRetries returns a context whose operations are retried, also if an outer loop retries those of ctx.
func WithRetries(ctx context.Context) context.Context {
	if !IsSingleAttempt(ctx) {
		return ctx
	}
	return context.WithValue(ctx, attemptsKey{}, nil)
}

// WithoutOrder returns a context whose operations are retried, and do not wait behind the retries of other operations.
func WithoutOrder(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptsKey{}, outOfOrder{})
}

type unfencedKey struct{}

// Unfenced returns a context whose writes a fenced client sends without its fence. Use it to remove our own nodes,
// which would otherwise stay as long as the session.
func Unfenced(ctx context.Context) context.Context {
	return context.WithValue(ctx, unfencedKey{}, true)
}

// IsUnfenced reports whether ctx is from Unfenced.
func IsUnfenced(ctx context.Context) bool { return ctx.Value(unfencedKey{}) != nil }

// Detach returns a context for the clean-up after an operation of ctx: in the same trace, but it does not end with ctx.
func Detach(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), attemptsKey{}, nil)
}

// IsSingleAttempt reports whether an outer loop retries the operations of ctx.
func IsSingleAttempt(ctx context.Context) bool {
	_, single := ctx.Value(attemptsKey{}).(*wire.Flight)
	return single
}

// ErrNotSent is a lost connection before anything was sent, so that nothing has taken effect.
var ErrNotSent = fmt.Errorf("%w before it was sent", jute.ErrConnectionLoss)

// ErrClosed is returned when the client is closed, ErrNotStarted before its start.
var (
	ErrClosed     = errtext.ErrClosed
	ErrNotStarted = errtext.ErrNotStarted
)

// ErrUncertain is a lost connection that leaves open whether a write has taken effect.
var ErrUncertain = jute.ErrUncertain

// uncertain joins ErrUncertain to err.
func (e *Executor) uncertain(err error) error {
	if errors.Is(err, jute.ErrConnectionLoss) { // ErrUncertain matches it too, and says more
		return e.explain(ErrUncertain)
	}
	return errtext.Join(ErrUncertain, err)
}

// write says whether the request in flight is a write, and what follows if its answer is lost.
type write uint8

const (
	unmarked write = iota // not a write: another attempt, if the retry policy allows it
	repeated              // a repeatable write: another attempt, and errors are uncertain from then on
	once                  // any other write: the operation fails
)

// isLost reports whether err means that a request was sent and got no answer.
func isLost(err error) bool {
	code, ok := jute.CodeOf(err)
	return ok && code.Class() == jute.Passing && code.LeavesOpen()
}

// answerError is an error of a protocol that replaces the server's answer.
type answerError interface{ IsAnswer() }

// IsPassing reports whether another attempt may succeed after err. Guaranteed operations are retried then.
func IsPassing(err error) bool { return IsIndefinite(err) || jute.IsPassing(err) }

// IsIndefinite reports whether err leaves the effect of the operation open: every error but an answer of the server.
func IsIndefinite(err error) bool {
	if err == nil {
		return false
	}
	code, ok := jute.CodeOf(err)
	if _, answered := err.(answerError); answered && !ok {
		return false
	}
	return !ok || code.LeavesOpen()
}
