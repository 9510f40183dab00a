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
	// Run delivers the result of a background operation to its callback, on the dispatcher.
	Run()
}

// Cleaner is a Protocol that may leave nodes behind.
type Cleaner interface {
	// CleanUp is called when the operation has failed with err, and with nil when it has succeeded after its caller had
	// given up. [Operation.Sent] reports whether there is anything to clean up.
	CleanUp(err error)
}

// Recycler is a Protocol whose memory is reused after the delivery of its result: nothing refers to it then.
type Recycler interface{ Recycle() }

// Described is a Protocol that telemetry records.
type Described interface {
	// Describe returns the description for telemetry. Operations without a name are not recorded.
	Describe() telemetry.Operation
}

// Operation is one call of a builder from start to result: a chain of requests, each of which follows from the last
// answer. The zero value with Protocol set is ready for [Executor.Do] or [Executor.Go].
type Operation struct {
	// Request is the one in flight, or just answered.
	wire.Request
	// Protocol decides which requests are sent.
	Protocol Protocol
	// Detached operations are clean-ups without a receiver. They wait for a connection without a limit, and are retried
	// until they succeed or the client is closed.
	Detached bool

	// Internal operations are the client's own: they do not count against its limit.
	Internal bool

	background bool
	inline     bool        // the caller waits and may write the first request by itself
	single     bool        // an outer loop retries
	observed   bool        // by telemetry
	waited     atomic.Bool // a caller waits, and records the end
	gaveUp     bool        // it failed with an error that may be retried
	decided    bool        // by the policy, about its last answer
	write      write
	uncertain  bool // the answer to a write was lost
	place      place
	attempts   atomic.Int32
	state      atomic.Int32
	timer      int32 // its place in the heap of timers, counted from 1

	ex            *Executor
	ctx           context.Context
	next          func()
	started       int64      // ns since Executor.epoch
	since         int64      // the beginning of its wait for a connection
	ended         int64      // if it is observed
	conn          *wire.Conn // of the session that it began in, nil before the first
	on            *wire.Conn // that has the request in flight
	schedule      backoff.BackOff
	before, after *Operation  // while it is parked
	lazy          *lazyRecord // nil if it is not observed
	err           error

	// Of an operation with a waiting caller.
	gate  sync.Mutex // the caller does not leave while its memory is being encoded
	cause error      // the reason why it was abandoned
	done  chan struct{}
}

const (
	running int32 = iota
	finished
	abandoned // the caller has stopped waiting
)

// Context returns the context of the call, in the span of op if it has one. A background operation continues after its
// end.
func (op *Operation) Context() context.Context {
	if r := op.lazy.made(); r != nil {
		return r.Context()
	}
	return op.ctx
}

// recorded returns the record of op, nil if it is not recorded. It is made at its first use, which is never on the
// reader, because a span processor may block: see note. The record of a foreground operation is made while its request
// is in flight.
func (op *Operation) recorded() *telemetry.Record {
	if !op.observed {
		return nil
	}
	return op.lazy.make(op)
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
	return op.ex.telemetry.Begin(op.ctx, &op.lazy.memory, what, op.background, op.ex.at(op.started))
}

// note adds a note to the record of op, now or when it is made.
func (op *Operation) note(in func(r *telemetry.Record)) {
	if op.observed {
		op.lazy.note(in)
	}
}

// isRecordedAtOnce reports whether the record of op is made before its first request: for its times, or for the
// context. A detached operation may begin on the goroutine that reads the connection.
func (op *Operation) isRecordedAtOnce() bool {
	if !op.observed || op.Detached {
		return false
	}
	return op.background || op.ex.telemetry.RequestSpans() || op.ex.telemetry.WatchSpans()
}

// recordEnd records the end of op. A second call waits for the first.
func (op *Operation) recordEnd() {
	if op.observed {
		op.lazy.ended.Do(op.endRecord)
	}
}

func (op *Operation) endRecord() {
	if r := op.recorded(); r != nil {
		r.End(op.ex.at(op.ended), op.facts())
	}
}

// recordEndUnlessWaited records the end of op if no caller waits for it: a caller may never wait.
func (op *Operation) recordEndUnlessWaited() {
	if op.observed && !op.waited.Load() {
		op.ex.telemetry.Later(op.recordEnd)
	}
}

// Attempts returns how many attempts were begun.
func (op *Operation) Attempts() int { return int(op.attempts.Load()) }

// Sent reports whether anything was ever sent.
func (op *Operation) Sent() bool { return op.WasSent() }

// GaveUp reports whether op failed with an error that may be retried.
func (op *Operation) GaveUp() bool { return op.gaveUp }

