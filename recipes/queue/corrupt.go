package queue

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/zkpath"
)

// corrupt handles an item that cannot be read as the user has configured. If the item stays, it reports that only if
// the cause is new. The error is the reason why the item could not be moved.
func (q *queue[T]) corrupt(m *message, cause error, isNew bool) error {
	handled := false
	if q.onCorrupt != nil {
		err := q.handleCorrupt(Corrupt{Path: q.node(m.name), Data: m.data, Err: cause})
		handled = err == nil
		cause = errors.Join(cause, err)
	}
	if !handled && isNew {
		q.reportItem(q.root, m.name, m.data, cause)
	}
	switch {
	case !handled && q.deadLetters == "":
		if m.lock != nil {
			q.release(m)
		}
		return nil
	case m.lock != nil:
		x := &settlement{m: m, once: true}
		x.done = func(err error) { q.count(q.root, x, err) }
		if q.deadLetters != "" {
			x.dead = m.data
			if x.dead == nil {
				x.dead = []byte{}
			}
		}
		if isNew { // else the item was in quarantine
			x.refused = func(err error) { q.reportItem(q.root, m.name, m.data, err) }
		}
		q.settler.settle(x)
		return nil
	}
	err := q.move(m)
	if isUnanswered(err) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
		return nil // it is found again if it is there
	}
	return err
}

// move deletes an item without a lock, and puts it into the dead letters if they are configured.
func (q *queue[T]) move(m *message) error {
	op := q.client.TransactionOp()
	ops := []builders.TransactionOperation{op.Delete().WithVersion(m.stat.Version).ForPath(q.node(m.name))}
	if q.deadLetters != "" {
		move := op.Create().WithMode(builders.PersistentSequential)
		ops = append(ops, move.ForPath(zkpath.Join(q.deadLetters, m.name.prefix), m.data))
	}
	transaction := func() error {
		if q.watch.current() != m.epoch {
			return zk.ErrNoNode
		}
		_, err := q.client.Transaction().ForOperations(builders.Pipelined(q.life), ops...)
		return err
	}
	err := transaction()
	if errors.Is(err, zk.ErrNoNode) && q.deadLetters != "" && q.ensure(q.life) == nil { // the item or the other path
		err = transaction()
	}
	if err == nil && q.deadLetters != "" {
		q.obs.DeadLettered(q.root)
	}
	return err
}

// handleCorrupt calls the user's handler on its own goroutine, which the handler may end. It does not wait for a
// handler that goes on after the end of its context, as one that calls Close does.
func (q *queue[T]) handleCorrupt(c Corrupt) error {
	handled := make(chan error, 1)
	go func() {
		err := errors.New("queue: OnCorrupt has ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("queue: panic in OnCorrupt: %s", errtext.Panic(p))
			}
			handled <- err
		}()
		err = q.onCorrupt(q.working, c)
	}()
	select {
	case err := <-handled:
		return err
	case <-q.working.Done():
		return ErrClosed
	}
}
