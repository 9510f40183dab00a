package queue

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
)

// message is a node that is ours, to be consumed: deleted, or locked.
type message struct {
	name  nodeName
	data  []byte
	stat  zk.Stat
	epoch int64     // in which it was read
	lock  *itemLock // nil without a lock path
}

// bytesToPutBack returns what the node holds in which m is put back: that which it was read from, with its history.
func (m *message) bytesToPutBack() []byte {
	parts, trailer, err := decodeItems(m.data)
	if err != nil || m.stat.Ctime == 0 { // the history is there
		return m.data
	}
	h, _ := historyOf(trailer)
	data, _ := encodeItems(withHistory(trailer, h.putBack(time.UnixMilli(m.stat.Ctime))), parts...)
	return data
}

// itemLock is the lock of an item, by one claim.
type itemLock struct {
	name    string             // of the item
	id      string             // what its node holds, and that of no other claim
	flight  context.Context    // on which it was created: it is ours as long as that lasts
	gap     int64              // of the watch: no event was lost before it
	session *framework.Session // that it goes with
	created <-chan struct{}    // closed with the answer to the create; nil before it is submitted
	deleted atomic.Bool        // an event says so
}

// claim is a try to make an item ours.
type claim interface {
	node() nodeName
	// done is closed when end does not wait any more.
	done() <-chan struct{}
	// end waits for the answer. The error is errTaken if the item is another's or gone, and errChanged if it is to be read
	// again. A message that comes with an error cannot be consumed; its lock, if it has one, is to be released.
	end(ctx context.Context) (*message, error)
	// resolve finds out what has become of a claim that ended without an answer. What is not ours then is listed again if
	// it is still there. The error is about the item of the message.
	resolve(ctx context.Context) (*message, error)
}

// isCorrupt reports whether err is about the bytes of an item.
func isCorrupt(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, framework.ErrDataInconsistency)
}
