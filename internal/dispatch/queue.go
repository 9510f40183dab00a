// Package dispatch runs the user's code in order, away from the goroutine that reads the connection.
package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/internal/usercode"
)

// Task is something to run.
type Task interface{ Run() }

// Func is a function as a Task.
type Func func()

// Run calls f.
func (f Func) Run() { f() }

// Queue runs tasks one at a time, in the order of Push, on one goroutine. It has no bound: it must accept all tasks of
// the reader of the connection without blocking it.
type Queue struct {
	mu     sync.Mutex
	tasks  []Task
	since  time.Time // when the first of tasks was pushed
	taken  time.Time // when the first of batch was pushed, zero if there is no batch
	begun  bool      // the goroutine runs, or has run
	closed bool
	wake   chan struct{}
	done   chan struct{}
	ahead  atomic.Int64 // number of tasks of batch that have not begun
	busy   atomic.Bool  // a task waits or runs; changed with mu held

	// Of the goroutine that runs.
	batch []Task // the rest of the taken tasks
	spare []Task // its memory
}

// Start returns an open queue. Its goroutine starts with the first task.
func Start() *Queue {
	return &Queue{wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// Push puts t behind all others. It returns false after Close: t will not run.
func (q *Queue) Push(t Task) bool {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false
	}
	q.tasks = append(q.tasks, t)
	first := len(q.tasks) == 1
	if first {
		q.since = time.Now()
		q.busy.Store(true)
	}
	q.begin()
	q.mu.Unlock()
	if first {
		q.signal()
	}
	return true
}

// Close refuses further tasks, and waits up to limit until the accepted ones have run. It reports whether they have. If
// not, they still run when the task in front of them returns.
func (q *Queue) Close(limit time.Duration) bool {
	q.mu.Lock()
	q.closed = true
	q.begin() // which closes done
	q.mu.Unlock()
	q.signal()
	return Within(limit, q.done)
}

// begin starts the goroutine. mu is held.
func (q *Queue) begin() {
	if !q.begun {
		q.begun = true
		go q.run()
	}
}

// Idle reports whether every accepted task has run.
func (q *Queue) Idle() bool { return !q.busy.Load() }

// Within waits up to limit until done is closed, and reports whether it is.
func Within(limit time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
	}
	select { // both may have been ready
	case <-done:
		return true
	default:
		return false
	}
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue) run() { usercode.Loop(usercode.Go, q.runBatch) }

// runBatch runs the taken tasks and takes the next ones. It returns false when the queue is closed and empty.
func (q *Queue) runBatch() (again bool) {
	for len(q.batch) > 0 {
		t := q.batch[0]
		q.batch[0], q.batch = nil, q.batch[1:]
		q.ahead.Add(-1)
		t.Run()
	}
	if q.refill() {
		return true
	}
	q.mu.Lock()
	over := q.closed && len(q.tasks) == 0
	q.mu.Unlock()
	if over {
		close(q.done)
		return false
	}
	<-q.wake
	return true
}

// refill takes all tasks that were pushed meanwhile, and leaves the memory of the last batch for the next one.
func (q *Queue) refill() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	spare := q.spare
	if cap(spare) > maxSpare { // a burst does not keep its memory
		spare = nil
	}
	q.batch, q.spare, q.tasks = q.tasks, q.tasks, spare[:0]
	q.ahead.Store(int64(len(q.batch)))
	q.taken, q.since = q.since, time.Time{}
	if len(q.batch) == 0 {
		q.busy.Store(false)
	}
	return len(q.batch) > 0
}

// Load returns the number of tasks that wait, and the age of the oldest at most. The task that runs counts for the age.
func (q *Queue) Load() (waiting int, oldest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !q.taken.IsZero():
		oldest = time.Since(q.taken)
	case !q.since.IsZero():
		oldest = time.Since(q.since)
	}
	return len(q.tasks) + int(q.ahead.Load()), oldest
}

const maxSpare = 4096
