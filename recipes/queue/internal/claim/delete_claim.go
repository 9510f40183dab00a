package claim

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// DeleteClaim claims an item without a lock. The item is read first, and it is ours if our delete succeeds.
type DeleteClaim struct {
	Paths    *node.Paths
	Name     node.Name
	Decode   func(data []byte) (contents any, err error)
	Stat     zk.Stat
	Read     builders.Future[[]byte]
	Data     []byte
	contents any   // of data, decoded
	Err      error // of reading
	isRead   bool
	batch    *deleteBatch // of its deletion, nil if it is deleted alone
	isSplit  bool         // it was submitted again, behind later claims
	deleted  builders.Future[struct{}]
}

// Begin starts to read the item. The deletion is submitted when the item turns out to be readable.
func (c *DeleteClaim) Begin(flight context.Context) {
	c.Read = c.Paths.Client.GetData().StoringStatIn(&c.Stat).Submit(flight, c.Paths.Item(c.Name))
}

// Node returns the name of the item.
func (c *DeleteClaim) Node() node.Name { return c.Name }

// IsReadable waits for the item and reports whether it can be consumed.
func (c *DeleteClaim) IsReadable(ctx context.Context) bool {
	if !c.isRead {
		c.Data, c.Err = c.Read.Wait(ctx)
		c.isRead = true
		if c.Err == nil {
			c.Err = ErrDecodingExited // decode may not return
			c.contents, c.Err = c.Decode(c.Data)
		}
	}
	return c.Err == nil
}

// Submit submits the deletion.
func (c *DeleteClaim) Submit(flight context.Context) {
	c.deleted = c.Paths.Client.Delete().WithVersion(c.Stat.Version).Submit(flight, c.Paths.Item(c.Name))
}

// Done implements [Claim].
func (c *DeleteClaim) Done() <-chan struct{} {
	switch {
	case c.Err != nil:
		return c.Read.Done()
	case c.batch != nil:
		return c.batch.sent.Done()
	}
	return c.deleted.Done()
}

// await waits for the answer to the deletion.
func (c *DeleteClaim) await(ctx context.Context) error {
	if b := c.batch; b != nil {
		_, err := b.sent.Wait(ctx)
		if err == nil || reply.IsUnanswered(err) {
			return err
		}
		b.split()
	}
	if c.Err != nil {
		return c.Err
	}
	_, err := c.deleted.Wait(ctx)
	return err
}

// End implements [Claim].
func (c *DeleteClaim) End(ctx context.Context) (*Message, error) {
	err := c.Err
	if err == nil {
		err = c.await(ctx)
	}
	switch {
	case err == nil:
		return c.item(), nil
	case errors.Is(err, zk.ErrNoNode):
		return nil, node.ErrTaken
	case errors.Is(err, zk.ErrBadVersion):
		return nil, node.ErrChanged
	case c.Err != nil:
		return c.item(), err
	}
	return nil, err
}

// item returns the data of the item.
func (c *DeleteClaim) item() *Message {
	return &Message{Name: c.Name, Data: c.Data, Contents: c.contents, Stat: c.Stat}
}

// Resolve deletes again an item that may be deleted, and one whose batch was split: later claims may be ours.
func (c *DeleteClaim) Resolve(ctx context.Context) (*Message, error) {
	if c.Err != nil {
		return nil, nil //nolint:nilnil // it is there
	}
	err := c.await(ctx)
	isUncertain := !errors.Is(err, framework.ErrNotSent) // it may be deleted
	switch {
	case err == nil:
		return c.item(), nil
	case !reply.IsUnanswered(err), !isUncertain && !c.isSplit:
		return nil, nil //nolint:nilnil // it is there, or another consumer has it
	}
	for {
		deleteErr := c.retryDelete(ctx)
		if deleteErr == nil {
			return c.item(), nil
		}
		isUncertain = isUncertain || reply.IsUnanswered(deleteErr)
		if !waitqueue.IsPassing(deleteErr) {
			err = deleteErr
			break
		}
		if waitqueue.AwaitConnection(ctx, c.Paths.Client) != nil {
			break
		}
	}
	switch {
	case errors.Is(err, zk.ErrBadVersion), !isUncertain: // it is there, with other data, or another consumer has it
		return nil, nil //nolint:nilnil // so it is listed again
	case errors.Is(err, node.ErrUncertain):
		return c.item(), err
	}
	return c.item(), errtext.Join(node.ErrUncertain, errtext.Sent(err, framework.ErrNotSent))
}

// retryDelete deletes the item if it is the same node that was read. If it is gone, it was deleted by us or by another
// consumer.
func (c *DeleteClaim) retryDelete(ctx context.Context) error {
	flight := builders.Pipelined(ctx)
	if err := c.Paths.Client.Sync().ForPath(flight, c.Paths.Item(c.Name)); err != nil {
		return err
	}
	stat, err := c.Paths.Client.CheckExists().ForPath(flight, c.Paths.Item(c.Name))
	switch {
	case err != nil:
		return err
	case stat == nil || stat.Czxid != c.Stat.Czxid:
		return node.ErrUncertain
	}
	deleted := c.Paths.Client.Delete().WithVersion(c.Stat.Version).Submit(flight, c.Paths.Item(c.Name))
	if _, err = deleted.Wait(ctx); errors.Is(err, zk.ErrNoNode) {
		return node.ErrUncertain
	}
	return err
}

// deleteBatch groups deletions in one transaction, which costs the server little more than a single deletion. Either
// all of the items become ours, or none.
type deleteBatch struct {
	sent  builders.Future[[]callbacks.OperationResult]
	split func() // retries each by itself: one item of another consumer fails the transaction
}

// DeleteTogether submits the deletions of items that were read.
func DeleteTogether(flight context.Context, p *node.Paths, claims []*DeleteClaim) {
	if len(claims) <= 1 {
		for _, c := range claims {
			c.Submit(flight)
		}
		return
	}
	b := &deleteBatch{split: func() {
		for _, c := range claims {
			c.batch, c.isSplit = nil, true
			c.Submit(flight)
		}
	}}
	ops := make([]builders.TransactionOperation, len(claims))
	for i, c := range claims {
		c.batch = b
		ops[i] = p.Client.TransactionOp().Delete().WithVersion(c.Stat.Version).ForPath(p.Item(c.Name))
	}
	b.sent = p.Client.Transaction().Submit(flight, ops...)
}
