package exec

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/wire"
)

// place is where an operation waits.
type place uint8

const (
	nowhere  place = iota
	parking        // for a connection
	sleeping       // for the pause before a retry
)

// parkedList is a list of operations in order, from which each can be removed.
type parkedList struct {
	first, last *Operation
	n           int
}

// insert puts op behind after, in front if that is nil.
func (l *parkedList) insert(after, op *Operation) {
	before := l.first
	if after != nil {
		before = after.after
		after.after = op
	} else {
		l.first = op
	}
	if before != nil {
		before.before = op
	} else {
		l.last = op
	}
	op.place, op.before, op.after = parking, after, before
	l.n++
}

func (l *parkedList) remove(op *Operation) {
	if op.before != nil {
		op.before.after = op.after
	} else {
		l.first = op.after
	}
	if op.after != nil {
		op.after.before = op.before
	} else {
		l.last = op.before
	}
	op.place, op.before, op.after = nowhere, nil, nil
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
	if !e.mayPark(op) {
		e.mu.Unlock()
		e.retry(op, op.loss())
		return
	}
	e.beginWait(op)
	e.parkBehind(e.parked.last, op)
	conn, waitedFor := e.conn(), !op.background
	e.mu.Unlock()
	if waitedFor {
		e.forsake(op)
	}
	e.recheck(conn) // the connection may have come while op was on its way here
}

// mayPark reports whether op still waits for a connection.
func (e *Executor) mayPark(op *Operation) bool {
	return op.Detached || !op.single && op.since+int64(e.connectTimeout) > e.now()
}

// parkBehind is called with mu held.
func (e *Executor) parkBehind(after, op *Operation) {
	e.parked.insert(after, op)
	e.holding.Store(true)
	if !op.Detached {
		e.timers.add(e, op, op.since+int64(e.connectTimeout))
	}
}

// forsake finishes op, which has just begun to wait, if its caller gave up before op could be found here. It is for
// foreground operations: a background operation has no caller to give up, and its memory may be reused by now.
func (e *Executor) forsake(op *Operation) {
	if op.isAbandoned() && e.takeBack(op) {
		op.Finish(op.cause)
	}
}

// Unsent takes back operations that a connection had accepted and not sent when it ended: they are the oldest ones that
// wait for the next connection. Until now they have waited for the server, not for a connection.
func (e *Executor) Unsent(requests []*wire.Request) {
	var failed []*Operation
	var last *Operation
	e.mu.Lock()
	now := e.now()
	stopped := e.state == closed
	parked := make([]*Operation, 0, len(requests))
	for _, r := range requests {
		op, ok := r.Handler.(*Operation)
		if !ok {
			continue
		}
		op.since = now
		if stopped || !e.mayPark(op) {
			failed = append(failed, op)
			continue
		}
		e.beginWait(op)
		e.parkBehind(last, op)
		last = op
		if !op.background {
			parked = append(parked, op)
		}
	}
	e.mu.Unlock()
	for _, op := range parked {
		e.forsake(op)
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
	if conn != nil && (conn.IsConnected() || conn.IsRefused()) {
		e.Connected()
	}
}

// Connected sends the parked operations, in order, before all others. It is called when a connection stands. It is also
// called when the servers refuse the credentials: then it fails the parked operations.
func (e *Executor) Connected() {
	for {
		e.mu.Lock()
		op := e.parked.first
		if op == nil {
			e.holding.Store(false)
			e.mu.Unlock()
			return
		}
		if op.isAbandoned() { // its request refers to the caller's memory
			e.unpark(op)
			e.mu.Unlock()
			op.Finish(op.cause)
			continue
		}
		conn := e.conn()
		if conn != nil && e.outlived(op, conn) {
			e.unpark(op)
			e.mu.Unlock()
			op.Finish(zk.ErrSessionExpired)
			continue
		}
		if conn == nil {
			e.mu.Unlock()
			return
		}
		before := op.on
		op.on = conn
		resumeWait := e.endWait(op)
		e.unpark(op) // before the answer can come
		// Submitted under the lock: operations that come meanwhile park behind.
		err := conn.Submit(&op.Request, false)
		if err != nil {
			op.on = before
		}
		if err != nil && !errors.Is(err, zk.ErrAuthFailed) {
			resumeWait()
			e.parkBehind(nil, op)
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		if err != nil { // for good: no session will follow
			op.Finish(err)
		}
	}
}

// unpark is called with mu held.
func (e *Executor) unpark(op *Operation) {
	e.parked.remove(op)
	e.timers.remove(op)
}

// takeBack takes op back if it waits here.
func (e *Executor) takeBack(op *Operation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch op.place {
	case parking:
		e.unpark(op)
	case sleeping:
		e.timers.remove(op)
		op.place = nowhere
	default:
		return false
	}
	return true
}

// overdue ends the wait of an operation whose time is over, or begins the next attempt of one that slept.
func (e *Executor) overdue(op *Operation, was place) {
	switch {
	case was == parking:
		e.retry(op, op.loss())
	case op.isAbandoned():
		op.Finish(op.cause)
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
	op.place = sleeping
	// Even a pause of 0 uses the timer: an attempt that fails at once must not recurse.
	e.timers.add(e, op, e.now()+int64(pause))
	waitedFor := !op.background
	e.mu.Unlock()
	if waitedFor {
		e.forsake(op)
	}
}
