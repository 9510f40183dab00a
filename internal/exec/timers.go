package exec

import (
	"container/heap"
	"time"
)

// timers wakes operations at their times: one timer, one goroutine at a time, however many wait. It is guarded by
// Executor.mu.
type timers struct {
	queue    timerQueue
	timer    *time.Timer
	next     int64 // when timer fires
	running  bool  // it has fired, and sets itself again
	sleeping int   // of those in queue that wait for a retry
}

// timerBatch is the number of operations that are woken before others get the lock.
const timerBatch = 256

type timerEntry struct {
	at int64 // ns since Executor.epoch
	op *Operation
}

// timerQueue is a heap; each operation in it has its index.
type timerQueue []timerEntry

func (q timerQueue) Len() int           { return len(q) }
func (q timerQueue) Less(i, j int) bool { return q[i].at < q[j].at }

func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].op.timer, q[j].op.timer = int32(i)+1, int32(j)+1
}

func (q *timerQueue) Push(x any) {
	entry := x.(timerEntry)
	*q = append(*q, entry)
	entry.op.timer = int32(len(*q))
}

func (q *timerQueue) Pop() any {
	last := len(*q) - 1
	entry := (*q)[last]
	(*q)[last] = timerEntry{}
	*q = (*q)[:last]
	entry.op.timer = 0
	return entry
}

// add wakes op at a time.
func (t *timers) add(e *Executor, op *Operation, at int64) {
	heap.Push(&t.queue, timerEntry{at, op})
	if op.place == sleeping {
		t.sleeping++
	}
	if !t.running {
		t.set(e)
	}
}

// remove removes op if it is here.
func (t *timers) remove(op *Operation) {
	if op.timer == 0 {
		return
	}
	heap.Remove(&t.queue, int(op.timer)-1)
	if op.place == sleeping {
		t.sleeping--
	}
	if len(t.queue) == 0 {
		t.queue = nil // a burst does not keep its memory
	}
}

// set sets the timer to the first time.
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

// stop stops the timer and returns the operations that sleep.
func (t *timers) stop() (ops []*Operation) {
	if t.timer != nil {
		t.timer.Stop()
	}
	for _, entry := range t.queue {
		entry.op.timer = 0
		if entry.op.place == sleeping {
			entry.op.place = nowhere
			ops = append(ops, entry.op)
		}
	}
	t.queue, t.sleeping = nil, 0
	return ops
}

// wake runs on the timer's goroutine.
func (e *Executor) wake() {
	type due struct {
		op  *Operation
		was place
	}
	batch := make([]due, 0, 16)
	t := &e.timers
	for {
		batch = batch[:0]
		e.mu.Lock()
		t.running, t.next = true, 0
		now := e.now()
		for len(t.queue) > 0 && t.queue[0].at <= now && len(batch) < timerBatch {
			op := t.queue[0].op
			was := op.place
			t.remove(op)
			if was == parking {
				e.endWait(op)
				e.parked.remove(op)
			}
			op.place = nowhere
			batch = append(batch, due{op, was})
		}
		if len(batch) == 0 {
			t.running = false
			if e.state != closed {
				t.set(e)
			}
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		for _, d := range batch {
			e.overdue(d.op, d.was)
		}
	}
}
