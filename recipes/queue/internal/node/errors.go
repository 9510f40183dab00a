package node

import (
	"errors"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
)

// The errors of package queue with the same names have their meanings there.
var (
	ErrClosed    = errtext.Special(errtext.ErrClosed, "queue: closed")
	ErrCorrupt   = errors.New("queue: corrupt item")
	ErrUncertain = errtext.Special(framework.ErrUncertain, "queue: outcome not known")
	ErrLockLost  = errtext.Special(waitqueue.ErrLost, "queue: lock of the item lost")
)

var (
	// ErrTaken reports that another consumer was faster.
	ErrTaken = errors.New("queue: element taken by another")
	// ErrChanged reports that an item has changed since it was read.
	ErrChanged = errors.New("queue: item changed")
)
