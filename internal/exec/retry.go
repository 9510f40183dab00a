package exec

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/usercode"
)

// sinceStarter is a Policy whose schedules depend on the start of the operation.
type sinceStarter interface {
	NewBackOffSince(start time.Time) backoff.BackOff
}

// NewSchedule returns the schedule of p for an operation that began at start.
func NewSchedule(p Policy, start time.Time) backoff.BackOff {
	if p, ok := p.(sinceStarter); ok {
		return p.NewBackOffSince(start)
	}
	return p.NewBackOff()
}

// detachedPause is the pause of a detached operation between two rounds of the retry policy.
const detachedPause = time.Second

// question is the input of the retry policy for an operation.
type question struct {
	err       error
	retryable bool // err may be retried: the policy returns only the pause
	final     bool // no attempt follows: the policy returns only whether err may be retried
	detached  bool
	// keepsPlace means that later operations wait behind the next attempt. It is not set for an error of the node that
	// only the policy retries: what it waits for may be one of these operations.
	keepsPlace bool
	started    time.Time
	schedule   backoff.BackOff // nil before the first pause
}

// verdict is the decision of the retry policy about a failure.
type verdict struct {
	retry    bool          // the failure may be retried
	pause    time.Duration // the pause before the next attempt; backoff.Stop means none follows
	schedule backoff.BackOff
	err      error // set if the policy panics or ends its goroutine
}

// retry begins another attempt of op after the pause of the policy, or ends op with err, a failure that may be retried.
func (e *Executor) retry(op *Operation, err error) {
	e.consult(op, err, true)
}

// failed handles an answer that is an error: another attempt, or the next step of op.
func (e *Executor) failed(op *Operation, err error) { e.consult(op, err, false) }

// consult calls the policy for err: on this goroutine if the policy is prompt, otherwise on another one. retryable
// means that err may be retried, so that the policy returns only the pause.
func (e *Executor) consult(op *Operation, err error, retryable bool) {
	if retryable && (op.single || op.isAbandoned()) {
		op.state.gaveUp = true
		op.Finish(err)
		return
	}
	q := question{
		err: err, retryable: retryable, final: op.single || op.isAbandoned(), detached: op.Detached,
		started: e.at(op.started), schedule: op.state.schedule,
		keepsPlace: !op.unordered && IsPassing(err) && !op.isAbandoned() && !op.wire.EndsConnections(),
	}
	if op.wire.EndsConnections() { // what is sent behind it is lost with it: all that waits goes first
		if op.waiting.inLine {
			e.giveUpPlace(op)
		}
		op.waiting.number = math.MaxInt64
	}
	if e.prompt {
		e.apply(op, q, e.call(q))
		return
	}
	d := &decision{op: op, question: q}
	e.mu.Lock()
	if e.state == closed {
		e.mu.Unlock()
		op.continueClosed(d)
		return
	}
	if q.keepsPlace {
		e.enter(op, deciding)
	}
	e.decisions.push(e, d)
	e.mu.Unlock()
}

// continueClosed continues op after the close of the client without a call of the policy, as no attempt follows.
func (op *Operation) continueClosed(d *decision) {
	switch {
	case d.ended:
		op.ex.deliver((*delivery)(op))
	case d.retryable || IsIndefinite(d.err):
		op.Finish(ErrClosed)
	default:
		op.resume()
	}
}

