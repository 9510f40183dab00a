package dispatch

import "time"

// Lanes runs two kinds of tasks, each in the order of its pushes on a goroutine of its own. Those of the library are
// short and never wait for the program's, which may block or end their goroutine. A task of the program begins after
// the library's tasks that were pushed before it, so that the program sees the state that they have left.
type Lanes struct {
	library *Queue
	program *Queue
}

// StartLanes returns open lanes.
func StartLanes() *Lanes { return &Lanes{library: Start(), program: Start()} }

// Push puts a task of the program behind all others. After Close it will not run.
func (l *Lanes) Push(t Task) {
	// The check may be outdated: then the pushes were concurrent, and have no order.
	if l.library.Idle() || !l.library.Push(Func(func() { l.program.Push(t) })) {
		l.program.Push(t)
	}
}

// PushProgram puts a task of the program behind its others alone. A task of the library may call it.
func (l *Lanes) PushProgram(t Task) { l.program.Push(t) }

// PushLibrary puts a task of the library behind the library's others. After Close it will not run.
func (l *Lanes) PushLibrary(t Task) { l.library.Push(t) }

// Close refuses further tasks, and waits up to limit until the accepted ones have run, as that of a Queue. Tasks of the
// program may still wait behind those of the library: their lane closes behind these.
func (l *Lanes) Close(limit time.Duration) bool {
	end := time.Now().Add(limit)
	l.library.Push(Func(func() { l.program.Close(0) }))
	return l.library.Close(limit) && l.program.Close(time.Until(end))
}

// Load returns the number of tasks that wait in both lanes, and the age of the oldest at most.
func (l *Lanes) Load() (waiting int, oldest time.Duration) {
	waiting, oldest = l.program.Load()
	n, age := l.library.Load()
	return waiting + n, max(oldest, age)
}
