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
	parked                     // it waits for a connection, or behind the retry of an older operation
	sleeping                   // it waits for the end of the pause before a retry; without a timer the pause is over
	deciding                   // the retry policy decides about it
	retrying                   // its next attempt has begun, and later operations wait for the end of that
	starting                   // its next attempt has begun without a connection, for which it waits in its place
)

// isUnderWay reports whether an operation of the line has begun its next attempt.
func (r waitReason) isUnderWay() bool { return r == retrying || r == starting }

// line is a list of operations in the order in which they were accepted. Each can be removed.
type line struct {
	first, last *Operation
	latest      *Operation // inserted last before others: the next one often goes behind it
	scanned     *Operation // all before it keep the order
	n           int
	retries     int // number of operations that do not wait for a connection
	unordered   int // number of operations that do not keep the order
}

// insert puts op in its place.
func (l *line) insert(op *Operation, reason waitReason) {
	after := l.last
	if l.latest != nil && after.waiting.number > op.waiting.number {
		after = l.latest
	}
	for after != nil && after.waiting.number > op.waiting.number {
		after = after.waiting.before
	}
	for after != nil && after.waiting.after != nil && after.waiting.after.waiting.number < op.waiting.number {
		after = after.waiting.after
	}
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
	op.waiting.before, op.waiting.after, op.waiting.inLine = after, before, true
	if before != nil {
		l.latest = op
	}
	if op.unordered && (l.scanned == nil || l.scanned.waiting.number > op.waiting.number) {
		l.scanned = op
	}
	l.count(op, 1)
	l.setReason(op, reason)
}

func (l *line) count(op *Operation, n int) {
	l.n += n
	if op.unordered {
		l.unordered += n
	}
}

// setReason changes the reason of an operation of the line.
func (l *line) setReason(op *Operation, reason waitReason) {
	isRetry := func(r waitReason) bool { return r == sleeping || r == deciding || r.isUnderWay() }
	if isRetry(op.waiting.reason) {
		l.retries--
	}
	if isRetry(reason) {
		l.retries++
	}
	op.waiting.has, op.waiting.reason = true, reason
}

func (l *line) remove(op *Operation) {
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
	if l.latest == op {
		l.latest = op.waiting.before
	}
	if l.scanned == op {
		l.scanned = op.waiting.after
	}
	l.count(op, -1)
	l.setReason(op, awake)
	op.waiting.before, op.waiting.after, op.waiting.inLine = nil, nil, false
}

// takeAll empties the line, but for operations that are under way. It returns those that were taken, without those
// about which the policy decides.
func (l *line) takeAll() (all []*Operation) {
	var after *Operation
	for op := l.first; op != nil; op = after {
		after = op.waiting.after
		reason := op.waiting.reason
		if reason.isUnderWay() {
			continue
		}
		l.remove(op)
		if reason != deciding {
			all = append(all, op)
		}
	}
	return all
}

// next returns the first operation that may be sent or begun, nil if there is none.
func (l *line) next() *Operation {
	op := l.first
	if op == nil || !op.isPaused() {
		return op
	}
	if l.unordered == 0 {
		return nil
	}
	for op = l.scanned; op != nil && !op.unordered; {
		op = op.waiting.after
	}
	l.scanned = op
	return op
}

// isPaused reports whether an operation of the line waits for its next attempt, and all behind it that keep the order.
func (op *Operation) isPaused() bool {
	if op.waiting.reason == deciding || op.waiting.reason.isUnderWay() {
		return true
	}
	return op.waiting.reason == sleeping && op.waiting.timer != 0
}

// enter puts op in the line, or changes why it is there. mu is held.
func (e *Executor) enter(op *Operation, reason waitReason) {
	if op.waiting.inLine {
		e.line.setReason(op, reason)
	} else {
		e.line.insert(op, reason)
	}
	e.hold()
}

// hasSteps reports whether later operations wait for the end of the next attempt of op: one request alone is sent
// before theirs, but of several only the first.
func (op *Operation) hasSteps() bool {
	s, ok := op.Protocol.(Stepper)
	return ok && !op.unordered && op.state.lost && s.HasSteps()
}

// beginAttempt lets the first operation of the line go, or keeps its place until the end of its attempt. mu is held.
func (e *Executor) beginAttempt(op *Operation) {
	e.timers.remove(op)
	if op.hasSteps() {
		e.enter(op, retrying)
	} else {
		e.leave(op)
	}
}

// leave removes op from the line. mu is held.
func (e *Executor) leave(op *Operation) {
	e.timers.remove(op)
	e.line.remove(op)
	e.hold()
}