// loss returns the error of an attempt without a connection.
func (op *Operation) loss() error {
	if op.WasSent() {
		return op.ex.explain(jute.ErrConnectionLoss)
	}
	return op.ex.explain(ErrNotSent)
}

// Result returns the error of the finished operation.
func (op *Operation) Result() error { return op.err }

// Executor returns the executor of op.
func (op *Operation) Executor() *Executor { return op.ex }

// Background reports whether op has no waiting caller.
func (op *Operation) Background() bool { return op.background }

// Replier is a Protocol that handles the answer to a request that is sent without a function.
type Replier interface{ Replied() }

// Send sends op.Request behind all earlier requests. next handles the answer, or Replied of the Protocol if it is nil.
// A failure that may be retried ends the attempt instead.
func (op *Operation) Send(next func()) {
	op.next, op.write = next, unmarked
	op.ex.send(op)
}

// SendWrite is Send for a write. If its answer is lost, an error of the operation is [ErrUncertain], and only a
// repeatable write is retried.
func (op *Operation) SendWrite(repeatable bool, next func()) {
	op.next, op.write = next, once
	if repeatable {
		op.write = repeated
	}
	op.ex.send(op)
}

// SetUncertain sets whether an error of op leaves the effect of its writes open. A protocol clears it when it has found
// out the effect. It sets it after a write if a further request follows, whose failure must not look as if nothing was
// written.
func (op *Operation) SetUncertain(uncertain bool) { op.uncertain = uncertain }

// AnsweredIn returns the id of the session in which the last answer came.
func (op *Operation) AnsweredIn() int64 { return op.on.SessionID() }

// noteRequest records the answered request.
func (op *Operation) noteRequest() {
	if !op.observed || op.on == nil {
		return
	}
	if op.background && op.lazy.sent.IsZero() {
		op.lazy.sent = op.on.SentAt(&op.Request)
	}
	if !op.ex.telemetry.RequestSpans() || !op.Detached && op.lazy.made() == nil {
		return
	}
	name, sent, now, err := op.Request.Op.String(), op.on.SentAt(&op.Request), time.Now(), op.Request.Err
	op.note(func(r *telemetry.Record) { r.Request(name, sent, now, err) })
}

// Answered continues op. It runs on the goroutine that reads the connection.
func (op *Operation) Answered(*wire.Request) {
	op.noteRequest()
	err := op.Request.Err
	if op.write != unmarked && isLost(err) {
		op.uncertain = true
		if op.write == once {
			op.note(func(r *telemetry.Record) { r.GivenUp(err) })
			op.gaveUp = true
			op.Finish(err)
			return
		}
	}
	if err != nil {
		op.ex.failed(op, err)
		return
	}
	op.goOn()
}

// goOn takes the next step.
func (op *Operation) goOn() {
	if op.next == nil {
		op.Protocol.(Replier).Replied()
		return
	}
	op.next()
}

// Finish ends op. The memory of a background operation may be reused when Finish returns.
func (op *Operation) Finish(err error) {
	e := op.ex
	if err != nil && op.uncertain {
		err = e.uncertain(err)
	}
	op.err = err
	late := !op.state.CompareAndSwap(running, finished)
	if op.observed {
		op.ended = e.now()
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
		e.pending.left()
	default:
		op.recordEndUnlessWaited()
		close(op.done)
		e.pending.left()
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
		p.left()
	}()
	(*Operation)(d).endRecord() // before the callback, whose span is its child
	protocol := d.Protocol
	protocol.Run()
	if r, ok := protocol.(Recycler); ok { // not behind a callback that ends its goroutine
		r.Recycle()
	}
}

// facts returns the facts of op's end for telemetry.
func (op *Operation) facts() telemetry.Facts {
	f := telemetry.Facts{Err: op.err, Children: -1, Server: op.Request.Server()}
	f.Unsent = op.single && errors.Is(op.err, ErrNotSent)
	f.Sent = op.lazy.sent
	if len(op.lazy.waits) > 0 {
		f.Waits = op.ex.waitsOf(op)
	}
	f.RequestSize, f.ResponseSize = op.Sizes()
	f.Watch = op.Request.Watcher != nil && op.Op != jute.OpRemoveWatches
	if op.WasSent() && op.on != nil {
		f.Session = op.on.SessionID()
	}
	if op.Request.Err != nil {
		return f
	}
	if op.Op == jute.OpGetChildren || op.Op == jute.OpGetChildren2 {
		f.Children = len(op.Reply.Children)
	}
	if op.ex.telemetry.HasDriver() && op.Reply.Stat != (zk.Stat{}) { // only a driver uses it
		stat := op.Reply.Stat
		f.Stat = &stat
	}
	return f
}

