// Package dispatch runs the user's code in order, away from the goroutine that reads the connection.
package dispatch

import (
	"sync"
	"time"
)

// Task is something to run.
type Task interface{ Run() }

// Func is a function as a Task.
type Func func()

// Run calls f.
func (f Func) Run() { f() }

// Queue runs tasks one at a time, in the order of Push, on one goroutine. It is not bounded: it must take what the
// reader of the connection brings, without blocking it.
type Queue struct {
	mu     sync.Mutex
	tasks  []Task
	closed bool
	wake   chan struct{}
	done   chan struct{}
}

// Start returns a running queue.
func Start() *Queue {
	q := &Queue{wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
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
	q.mu.Unlock()
	if first {
		q.signal()
	}
	return true
}

// Close takes no more tasks, and waits up to limit until those accepted have run. It reports whether they have; if
// not, they still run when the one in front of them returns.
func (q *Queue) Close(limit time.Duration) bool {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-q.done:
		return true
	case <-t.C:
		return false
	}
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue) run() {
	defer close(q.done)
	var spare []Task
	for {
		q.mu.Lock()
		tasks, closed := q.tasks, q.closed
		q.tasks = spare[:0]
		q.mu.Unlock()
		if len(tasks) == 0 {
			if closed {
				return
			}
			<-q.wake
			spare = tasks
			continue
		}
		for i, t := range tasks {
			tasks[i] = nil
			t.Run()
		}
		if spare = tasks; cap(spare) > 4096 { // a burst does not keep its memory
			spare = nil
		}
	}
}