// hold sets the flags that hold other operations back. mu is held.
func (e *Executor) hold() {
	first := e.line.first
	e.holding.Store(first != nil || e.waking) // what has left the line for its end or its next attempt comes first
	e.sending.Store(first != nil && !first.isPaused())
}

// park makes op wait for a connection, for as long as the connection timeout since its start. If it has waited that
// long before, it fails at once: an operation waits once, not at each attempt. A wait behind the retry of an older
// operation, with a connection, does not count.
func (e *Executor) park(op *Operation) {
	e.mu.Lock()
	if e.state == closed {
		e.mu.Unlock()
		op.Finish(ErrClosed)
		return
	}
	conn, waitedFor := e.conn(), !op.background
	if isConnected(conn) { // it waits behind others
		op.waiting.since = e.now()
	}
	if !e.mayPark(op) && !e.outlived(op, conn) {
		e.mu.Unlock()
		e.retry(op, op.loss())
		return
	}
	e.beginWait(op)
	e.enterParked(op)
	e.mu.Unlock()
	if waitedFor {
		e.finishAbandoned(op)
	}
	e.recheck(conn) // the connection may have come before op was parked
}

func isConnected(conn *wire.Conn) bool { return conn != nil && conn.IsConnected() }

// mayPark reports whether op may wait for a connection: its time for that is not over.
func (e *Executor) mayPark(op *Operation) bool {
	return op.Detached || !op.single && e.parkedUntil(op) > e.now()
}

// parkedUntil returns the end of the time in which op waits for a connection.
func (e *Executor) parkedUntil(op *Operation) int64 {
	return op.waiting.since + int64(e.connectTimeout)
}

// enterParked parks op. mu is held.
func (e *Executor) enterParked(op *Operation) {
	e.enter(op, parked)
	if !op.Detached {
		e.timers.add(e, op, e.parkedUntil(op))
	}
}

// waitsOn sets the timer of a parked operation again if it waits for no connection, but behind the retry of an older
// operation, or if its wait has begun anew. It reports whether it did. mu is held.
func (e *Executor) waitsOn(op *Operation, now int64) bool {
	if isConnected(e.conn()) {
		op.waiting.since = now
	}
	if e.parkedUntil(op) <= now {
		return false
	}
	e.timers.add(e, op, e.parkedUntil(op))
	return true
}

// finishAbandoned finishes op, which has just begun to wait, if its caller gave up before op was in the list. op is a
// foreground operation: a background operation has no caller, and its memory may be reused by now.
func (e *Executor) finishAbandoned(op *Operation) {
	if op.isAbandoned() && e.takeBack(op) {
		op.Finish(op.caller.abandoned.cause)
	}
}

// Unsent is called when a connection has ended. It takes back the operations that the connection had accepted and not
// sent. Their wait for a connection begins now, and so does that of the operations that waited behind a retry.
func (e *Executor) Unsent(requests []*wire.Request) {
	var failed []*Operation
	e.mu.Lock()
	now := e.now()
	for op := e.line.first; op != nil; op = op.waiting.after {
		switch {
		case op.waiting.reason == parked:
			op.waiting.since = now
		case op.waiting.reason == sleeping && op.waiting.timer == 0: // it waited for older ones, and does not need to now
			e.timers.add(e, op, now)
		}
	}
	stopped := e.state == closed
	waits := make([]*Operation, 0, len(requests))
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
		waits = append(waits, op)
	}
	// The later requests of operations are behind the first ones of newer operations. In order, the place of each is near
	// that of the one before.
	slices.SortFunc(waits, func(a, b *Operation) int { return cmp.Compare(a.waiting.number, b.waiting.number) })
	for _, op := range waits {
		e.beginWait(op)
		e.enterParked(op)
	}
	withCaller := slices.DeleteFunc(waits, func(op *Operation) bool { return op.background })
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

// Connected sends the operations of the line, in order, before all others, up to one that waits for its next attempt.
// It is called when a connection stands, and when the servers refuse the credentials or the login: then it fails the
// parked operations. One goroutine at a time does this, or begins the next attempts in wake: two would finish
// operations, which happens without mu, out of order. A second call makes the first one go through the list again, and
// returns at once.
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
			var s step
			s, more = e.sendNext()
			e.mu.Unlock() // operations that come meanwhile park behind
			switch {
			case s.begins:
				s.op.begin() // which parks it in its place
			case s.op != nil:
				s.op.Finish(s.err)
			}
			e.mu.Lock()
		}
		if !e.again {
			break
		}
	}
	e.waking = false
	e.hold()
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
	for op := e.line.first; op != nil; op = op.waiting.after {
		if op.waiting.reason != deciding && !op.waiting.reason.isUnderWay() {
			take(op)
		}
	}
	for _, entry := range e.timers.queue {
		if !entry.op.waiting.inLine {
			take(entry.op)
		}
	}
	for _, o := range over {
		e.removeWaiting(o.op)
	}
	slices.SortStableFunc(over, func(a, b overOp) int { return cmp.Compare(a.op.waiting.number, b.op.waiting.number) })
	return over
}