// Done returns a channel that is closed when an operation with a waiting caller has finished, or the caller has given
// up.
func (op *Operation) Done() <-chan struct{} { return op.done }

// abandon records that the caller has given up, with the reason. It returns false if op has finished or was abandoned
// before.
func (op *Operation) abandon(cause error) bool {
	op.gate.Lock()
	defer op.gate.Unlock()
	if op.isAbandoned() {
		return false
	}
	op.cause = cause
	return op.state.CompareAndSwap(running, abandoned)
}

// outcome records the end of op and returns the error for its caller.
func (op *Operation) outcome() error {
	if op.isAbandoned() {
		return op.cause
	}
	op.recordEnd()
	return op.err
}

func (op *Operation) isAbandoned() bool { return op.state.Load() == abandoned }

// Root is the context of the client's own work: clean-ups, and work behind the listeners.
var Root = context.Background() //nolint:forbidigo // the one root

type singleAttemptKey struct{}

type unboundedKey struct{}

// WithoutBound returns a context whose operations do not count against the limit of the client: they are the client's
// own.
func WithoutBound(ctx context.Context) context.Context {
	return context.WithValue(ctx, unboundedKey{}, true)
}

// WithSingleAttempt returns a context whose operations are tried once: the loop around them retries.
func WithSingleAttempt(ctx context.Context) context.Context {
	return context.WithValue(ctx, singleAttemptKey{}, (*wire.Flight)(nil))
}

// WithFlight returns a context whose operations are tried once, on one connection.
func WithFlight(ctx context.Context) context.Context {
	return context.WithValue(ctx, singleAttemptKey{}, new(wire.Flight))
}

// WithRetries returns a context whose operations are retried each.
func WithRetries(ctx context.Context) context.Context {
	if !IsSingleAttempt(ctx) {
		return ctx
	}
	return context.WithValue(ctx, singleAttemptKey{}, nil)
}

type unfencedKey struct{}

// Unfenced returns a context whose writes a fenced client sends without its fence. It is for the removal of our own
// nodes, which would otherwise stay as long as the session.
func Unfenced(ctx context.Context) context.Context {
	return context.WithValue(ctx, unfencedKey{}, true)
}

// IsUnfenced reports whether ctx is from Unfenced.
func IsUnfenced(ctx context.Context) bool { return ctx.Value(unfencedKey{}) != nil }

// Detach returns a context for cleaning up after an operation of ctx: in its trace, but without its end and bounds.
func Detach(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), singleAttemptKey{}, nil)
}

// IsSingleAttempt reports whether an outer loop retries the operations of ctx.
func IsSingleAttempt(ctx context.Context) bool { return ctx.Value(singleAttemptKey{}) != nil }

// ErrNotSent is a lost connection that leaves nothing open: nothing was sent.
var ErrNotSent = fmt.Errorf("%w before it was sent", jute.ErrConnectionLoss)

// ErrClosed is returned when the client is closed, ErrNotStarted before its start.
var (
	ErrClosed     error = telemetry.Closed("curator: client is closed")
	ErrNotStarted       = errors.New("curator: client is not started")
)

// ErrUncertain is a lost connection that leaves open whether a write has taken effect.
var ErrUncertain = jute.ErrUncertain

// uncertain joins ErrUncertain to err.
func (e *Executor) uncertain(err error) error {
	if errors.Is(err, jute.ErrConnectionLoss) { // which is less exact
		return e.explain(ErrUncertain)
	}
	return errtext.Join(ErrUncertain, err)
}

// write is the consequence of a lost answer to the request in flight.
type write uint8

const (
	unmarked write = iota // another attempt, if the retry policy allows it
	repeated              // the same, and the loss is remembered
	once                  // the end of the operation
)

// isLost reports whether err means that a request was sent and got no answer.
func isLost(err error) bool {
	code, ok := jute.CodeOf(err)
	return ok && (code == jute.CodeConnectionLoss || code == jute.CodeOperationTimeout)
}

// answer is an error of a protocol that replaces the server's answer.
type answer interface{ IsAnswer() }

// IsPassing reports whether another try may succeed after err: guaranteed operations are retried then.
func IsPassing(err error) bool { return IsIndefinite(err) || errors.Is(err, jute.ErrThrottledOp) }

// IsIndefinite reports whether err leaves the effect of the operation open: every error but an answer of the server.
func IsIndefinite(err error) bool {
	if err == nil {
		return false
	}
	code, ok := jute.CodeOf(err)
	if _, answered := err.(answer); answered && !ok {
		return false
	}
	return !ok || code == jute.CodeConnectionLoss || code == jute.CodeOperationTimeout ||
		code == jute.CodeSessionExpired || code == jute.CodeSessionMoved
}
