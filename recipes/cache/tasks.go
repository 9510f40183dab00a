package cache

import "sync"

// tasks is an unbounded queue of tasks for a goroutine that runs only while there are any. The zero value is ready for
// use.
type tasks struct {
	mu      sync.Mutex
	list    []func()
	running bool // the goroutine has not seen the end of the list
	closed  bool
	ended   chan struct{} // closed when the goroutine ends after close; nil if close has not waited
}

// put adds tasks, unless the queue is closed. It reports whether the caller has to start the goroutine.
func (t *tasks) put(fns ...func()) (start bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.list = append(t.list, fns...)
	start, t.running = !t.running, true
	return start
}

// take removes and returns all tasks. Without any, the goroutine has to end.
func (t *tasks) take() (list []func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if list, t.list = t.list, nil; len(list) > 0 {
		return list
	}
	t.running = false
	if t.ended != nil {
		close(t.ended)
	}
	return nil
}

// close drops the tasks and all later ones, and waits for the end of the goroutine. It is called once.
func (t *tasks) close() {
	t.mu.Lock()
	t.list, t.closed = nil, true
	running := t.running
	if running {
		t.ended = make(chan struct{})
	}
	t.mu.Unlock()
	if running {
		<-t.ended
	}
}
