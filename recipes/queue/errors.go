package queue

import (
	"errors"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
)

var (
	// ErrClosed is returned by what a queue cannot do once it is closed, and is the cause of the end of a consumer's
	// context when Close has waited long enough.
	ErrClosed error = telemetry.Closed("queue: closed")
	// ErrStarted is returned by a second Start.
	ErrStarted = errors.New("queue: already started")
	// ErrNotStarted is returned by what a queue cannot do before Start.
	ErrNotStarted = errors.New("queue: not started")
	// ErrHasConsumer is the error of Items of a queue that has a consumer.
	ErrHasConsumer = errors.New("queue: items go to the consumer")
	// ErrCorrupt is wrapped by the error about an item whose bytes cannot be read.
	ErrCorrupt = errors.New("queue: corrupt item")
	// ErrUncertain is wrapped by the error about an item of which it is not known, because the connection was lost,
	// whether it was put, or whether it was taken by us or by another. Such an item is not put, or consumed, again.
	ErrUncertain = errors.New("queue: outcome not known")
	// ErrLockLost is the cause of the end of a consumer's context when the lock of its item was lost with the session:
	// another consumer may get the item.
	ErrLockLost = errors.New("queue: lock of the item lost")
	// ErrEmpty is returned by Element and Remove of a [SimpleDistributedQueue] without elements. In Java:
	// NoSuchElementException.
	ErrEmpty = errors.New("queue: empty")
)

var (
	// errTaken says that another was faster.
	errTaken = errors.New("queue: element taken by another")
	// errChanged says that an item has changed since it was read.
	errChanged = errors.New("queue: item changed")
)

// ItemError is an error about an item.
type ItemError struct {
	// Path is that of the node, or of the queue if the item has none yet.
	Path string
	// Data is what the node holds, nil if that is not known.
	Data []byte
	Err  error
}

// Error returns the path and the cause.
func (e *ItemError) Error() string {
	return "queue: item " + e.Path + ": " + errtext.Cause(e.Err, "queue")
}

// Unwrap returns the cause.
func (e *ItemError) Unwrap() error { return e.Err }
