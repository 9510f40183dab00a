package queue

import (
	"errors"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

var (
	// ErrClosed is returned by methods of a closed queue. It is also the cause of the end of a consumer's context when
	// Close has waited long enough. It matches framework.ErrClosed.
	ErrClosed = node.ErrClosed
	// ErrStarted is returned by a second Start. It matches framework.ErrStarted.
	ErrStarted = errtext.Special(errtext.ErrStarted, "queue: already started")
	// ErrNotStarted is returned by methods that need a started queue. It matches framework.ErrNotStarted.
	ErrNotStarted = errtext.Special(errtext.ErrNotStarted, "queue: not started")
	// ErrHasConsumer is returned by Items of a queue that has a consumer.
	ErrHasConsumer = errors.New("queue: items go to the consumer")
	// ErrCorrupt is wrapped by errors about items with unreadable bytes.
	ErrCorrupt = node.ErrCorrupt
	// ErrUncertain is wrapped by the error about an item with an unknown outcome after a lost connection: it may or may
	// not have been put, or it may have been taken by us or by another. Such an item is not put, or consumed, again.
	// It matches framework.ErrUncertain.
	ErrUncertain = node.ErrUncertain
	// ErrLockLost is the cause of the end of a consumer's context when the lock of its item was lost with the session.
	// Another consumer may get the item. It matches locks.ErrLockLost.
	ErrLockLost = node.ErrLockLost
	// ErrEmpty is returned by Element and Remove of an empty [SimpleDistributedQueue]. In Java: NoSuchElementException.
	ErrEmpty = errors.New("queue: empty")
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
