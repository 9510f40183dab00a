package locks

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/gocurator/curator/internal/errtext"
)

// Hold is a lock that the caller holds, from Acquire to Release. It is safe for concurrent use.
type Hold struct {
	*grant
	released atomic.Bool
}

// Release ends the hold. The last hold of an owner deletes the node and waits for the answer. ctx bounds the wait, not
// the delete, which goes on in the background until it succeeds. The end of the session bounds the wait too, and is no
// error: the node goes with its session. An error means that others may get the lock later, at the latest when the
// session ends; in this process the lock is released anyway. A second call does nothing and returns nil. So does a call
// on a nil Hold, for a defer in front of the check of the error.
//
// ctx may be the context of the hold or one derived from it. Release ends that context, but goes on waiting: until its
// deadline, or the end of the session, which is [ErrLockLost] then.
func (h *Hold) Release(ctx context.Context) error {
	if h == nil || h.released.Swap(true) {
		return nil
	}
	own := h.isOwnContext(ctx)
	h.mu.Lock()
	h.holds--
	last := h.holds == 0
	if last {
		h.stopListening()
		h.stopWatch()
		h.cancel(ErrReleased)
		h.stopHeartbeats()
	}
	h.mu.Unlock()
	if !last {
		return nil
	}
	defer h.endSpan()
	if own {
		var cancel context.CancelFunc
		ctx, cancel = detached(ctx)
		defer cancel()
	}
	err := h.release(h.currentSpan().EndWith(ctx, h.outcome()))
	if own && h.hasEndedSession() {
		return errtext.Wrap(ErrLockLost, "locks", "release %s", h.path)
	}
	return err
}

func (h *Hold) isReleased() bool { return h.released.Load() }

// Context returns the context for the work that needs the lock. It has the values of the context of Acquire, but not
// its end. It ends when the lock is lost, with the cause [ErrLockLost], or released, with [ErrReleased]. A lock is lost
// when its session ends and when another client deletes its node. The hold notices the deletion if the process may read
// the node. No callback of the program delays that.
func (h *Hold) Context() context.Context { return h.ctx }

// Path returns the path of the node that holds the lock. For a multi lock it is the node of the first lock.
func (h *Hold) Path() string { return h.path }

// Token returns the fencing token: a number that grows from holder to holder of a lock, across all processes. It is the
// transaction id that created the node. A resource that remembers the highest token can refuse a holder that has lost
// the lock and has not noticed yet. Nodes of the same ensemble need no token: see [Hold.Client]. A reader that holds
// the write lock has the token of the writer. For a multi lock it is the token of the first lock and says nothing about
// the others: see Tokens.
func (h *Hold) Token() int64 { return h.tokens[0] }

// Tokens returns the tokens of all locks of a multi lock in order, one for each resource. A multi lock within a multi
// lock contributes all of its tokens. For any other lock it returns the one token.
func (h *Hold) Tokens() []int64 { return slices.Clone(h.tokens) }
