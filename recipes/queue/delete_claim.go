package queue

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// deleteClaim claims an item without a lock. The item is read first, and it is ours if our delete succeeds.
type deleteClaim struct {
	place    *place
	name     nodeName
	watch    *queueWatch
	decode   func(data []byte) (contents any, err error)
	epoch    int64
	stat     zk.Stat
	read     builders.Future[[]byte]
	data     []byte
	contents any   // of data, decoded
	err      error // of reading
	isRead   bool
	batch    *deleteBatch // of its deletion, nil if it is deleted alone
	isSplit  bool         // it was submitted again, behind later claims
	deleted  builders.Future[struct{}]
}

// begin starts to read the item. The deletion is submitted when the item turns out to be readable.
func (c *deleteClaim) begin(flight context.Context) {
	c.read = c.place.client.GetData().StoringStatIn(&c.stat).Submit(flight, c.place.node(c.name))
}

func (c *deleteClaim) node() nodeName { return c.name }

// isReadable waits for the item and reports whether it can be consumed.
func (c *deleteClaim) isReadable(ctx context.Context) bool {
	if !c.isRead {
		c.data, c.err = c.read.Wait(ctx)
		c.isRead = true
		if c.err == nil {
			c.err = errDecodingExited // decode may not return
			c.contents, c.err = c.decode(c.data)
		}
	}
	return c.err == nil
}

func (c *deleteClaim) submit(flight context.Context) {
	c.deleted = c.place.client.Delete().WithVersion(c.stat.Version).Submit(flight, c.place.node(c.name))
}

func (c *deleteClaim) done() <-chan struct{} {
	switch {
	case c.err != nil:
		return c.read.Done()
	case c.batch != nil:
		return c.batch.sent.Done()
	}
	return c.deleted.Done()
}

// answer waits for the answer to the deletion.
func (c *deleteClaim) answer(ctx context.Context) error {
	if b := c.batch; b != nil {
		_, err := b.sent.Wait(ctx)
		if err == nil || isUnanswered(err) {
			return err
		}
		b.split()
	}
	if c.err != nil {
		return c.err
	}
	_, err := c.deleted.Wait(ctx)
	return err
}

func (c *deleteClaim) end(ctx context.Context) (*message, error) {
	err := c.err
	if err == nil {
		err = c.answer(ctx)
	}
	switch {
	case err == nil:
		return c.message()
	case errors.Is(err, zk.ErrNoNode):
		return nil, errTaken
	case errors.Is(err, zk.ErrBadVersion):
		return nil, errChanged
	case c.err != nil:
		return c.item(), err
	}
	return nil, err
}

// message returns the deleted item. If the path was deleted after the read, the deleted node may be another item.
func (c *deleteClaim) message() (*message, error) {
	if c.watch.current() != c.epoch {
		return c.item(), errPathDeleted
	}
	return c.item(), nil
}

// item returns the data of the item.
func (c *deleteClaim) item() *message {
	return &message{name: c.name, data: c.data, contents: c.contents, stat: c.stat, epoch: c.epoch}
}

// errPathDeleted is the error of an item whose path was deleted after the item was read.
var errPathDeleted = errtext.Wrap(ErrUncertain, "queue", "the path of the queue was deleted")

// resolve deletes again an item that may be deleted, and one whose batch was split: later claims may be ours.
func (c *deleteClaim) resolve(ctx context.Context) (*message, error) {
	if c.err != nil {
		return nil, nil //nolint:nilnil // it is there
	}
	err := c.answer(ctx)
	isUncertain := !errors.Is(err, framework.ErrNotSent) // it may be deleted
	switch {
	case err == nil:
		return c.message()
	case !isUnanswered(err), !isUncertain && !c.isSplit:
		return nil, nil //nolint:nilnil // it is there, or another consumer has it
	}
	for {
		deleteErr := c.retryDelete(ctx)
		if deleteErr == nil {
			return c.item(), nil
		}
		isUncertain = isUncertain || isUnanswered(deleteErr)
		if !waitqueue.IsOutage(deleteErr) {
			err = deleteErr
			break
		}
		if waitqueue.AwaitConnection(ctx, c.place.client) != nil {
			break
		}
	}
	switch {
	case errors.Is(err, zk.ErrBadVersion), !isUncertain: // it is there, with other data, or another consumer has it
		return nil, nil //nolint:nilnil // so it is listed again
	case errors.Is(err, ErrUncertain):
		return c.item(), err
	}
	return c.item(), errtext.Join(ErrUncertain, err)
}

// retryDelete deletes the item if it is the same node that was read. If it is gone, it was deleted by us or by another
// consumer.
func (c *deleteClaim) retryDelete(ctx context.Context) error {
	flight := builders.Pipelined(ctx)
	if err := c.place.client.Sync().ForPath(flight, c.place.node(c.name)); err != nil {
		return err
	}
	stat, err := c.place.client.CheckExists().ForPath(flight, c.place.node(c.name))
	switch {
	case err != nil:
		return err
	case stat == nil || stat.Czxid != c.stat.Czxid:
		return ErrUncertain
	}
	deleted := c.place.client.Delete().WithVersion(c.stat.Version).Submit(flight, c.place.node(c.name))
	path := c.place.client.CheckExists().Submit(flight, c.place.path)
	if _, err = deleted.Wait(ctx); errors.Is(err, zk.ErrNoNode) {
		return ErrUncertain
	}
	if stat, _ := path.Wait(ctx); err == nil && stat != nil && stat.Czxid > c.stat.Czxid {
		return errPathDeleted // after the check
	}
	return err
}

// deleteBatch groups deletions in one transaction, which costs the server little more than a single deletion. Either
// all of the items become ours, or none.
type deleteBatch struct {
	sent  builders.Future[[]callbacks.OperationResult]
	split func() // retries each by itself: one item of another consumer fails the transaction
}

// deleteTogether submits the deletions of items that were read. failed is called if each must be retried by itself.
func deleteTogether(flight context.Context, p *place, claims []*deleteClaim, failed func()) {
	b := &deleteBatch{split: func() {
		failed()
		for _, c := range claims {
			c.batch, c.isSplit = nil, true
			if c.watch.current() != c.epoch { // the name may belong to another item now
				c.err = zk.ErrNoNode
				continue
			}
			c.submit(flight)
		}
	}}
	ops := make([]builders.TransactionOperation, len(claims))
	for i, c := range claims {
		c.batch = b
		ops[i] = p.client.TransactionOp().Delete().WithVersion(c.stat.Version).ForPath(p.node(c.name))
	}
	b.sent = p.client.Transaction().Submit(flight, ops...)
}
