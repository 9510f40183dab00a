package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
)

// message is a node that is ours to consume: deleted, or locked.
type message struct {
	name     nodeName
	data     []byte
	contents any // of data, decoded; nil if it cannot be read
	stat     zk.Stat
	epoch    int64     // of the path when it was read
	lock     *itemLock // nil without a lock path
}

// bytesToPutBack returns the data of the node in which m is put back: the data that was read, with its history.
func (m *message) bytesToPutBack() []byte {
	parts, trailer, err := decodeItems(m.data)
	if err != nil || m.stat.Ctime == 0 { // the history is there already
		return m.data
	}
	h, _ := historyOf(trailer)
	data, _ := encodeItems(withHistory(trailer, h.putBack(time.UnixMilli(m.stat.Ctime))), parts...)
	return data
}

// itemLock is the lock of an item, by one claim.
type itemLock struct {
	name    string             // of the item
	id      string             // data of its node, unique for each claim
	flight  context.Context    // of the create: the lock is ours as long as it lasts
	gap     int64              // of the watch: no event was lost before the claim
	session *framework.Session // that owns the lock
	created <-chan struct{}    // closed with the answer to the create; nil before it is submitted
	deleted atomic.Bool        // an event reports it
}

// claim is an attempt to make an item ours.
type claim interface {
	node() nodeName
	// done returns a channel that is closed when end does not wait any more.
	done() <-chan struct{}
	// end waits for the answer. The error is errTaken if another consumer has the item or it is gone, and errChanged if
	// it must be read again. A message that comes with an error cannot be consumed; its lock, if it has one, must be
	// released.
	end(ctx context.Context) (*message, error)
	// resolve finds out the outcome of a claim that ended without an answer. An item that is not ours then is listed
	// again if it still exists. The error is about the item of the message.
	resolve(ctx context.Context) (*message, error)
}

// errDecodingExited is the error of an item whose serializer calls runtime.Goexit, as a failing test does.
var errDecodingExited = fmt.Errorf("%w: the serializer has ended its goroutine", ErrCorrupt)

// isCorrupt reports whether err is about the bytes of an item.
func isCorrupt(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, framework.ErrDataInconsistency)
}
