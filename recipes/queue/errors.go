package queue

import (
	"errors"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
)

var (
	// ErrClosed is returned by methods of a closed queue. It is also the cause of the end of a consumer's context when
	// Close has waited long enough.
	ErrClosed error = telemetry.Closed("queue: closed")
	// ErrStarted is returned by a second Start.
	ErrStarted = errors.New("queue: already started")
	// ErrNotStarted is returned by methods that need a started queue.
	ErrNotStarted = errors.New("queue: not started")
	// ErrHasConsumer is returned by Items of a queue that has a consumer.
	ErrHasConsumer = errors.New("queue: items go to the consumer")
	// ErrCorrupt is wrapped by errors about items with unreadable bytes.
	ErrCorrupt = errors.New("queue: corrupt item")
	// ErrUncertain is wrapped by the error about an item with an unknown outcome after a lost connection: it may or may
	// not have been put, or it may have been taken by us or by another. Such an item is not put, or consumed, again.
	ErrUncertain = errors.New("queue: outcome not known")
	// ErrLockLost is the cause of the end of a consumer's context when the lock of its item was lost with the session.
	// Another consumer may get the item.
	ErrLockLost = errors.New("queue: lock of the item lost")
	// ErrEmpty is returned by Element and Remove of an empty [SimpleDistributedQueue]. In Java: NoSuchElementException.
	ErrEmpty = errors.New("queue: empty")
)

var (
	// errTaken reports that another consumer was faster.
	errTaken = errors.New("queue: element taken by another")
	// errChanged reports that an item has changed since it was read.
	errChanged = errors.New("queue: item changed")
)

// ItemError is an error about an item.
type ItemError struct {
	// Path is the path of the node, or of the queue if the item has no node yet.
	Path string
	// Data is the data of the node, nil if it is unknown.
	Data []byte
	Err  error
}

// Error returns the path and the cause.
func (e *ItemError) Error() string {
	return "queue: item " + e.Path + ": " + errtext.Cause(e.Err, "queue")
}

// Unwrap returns the cause.
func (e *ItemError) Unwrap() error { return e.Err }
