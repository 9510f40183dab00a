package exec

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/gocurator/curator/internal/telemetry"
)

// sinceStarter is a Policy whose schedules depend on when the operation began.
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
	retryable bool // only the pause is open
	final     bool // there will be no other attempt: only whether there might be one is open
	detached  bool
	started   time.Time
	schedule  backoff.BackOff // nil before the first pause
}

// verdict is the decision of the retry policy about a failure.
type verdict struct {
	retry    bool // the failure may be tried again
	pause    time.Duration
	schedule backoff.BackOff
	panic    any // of the policy
}

// retry begins another attempt of op after the pause of the policy, or ends op with err, a failure that may be tried
// again.
func (e *Executor) retry(op *Operation, err error) {
	e.consult(op, err, true)
}

// failed takes an answer that is an error: another attempt, or the next step of op.
func (e *Executor) failed(op *Operation, err error) { e.consult(op, err, false) }

// consult calls the policy for err: in place if the policy answers at once, else on another goroutine. retryable says
// that only the pause is open.
func (e *Executor) consult(op *Operation, err error, retryable bool) {
	if retryable && (op.single || op.isAbandoned()) {
		op.gaveUp = true
		op.Finish(err)
		return
	}
	q := question{
		err: err, retryable: retryable, final: op.single || op.isAbandoned(), detached: op.Detached,
		started: e.at(op.started), schedule: op.schedule,
	}
	if e.prompt {
		e.judge(op, err, e.ask(q))
		return
	}
	d := &decision{op: op, question: q}
	e.mu.Lock()
	if e.state == closed {
		e.mu.Unlock()
		op.unasked(d)
		return
	}
	e.decisions.push(e, d)
	e.mu.Unlock()
}

// unasked goes on with op, whose client is closed, without an answer to the question: there is no other attempt.
func (op *Operation) unasked(d *decision) {
	switch {
	case d.ended:
		op.ex.deliver((*delivery)(op))
	case d.retryable || IsIndefinite(d.err):
		op.Finish(ErrClosed)
	default:
		op.goOn()
	}
}

// deliverBehind delivers op, which has ended, behind the operations that ended before it and about which the policy is
// being asked. It reports whether there are any.
func (e *Executor) deliverBehind(op *Operation) bool {
	if e.prompt || op.decided {
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

// ask runs code of the program, unless the policy is prompt. It leaves the operation alone, which may have been taken
// back meanwhile.
func (e *Executor) ask(q question) (v verdict) {
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

// judge does with op what the policy said.
func (e *Executor) judge(op *Operation, err error, v verdict) {
	op.schedule = v.schedule
	switch {
	case v.panic != nil:
		op.gaveUp = true
		op.Finish(fmt.Errorf("%w (the retry policy panicked: %v)", err, v.panic))
		return
	case !v.retry:
		op.goOn()
		return
	case op.single || op.isAbandoned():
		op.gaveUp = true
		op.Finish(err)
		return
	case v.pause == backoff.Stop && op.Detached:
		op.schedule, v.pause = nil, detachedPause
	case v.pause == backoff.Stop:
		op.note(func(r *telemetry.Record) { r.GivenUp(err) })
		op.gaveUp = true
		op.Finish(err)
		return
	}
	op.note(func(r *telemetry.Record) { r.Retry(err, v.pause) })
	e.sleep(op, v.pause)
}

// decision is a question to a policy of the program, which may block or panic: that costs its own operation only.
type decision struct {
	op *Operation
	question
	ended    bool // there is no question: op is delivered behind those before it
	answered bool // or taken back: op may serve another call
}

// decisions asks one question at a time, in order, on a goroutine that ends when there are none. A question that is not
// answered for a while keeps its goroutine, and the others go on with another. It is guarded by Executor.mu.
type decisions struct {
	queue   []*decision
	running []*decision
	turn    int // of the goroutine that takes from queue; 0 if there is none
	turns   int
	wg      sync.WaitGroup // of the goroutines
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

// takeAll takes all questions back.
func (ds *decisions) takeAll() []*decision {
	all := append(ds.running, ds.queue...)
	for _, d := range all {
		d.answered = true
	}
	ds.running, ds.queue = nil, nil
	return all
}

// take returns the next question of the goroutine whose turn it is, or ends the turn.
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

// pass gives the turn to another goroutine if it still is that of turn.
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

// decide asks the policy until there is no question left, or until another goroutine has taken over.
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
	slow := time.AfterFunc(slowDecision, func() { e.pass(turn) })
	returned := false
	var v verdict
	defer func() {
		slow.Stop()
		if p := recover(); p != nil {
			v.panic = p
		} else if !returned { // the policy has ended its goroutine
			v.panic = "runtime.Goexit"
			defer e.pass(turn)
		}
		e.mu.Lock()
		e.decisions.running = slices.DeleteFunc(e.decisions.running, func(o *decision) bool { return o == d })
		wanted := !d.answered
		d.answered = true
		e.mu.Unlock()
		if wanted {
			d.op.decided = true
			e.judge(d.op, d.err, v)
		}
	}()
	v = e.ask(d.question)
	returned = true
}
