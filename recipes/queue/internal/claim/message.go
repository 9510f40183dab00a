package claim

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// Message is a node that is ours to consume: deleted, or locked.
type Message struct {
	Name     node.Name
	Data     []byte
	Contents any // of data, decoded; nil if it cannot be read
	Stat     zk.Stat
	Lock     *Lock // nil without a lock path
}

// BytesToPutBack returns the data of the node in which m is put back: the data that was read, with its history.
func (m *Message) BytesToPutBack() []byte {
	parts, trailer, err := node.Decode(m.Data)
	if err != nil || m.Stat.Ctime == 0 { // the history is there already
		return m.Data
	}
	h, _ := node.HistoryOf(trailer)
	data, _ := node.Encode(node.WithHistory(trailer, h.PutBack(time.UnixMilli(m.Stat.Ctime))), parts...)
	return data
}

// Lock is the lock of an item, by one claim.
type Lock struct {
	name    string             // of the item
	ID      string             // data of its node, unique for each claim
	flight  context.Context    // of the create: the lock is ours as long as it lasts
	gap     int64              // of the watch: no event was lost before the claim
	Session *framework.Session // that owns the lock
	created <-chan struct{}    // closed with the answer to the create; nil before it is submitted
	Deleted atomic.Bool        // an event reports it
}

// Claim is an attempt to make an item ours.
type Claim interface {
	// Node returns the name of the item.
	Node() node.Name
	// Done returns a channel that is closed when End does not wait any more.
	Done() <-chan struct{}
	// End waits for the answer. The error is node.ErrTaken if another consumer has the item or it is gone, and
	// node.ErrChanged if it must be read again. A message that comes with an error cannot be consumed; its lock, if it
	// has one, must be released.
	End(ctx context.Context) (*Message, error)
	// Resolve finds out the outcome of a claim that ended without an answer. An item that is not ours then is listed
	// again if it still exists. The error is about the item of the message.
	Resolve(ctx context.Context) (*Message, error)
}

// ErrDecodingExited is the error of an item whose codec ends its goroutine.
var ErrDecodingExited = errtext.Join(node.ErrCorrupt, usercode.Exited("the codec"))

// IsCorrupt reports whether err is about the bytes of an item.
func IsCorrupt(err error) bool {
	return errors.Is(err, node.ErrCorrupt) || errors.Is(err, framework.ErrDataInconsistency)
}
