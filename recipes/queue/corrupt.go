package queue

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// isCorrupt reports whether err is about the bytes of an item.
func isCorrupt(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, framework.ErrDataInconsistency)
}

// spoil does with an item that cannot be read what was asked for. session is that of its lock, if there is one.
func (q *queue[T]) spoil(n nodeName, data []byte, version int32, session *framework.Session, cause error) {
	handled := false
	if q.onCorrupt != nil {
		err := q.tellOfCorrupt(Corrupt{Path: q.node(n), Data: data, Err: cause})
		handled = err == nil
		cause = errors.Join(cause, err)
	}
	if !handled {
		q.reportItem(q.root, n.whole, data, cause)
	}
	if !handled && q.deadLetters == "" {
		q.markSpoilt(n)
		if session != nil {
			q.unlock(n, session)
		}
		return
	}
	op := q.client.TransactionOp()
	ops := []builders.TransactionOperation{op.Delete().WithVersion(version).ForPath(q.node(n))}
	if q.deadLetters != "" {
		move := op.Create().WithMode(builders.PersistentSequential)
		ops = append(ops, move.ForPath(zkpath.Join(q.deadLetters, n.prefix), data))
	}
	if session != nil {
		ops = append(ops, op.Delete().ForPath(q.lock(n)))
	}
	transaction := func() error {
		_, err := q.client.Transaction().ForOperations(builders.InOneFlight(q.root), ops...)
		return err
	}
	err := transaction()
	if errors.Is(err, zk.ErrNoNode) && q.deadLetters != "" && q.ensure(q.root) == nil { // it, or where the letters go
		err = transaction()
	}
	if err == nil {
		return
	}
	if session != nil {
		q.unlock(n, session)
	}
	if !lineup.IsOutage(err) && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrBadVersion) {
		q.leaveOut(n, data, err)
	}
}

func (q *queue[T]) tellOfCorrupt(c Corrupt) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("queue: panic in OnCorrupt: %s", errtext.Panic(p))
		}
	}()
	return q.onCorrupt(q.working, c)
}

// leaveOut reports an item that cannot be taken, and leaves it alone from now on.
func (q *queue[T]) leaveOut(n nodeName, data []byte, err error) {
	q.markSpoilt(n)
	q.reportItem(q.root, n.whole, data, err)
}

func (q *queue[T]) markSpoilt(n nodeName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spoilt[n.whole] = struct{}{}
}
