package exec

import (
	"container/heap"
	"time"
)

// timers wakes operations at their times. It uses one timer and one goroutine at a time for all of them. Executor.mu
// guards it.
type timers struct {
	queue    timerQueue
	timer    *time.Timer
	next     int64 // when timer fires
	running  bool  // wake runs: it sets the timer again
	sleeping int   // number of operations in queue that wait for a retry and are not in the line
}

// timerBatch is the number of operations that are woken before the lock is released.
const timerBatch = 256

type timerEntry struct {
	at int64 // ns since Executor.epoch
	op *Operation
}

// timerQueue is a heap. waiting.timer of each operation has its index.
type timerQueue []timerEntry

func (q timerQueue) Len() int           { return len(q) }
func (q timerQueue) Less(i, j int) bool { return q[i].at < q[j].at }

func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].op.waiting.timer, q[j].op.waiting.timer = int32(i)+1, int32(j)+1
}

func (q *timerQueue) Push(x any) {
	entry := x.(timerEntry)
	*q = append(*q, entry)
	entry.op.waiting.timer = int32(len(*q))
}

func (q *timerQueue) Pop() any {
	last := len(*q) - 1
	entry := (*q)[last]
	(*q)[last] = timerEntry{}
	*q = (*q)[:last]
	entry.op.waiting.timer = 0
	return entry
}

// add sets the time at which op is woken.
func (t *timers) add(e *Executor, op *Operation, at int64) {
	heap.Push(&t.queue, timerEntry{at, op})
	if op.waiting.reason == sleeping && !op.waiting.inLine {
		t.sleeping++
	}
	if !t.running {
		t.set(e)
	}
}

// remove removes op if it has a timer.
func (t *timers) remove(op *Operation) {
	if op.waiting.timer == 0 {
		return
	}
	heap.Remove(&t.queue, int(op.waiting.timer)-1)
	if op.waiting.reason == sleeping && !op.waiting.inLine {
		t.sleeping--
	}
	if len(t.queue) == 0 {
		t.queue = nil // a burst does not keep its memory
	}
}

// set sets the timer to the earliest time.
func (t *timers) set(e *Executor) {
	if len(t.queue) == 0 {
		return
	}
	first := t.queue[0].at
	pause := time.Duration(max(first-e.now(), 0))
	switch {
	case t.timer == nil:
		t.timer = time.AfterFunc(pause, e.wake)
	case t.next == 0 || first < t.next:
		t.timer.Reset(pause)
	default:
		return
	}
	t.next = first
}

// stop stops the timer and returns the operations that wait for a retry.
func (t *timers) stop() (ops []*Operation) {
	if t.timer != nil {
		t.timer.Stop()
	}
	for _, entry := range t.queue {
		entry.op.waiting.timer = 0
		if entry.op.waiting.reason == sleeping {
			entry.op.waiting.reason = awake
			ops = append(ops, entry.op)
		}
	}
	t.queue, t.sleeping = nil, 0
	return ops
}

// setAgain sets the timer at the end of wake.
func (t *timers) setAgain(e *Executor) {
	t.running = false
	if e.state != closed {
		t.set(e)
	}
}

// wake handles all operations whose time is over. It runs on the goroutine of the timer. While another goroutine is in
// Connected, it leaves them to a later call. An operation of the line stays there at the end of its pause: Connected
// begins its next attempt when it is the first.
func (e *Executor) wake() {
	type due struct {
		op  *Operation
		was waitReason
	}
	batch := make([]due, 0, 16)
	t := &e.timers
	for {
		batch = batch[:0]
		ripe := false // an operation of the line has reached the end of its pause
		e.mu.Lock()
		t.running, t.next = true, 0
		if e.waking {
			e.woken = true
			e.mu.Unlock()
			return
		}
		e.waking = true
		now := e.now()
		for len(t.queue) > 0 && t.queue[0].at <= now && len(batch) < timerBatch {
			op := t.queue[0].op
			was := op.waiting.reason
			t.remove(op)
			switch {
			case was == sleeping && op.waiting.inLine && isConnected(e.conn()):
				ripe = true
				continue
			case was == sleeping && op.waiting.inLine:
				e.enter(op, starting)
				batch = append(batch, due{op, was})
				continue
			case was == parked && e.waitsOn(op, now):
				continue
			case was == parked:
				e.endWait(op)
				e.leave(op)
			}
			op.waiting.reason = awake
			batch = append(batch, due{op, was})
		}
		if len(batch) == 0 && !ripe {
			e.waking = false
			e.hold()
			t.setAgain(e)
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		for _, d := range batch {
			e.overdue(d.op, d.was)
		}
		e.mu.Lock()
		again := e.again
		e.waking, e.again = false, false
		e.hold()
		e.mu.Unlock()
		if again || ripe {
			e.Connected()
		}
	}
}
