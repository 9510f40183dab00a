package claim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// Settlement is the end of a claim.
type Settlement struct {
	Message *Message
	Keep    bool          // the item stays, and only its lock is deleted
	Back    []byte        // data to put back; nil for nothing
	Dead    []byte        // data for the dead letters; nil for nothing
	After   time.Duration // how long the item stays locked before
	Once    bool          // after a refusal the item stays, and its lock is deleted

	Cause   context.Context //nolint:containedctx // of its span, nil without tracing
	Done    func(error)     // called once
	Refused func(error)     // called for each new cause of a refusal; may be nil

	notified  sync.Once
	sent      builders.Future[[]callbacks.OperationResult]
	hasSlot   bool
	uncertain bool // it may have been applied
	gone      bool // somebody else has deleted the item that was to be put back
	losses    int  // how often the answer was lost
	refusals  int
	causes    reply.Causes
}

// errGone is the error of an item that is not put back.
var errGone = errtext.Wrap(zk.ErrNoNode, "queue", "somebody has deleted the item")

// noteDeletion records that somebody else has deleted the item: nothing but its lock is left.
func (x *Settlement) noteDeletion() {
	x.gone = x.gone || !x.Keep && (x.Back != nil || x.Dead != nil)
	x.Keep = true
}

// noteLoss records that the answer to x may be lost.
func (x *Settlement) noteLoss(err error) {
	if reply.MayBeApplied(err) {
		x.uncertain = true
		x.losses++
	}
}

// tooLarge returns the reason, after err, why x is too large to be sent with what it puts back. It returns nil if x is
// not.
func (x *Settlement) tooLarge(err error) error {
	bytes := len(x.Back) + len(x.Dead)
	switch {
	case x.Keep:
	case errors.Is(err, framework.ErrRequestTooLarge):
		return err
	case x.losses >= reply.MaxLosses && bytes > reply.SuspectSize:
		return reply.LostEachTime(bytes)
	}
	return nil
}

// reportRefusal reports a refusal if its cause is new.
func (x *Settlement) reportRefusal(refusal error) {
	if x.Refused != nil && x.causes.IsNew(refusal) {
		x.Refused(errtext.Wrap(refusal, "queue", "settle"))
	}
}
