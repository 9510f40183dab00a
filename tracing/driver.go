package tracing

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// Driver gets the durations of operations and the counts of events. Its methods are called concurrently. One that
// blocks delays the result of an operation, or later events, and nothing else. In Java: TracerDriver.
type Driver interface {
	// AddTrace reports an operation that has ended, before the caller gets its result.
	AddTrace(name string, d time.Duration)
	// AddCount reports an event that has happened n times, in order, on a goroutine of its own.
	AddCount(name string, n int)
}

// AdvancedDriver is a [Driver] that wants to know more: if it has these methods, those of Driver are not called. They
// are called as those are. In Java: AdvancedTracerDriver.
type AdvancedDriver interface {
	// AddOperation reports an operation that has ended. In Java: addTrace.
	AddOperation(t OperationTrace)
	// AddEvent reports an event.
	AddEvent(t EventTrace)
}

// Discard is a [Driver] that does nothing: to embed in an [AdvancedDriver], which needs no other.
type Discard struct{}

// AddTrace does nothing.
func (Discard) AddTrace(string, time.Duration) {}

// AddCount does nothing.
func (Discard) AddCount(string, int) {}

// OperationTrace is an operation that has ended. In Java: OperationTrace.
type OperationTrace struct {
	// Name is Java's: "CreateBuilderImpl-Foreground".
	Name string
	// Latency is the time from its beginning, in the background from that of the last attempt, to its end.
	Latency time.Duration
	// Err is nil if it succeeded. In Java: the return code.
	Err error
	// Path is the path as it was given.
	Path string
	// WithWatcher is whether it has set a watch.
	WithWatcher bool
	// RequestBytes and ResponseBytes are the sizes of the last request and of its answer; 0 if there was none.
	RequestBytes, ResponseBytes int
	// ResponseChildren is how many children were listed, -1 if none were.
	ResponseChildren int
	// Transactions is the number of operations of a transaction, 0 if it is none.
	Transactions int
	// SessionID is that of the session that it ended in, 0 if it was never sent.
	SessionID int64
	// Stat is that of the node, nil if the operation has none.
	Stat *zk.Stat
}

// EventTrace is something that has happened. In Java: EventTrace.
type EventTrace struct {
	// Name is Java's: "session-expired".
	Name string
	// SessionID is that of the session, 0 if it has to do with none.
	SessionID int64
}