// step is what follows for an operation that was the first: its end with err, or its next attempt. Without an operation
// nothing follows.
type step struct {
	op     *Operation
	err    error
	begins bool
}

// sendNext sends the first operation of the line that may be sent. If it cannot be sent any more, or is at the end of
// its pause, the caller takes the step. more is false if no operation may be sent, or if the connection accepts none.
// mu is held.
func (e *Executor) sendNext() (s step, more bool) {
	op, conn := e.line.next(), e.conn()
	switch {
	case op == nil:
		return step{}, false
	case op.isAbandoned(): // its request refers to the caller's memory
		e.leave(op)
		return step{op: op, err: op.caller.abandoned.cause}, true
	case conn == nil:
		return step{}, false
	case e.outlived(op, conn):
		e.leave(op)
		return step{op: op, err: zk.ErrSessionExpired}, true
	case op.waiting.reason == sleeping && !conn.IsConnected():
		return step{}, false
	case op.waiting.reason == sleeping:
		e.beginAttempt(op)
		return step{op: op, begins: true}, true
	}
	before := op.state.on
	op.sendOn(conn)
	undo := e.endWait(op)
	e.beginAttempt(op) // before the answer can come
	// Submit under the lock: operations that come meanwhile park behind op.
	err := conn.Submit(&op.wire, false)
	if err == nil {
		return step{}, true
	}
	op.state.on = before
	if errors.Is(err, zk.ErrAuthFailed) {
		if err = op.refusal(conn, err); err != nil {
			return step{op: op, err: err}, true
		}
	}
	undo()
	e.enterParked(op)
	return step{}, false
}

// takeBack removes op if it waits for a connection or a retry, and reports whether it did. Those that waited behind op
// go on.
func (e *Executor) takeBack(op *Operation) bool {
	e.mu.Lock()
	wasPaused := op.waiting.inLine && op.isPaused()
	taken := e.removeWaiting(op)
	e.mu.Unlock()
	if taken && wasPaused {
		e.recheck(e.conn())
	}
	return taken
}

// removeWaiting is takeBack with mu held.
func (e *Executor) removeWaiting(op *Operation) bool {
	switch {
	case op.waiting.reason == awake || op.waiting.reason == deciding || op.waiting.reason.isUnderWay():
		return false
	case op.waiting.inLine:
		e.leave(op)
	default:
		e.timers.remove(op)
		op.waiting.reason = awake
	}
	return true
}

// giveUpPlace removes op, about which the policy has decided, from the line, and reports whether it was there.
func (e *Executor) giveUpPlace(op *Operation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !op.waiting.inLine {
		return false
	}
	e.leave(op)
	return true
}

// passOver lets the operations behind that of d go on, because the policy takes too long.
func (e *Executor) passOver(d *decision) {
	e.mu.Lock()
	isLate := !d.answered && d.op.waiting.inLine
	if isLate {
		e.leave(d.op)
	}
	e.mu.Unlock()
	if isLate {
		e.recheck(e.conn())
	}
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

// sleep begins another attempt of op after a pause. keepsPlace means that later operations wait behind it.
func (e *Executor) sleep(op *Operation, pause time.Duration, keepsPlace bool) {
	e.mu.Lock()
	if e.state == closed {
		if op.waiting.inLine {
			e.leave(op)
		}
		e.mu.Unlock()
		op.Finish(ErrClosed)
		return
	}
	switch {
	case keepsPlace:
		e.enter(op, sleeping)
	case op.waiting.inLine:
		e.leave(op)
		defer e.recheck(e.conn())
	}
	op.waiting.has, op.waiting.reason = true, sleeping
	// Even a pause of 0 uses the timer: an attempt that fails at once must not recurse.
	e.timers.add(e, op, e.now()+int64(pause))
	e.hold()
	waitedFor := !op.background
	e.mu.Unlock()
	if waitedFor {
		e.finishAbandoned(op)
	}
}
