package desired

import (
	"context"
	"errors"
	"fmt"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/waitqueue"
)

const (
	// suspectSize is the size from which on data may be what a server does not read.
	suspectSize = 4 << 10
	// maxHangUps is how often the connection is lost with one write alone under way until that is taken for the reason.
	maxHangUps = 3
)

// suspect has the largest of the writes that were lost with their connection travel alone the next time, and counts the
// losses of one that does: a server answers nothing to a request that is longer than it reads. The caller holds mu.
func (r *Reconciler) suspect(writes []planned, err error) {
	if !waitqueue.IsOutage(err) || errors.Is(err, builders.ErrNotSent) {
		return
	}
	largest := &writes[0]
	for i := range writes {
		writes[i].n.lost = err
		if len(writes[i].data) > len(largest.data) {
			largest = &writes[i]
		}
	}
	if n := largest.n; len(largest.data) >= suspectSize && largest.action != remove && largest.change == n.gen {
		n.alone = true
		if len(writes) == 1 {
			n.hangUps++
		}
	}
}

// hangUp returns the error of a write with which the connection is lost again and again, else nil.
func (n *Node) hangUp(cause error) error {
	if n.hangUps < maxHangUps {
		return nil
	}
	return fmt.Errorf("%w: it has %d bytes, and each connection ends with it: the server may read fewer: %v",
		builders.ErrRequestTooLarge, len(n.data), cause) //nolint:errorlint // it is no outage
}

// endOf returns the error of ctx, which has ended: with the reason err of the node or, if there is none, that for a
// missing connection or of the lost write.
func (n *Node) endOf(ctx context.Context, err error) error {
	end := hook.EndOf(ctx, n.r.client)
	if err == nil && n.r.client.IsConnected() {
		n.r.mu.Lock()
		err = n.lost
		n.r.mu.Unlock()
	}
	return errtext.Join(errtext.Wrap(end, "curator", ""), err)
}
