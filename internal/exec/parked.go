package exec

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/wire"
)

// waitReason is the reason why an operation waits.
type waitReason uint8

const (
	awake    waitReason = iota // it does not wait
	parked                     // it waits for a connection
	sleeping                   // it waits for the end of the pause before a retry
)

// parkedList is a list of operations in order, from which each can be removed.
type parkedList struct {
	first, last *Operation
	n           int
}

// insert puts op behind after, or first if after is nil.
func (l *parkedList) insert(after, op *Operation) {
	before := l.first
	if after != nil {
		before = after.waiting.after
		after.waiting.after = op
	} else {
		l.first = op
	}
	if before != nil {
		before.waiting.before = op
	} else {
		l.last = op
	}
	op.waiting.has, op.waiting.reason, op.waiting.before, op.waiting.after = true, parked, after, before
	l.n++
}

func (l *parkedList) remove(op *Operation) {
	if op.waiting.before != nil {
		op.waiting.before.waiting.after = op.waiting.after
	} else {
		l.first = op.waiting.after
	}
	if op.waiting.after != nil {
		op.waiting.after.waiting.before = op.waiting.before
	} else {
		l.last = op.waiting.before
	}
	op.waiting.reason, op.waiting.before, op.waiting.after = awake, nil, nil
	l.n--
}

func (l *parkedList) takeAll() (all []*Operation) {
	for op := l.first; op != nil; op = l.first {
		l.remove(op)
		all = append(all, op)
	}
	return all
}

// park makes op wait for a connection, for as long as the connection timeout since its start. If it has waited that
// long before, it fails at once: an operation waits once, not at each attempt.
func (e *Executor) park(op *Operation) {
	e.mu.Lock()
	if e.state == closed {
		e.mu.Unlock()
		op.Finish(ErrClosed)
		return
	}
	conn, waitedFor := e.conn(), !op.background
	if !e.mayPark(op) && !e.outlived(op, conn) {
		e.mu.Unlock()
		e.retry(op, op.loss())
		return
	}
	e.beginWait(op)
	e.parkBehind(e.parked.last, op)
	e.mu.Unlock()
	if waitedFor {
		e.finishAbandoned(op)
	}
	e.recheck(conn) // the connection may have come before op was parked
}

// mayPark reports whether op may wait for a connection: its time for that is not over.
func (e *Executor) mayPark(op *Operation) bool {
	return op.Detached || !op.single && op.waiting.since+int64(e.connectTimeout) > e.now()
}

// parkBehind parks op behind after, or first if after is nil. mu is held.
func (e *Executor) parkBehind(after, op *Operation) {
	e.parked.insert(after, op)
	e.holding.Store(true)
	if !op.Detached {
		e.timers.add(e, op, op.waiting.since+int64(e.connectTimeout))
	}
}

// finishAbandoned finishes op, which has just begun to wait, if its caller gave up before op was in the list. op is a
// foreground operation: a background operation has no caller, and its memory may be reused by now.
func (e *Executor) finishAbandoned(op *Operation) {
	if op.isAbandoned() && e.takeBack(op) {
		op.Finish(op.caller.abandoned.cause)
	}
}

// Unsent takes back operations that a connection had accepted and not sent when it ended. They go to the front of the
// parked ones. Their wait for a connection begins now.
func (e *Executor) Unsent(requests []*wire.Request) {
	var failed []*Operation
	var last *Operation
	e.mu.Lock()
	now := e.now()
	stopped := e.state == closed
	withCaller := make([]*Operation, 0, len(requests))
	for _, r := range requests {
		op, ok := r.Handler.(*Operation)
		if !ok {
			continue
		}
		op.waiting.has, op.waiting.since = true, now
		if stopped || !e.mayPark(op) {
			failed = append(failed, op)
			continue
		}
		e.beginWait(op)
		e.parkBehind(last, op)
		last = op
		if !op.background {
			withCaller = append(withCaller, op)
		}
	}
	e.mu.Unlock()
	for _, op := range withCaller {
		e.finishAbandoned(op)
	}
	for _, op := range failed {
		if stopped {
			op.Finish(ErrClosed)
		} else {
			e.retry(op, op.loss())
		}
	}
	e.recheck(e.conn()) // the next session may have come before
}

// recheck sends the parked operations if conn accepts them, and fails them if no session will follow.
func (e *Executor) recheck(conn *wire.Conn) {
	if conn != nil && (conn.IsConnected() || conn.Refusal() != nil) {
		e.Connected()
	}
}