// deliverBehind delivers op, which has ended, after the operations that ended before it and wait for the policy. It
// returns false if there are none: op is not delivered then.
func (e *Executor) deliverBehind(op *Operation) bool {
	if e.prompt || op.state.decided {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.decisions.turn == 0 || e.state == closed {
		return false
	}
	e.decisions.push(e, &decision{op: op, ended: true})
	return true
}

// call calls the policy, which may be code of the program. It does not use the operation, which may end meanwhile.
func (e *Executor) call(q question) (v verdict) {
	v.schedule, v.pause = q.schedule, backoff.Stop
	v.retry = q.retryable || e.policy.Retryable(q.err) || q.detached && IsPassing(q.err)
	if !v.retry || q.final {
		return v
	}
	if v.schedule == nil {
		v.schedule = NewSchedule(e.policy, q.started)
	}
	v.pause = v.schedule.NextBackOff()
	return v
}

// apply applies the verdict of the policy to op.
func (e *Executor) apply(op *Operation, q question, v verdict) {
	err := q.err
	op.state.schedule = v.schedule
	switch {
	case v.err != nil:
		op.state.gaveUp = true
		op.Finish(errtext.Join(err, v.err))
		return
	case !v.retry:
		e.resumeAttempt(op)
		op.resume()
		return
	case op.single || op.isAbandoned():
		op.state.gaveUp = true
		op.Finish(err)
		return
	case v.pause == backoff.Stop && op.Detached:
		op.state.schedule, v.pause = nil, detachedPause
	case v.pause == backoff.Stop:
		op.note(func(r *telemetry.Record) { r.GivenUp(err) })
		op.state.gaveUp = true
		op.Finish(err)
		return
	}
	op.note(func(r *telemetry.Record) { r.Retry(err, v.pause) })
	e.sleep(op, v.pause, q.keepsPlace)
}

// resumeAttempt lets the others go on when op, about which the policy has decided, goes on with its attempt.
func (e *Executor) resumeAttempt(op *Operation) {
	if e.prompt || !op.waiting.inLine {
		return
	}
	e.mu.Lock()
	e.beginAttempt(op)
	e.mu.Unlock()
	if !op.waiting.inLine {
		e.recheck(e.conn())
	}
}

// decision is a call of a policy of the program. If the call blocks or panics, only its own operation suffers.
type decision struct {
	op *Operation
	question
	ended    bool // op has ended and waits only for its turn: the policy is not called
	answered bool // the policy has returned, or the decision was taken back: the memory of op may be reused
}

// decisions calls the policy for one operation at a time, in order, on a goroutine that ends when there are none. A
// call that takes too long keeps its goroutine, and another goroutine continues with the others. Executor.mu guards it.
type decisions struct {
	queue   []*decision
	running []*decision
	turn    int            // number of the goroutine that takes from queue; 0 means none
	turns   int            // number of goroutines started so far
	wg      sync.WaitGroup // waits for the goroutines
}

const slowDecision = 10 * time.Millisecond

func (ds *decisions) push(e *Executor, d *decision) {
	ds.queue = append(ds.queue, d)
	if ds.turn == 0 {
		ds.begin(e)
	}
}

// begin starts a goroutine that takes from the queue.
func (ds *decisions) begin(e *Executor) {
	ds.turns++
	ds.turn = ds.turns
	turn := ds.turn
	ds.wg.Go(func() { e.decide(turn) })
}

// takeAll takes all decisions back.
func (ds *decisions) takeAll() []*decision {
	all := append(ds.running, ds.queue...)
	for _, d := range all {
		d.answered = true
	}
	ds.running, ds.queue = nil, nil
	return all
}

// take returns the next decision if it is the turn of this goroutine, and nil otherwise. Without a decision it ends the
// turn.
func (e *Executor) take(turn int) *decision {
	e.mu.Lock()
	defer e.mu.Unlock()
	ds := &e.decisions
	if ds.turn == turn && len(ds.queue) > 0 {
		d := ds.queue[0]
		ds.queue[0], ds.queue = nil, ds.queue[1:]
		if !d.ended {
			ds.running = append(ds.running, d)
		}
		return d
	}
	if ds.turn == turn {
		ds.turn = 0
	}
	return nil
}

// pass gives the turn to another goroutine if turn still has it.
func (e *Executor) pass(turn int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ds := &e.decisions
	if ds.turn != turn {
		return
	}
	ds.turn = 0
	if len(ds.queue) > 0 {
		ds.begin(e)
	}
}

// decide calls the policy until no decision is left, or until another goroutine has taken over.
func (e *Executor) decide(turn int) {
	for d := e.take(turn); d != nil; d = e.take(turn) {
		if d.ended {
			e.deliver((*delivery)(d.op))
		} else {
			e.decideOne(d, turn)
		}
	}
}

func (e *Executor) decideOne(d *decision, turn int) {
	slow := time.AfterFunc(slowDecision, func() {
		e.pass(turn)
		e.passOver(d)
	})
	returned := false
	v := verdict{err: errPolicyExited}
	defer func() {
		slow.Stop()
		if !returned { // the policy has ended its goroutine
			defer e.pass(turn)
		}
		e.mu.Lock()
		e.decisions.running = slices.DeleteFunc(e.decisions.running, func(o *decision) bool { return o == d })
		wanted := !d.answered
		d.answered = true
		e.mu.Unlock()
		if wanted {
			d.op.state.decided = true
			e.apply(d.op, d.question, v)
		}
	}()
	if err := usercode.Call("the retry policy", func() { v = e.call(d.question) }); err != nil {
		v.err = err
	}
	returned = true
}

// errPolicyExited is the error of an operation whose retry policy ends its goroutine.
var errPolicyExited = usercode.Exited("the retry policy")