// Connected sends the parked operations, in order, before all others. It is called when a connection stands, and when
// the servers refuse the credentials or the login: then it fails the parked operations. One goroutine at a time does
// this, or begins the next attempts in wake: two would finish operations, which happens without mu, out of order. A
// second call makes the first one go through the list again, and returns at once.
func (e *Executor) Connected() {
	e.mu.Lock()
	if e.waking {
		e.again = true
		e.mu.Unlock()
		return
	}
	e.waking = true
	for {
		e.again = false
		over := e.takeOver()
		e.mu.Unlock()
		for _, o := range over {
			o.op.Finish(o.err)
		}
		e.mu.Lock()
		for more := true; more; {
			var ended *Operation
			var err error
			ended, err, more = e.sendFirst()
			e.mu.Unlock() // operations that come meanwhile park behind
			if ended != nil {
				ended.Finish(err)
			}
			e.mu.Lock()
		}
		if !e.again {
			break
		}
	}
	e.waking = false
	if e.woken {
		e.woken = false
		e.timers.setAgain(e)
	}
	e.mu.Unlock()
}

// overOp is an operation that can never be sent, with the reason.
type overOp struct {
	op  *Operation
	err error
}

// takeOver removes the operations that can never be sent from those that wait for a connection or a retry, and returns
// them in the order in which they began. These are the operations of a session that has ended, if they may not continue
// in the next one, and all operations if the servers refuse the credentials. It does this once for each session, and
// always after a refusal. mu is held.
func (e *Executor) takeOver() (over []overOp) {
	conn := e.conn()
	if conn == nil {
		return nil
	}
	refusal := conn.Refusal()
	if e.swept == conn && refusal == nil {
		return nil
	}
	e.swept = conn
	take := func(op *Operation) {
		switch {
		case op.isAbandoned():
			over = append(over, overOp{op, op.caller.abandoned.cause})
		case e.outlived(op, conn):
			over = append(over, overOp{op, zk.ErrSessionExpired})
		case refusal != nil:
			if err := op.refusal(conn, refusal); err != nil {
				over = append(over, overOp{op, err})
			}
		}
	}
	for op := e.parked.first; op != nil; op = op.waiting.after {
		take(op)
	}
	for _, entry := range e.timers.queue {
		if entry.op.waiting.reason == sleeping {
			take(entry.op)
		}
	}
	for _, o := range over {
		e.removeWaiting(o.op)
	}
	slices.SortStableFunc(over, func(a, b overOp) int { return cmp.Compare(a.op.started, b.op.started) })
	return over
}

// sendFirst sends the first parked operation. If that operation can not be sent any more, it returns it with its error.
// more is false if no operation is parked, or if the connection accepts none. mu is held.
func (e *Executor) sendFirst() (ended *Operation, err error, more bool) { //nolint:revive // err belongs to ended
	op, conn := e.parked.first, e.conn()
	switch {
	case op == nil:
		e.holding.Store(false)
		return nil, nil, false
	case op.isAbandoned(): // its request refers to the caller's memory
		e.unpark(op)
		return op, op.caller.abandoned.cause, true
	case conn == nil:
		return nil, nil, false
	case e.outlived(op, conn):
		e.unpark(op)
		return op, zk.ErrSessionExpired, true
	}
	before := op.state.on
	op.sendOn(conn)
	undo := e.endWait(op)
	e.unpark(op) // before the answer can come
	// Submit under the lock: operations that come meanwhile park behind op.
	err = conn.Submit(&op.wire, false)
	if err == nil {
		return nil, nil, true
	}
	op.state.on = before
	if errors.Is(err, zk.ErrAuthFailed) {
		if err = op.refusal(conn, err); err != nil {
			return op, err, true
		}
	}
	undo()
	e.parkBehind(nil, op)
	return nil, nil, false
}

// unpark removes op from the parked operations. mu is held.
func (e *Executor) unpark(op *Operation) {
	e.parked.remove(op)
	e.timers.remove(op)
}

// takeBack removes op if it waits for a connection or a retry, and reports whether it did.
func (e *Executor) takeBack(op *Operation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.removeWaiting(op)
}

// removeWaiting is takeBack with mu held.
func (e *Executor) removeWaiting(op *Operation) bool {
	switch op.waiting.reason {
	case parked:
		e.unpark(op)
	case sleeping:
		e.timers.remove(op)
		op.waiting.reason = awake
	default:
		return false
	}
	return true
}

// overdue handles the end of op's time: it ends a wait for a connection, or begins the next attempt after a pause.
func (e *Executor) overdue(op *Operation, was waitReason) {
	switch {
	case was == parked && e.outlived(op, e.conn()):
		op.Finish(zk.ErrSessionExpired)
	case was == parked:
		e.retry(op, op.loss())
	case op.isAbandoned():
		op.Finish(op.caller.abandoned.cause)
	default:
		op.begin()
	}
}

// sleep begins another attempt of op after a pause.
func (e *Executor) sleep(op *Operation, pause time.Duration) {
	e.mu.Lock()
	if e.state == closed {
		e.mu.Unlock()
		op.Finish(ErrClosed)
		return
	}
	op.waiting.has, op.waiting.reason = true, sleeping
	// Even a pause of 0 uses the timer: an attempt that fails at once must not recurse.
	e.timers.add(e, op, e.now()+int64(pause))
	waitedFor := !op.background
	e.mu.Unlock()
	if waitedFor {
		e.finishAbandoned(op)
	}
}
