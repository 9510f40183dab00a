package queue

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
	"github.com/gocurator/curator/zkpath"
)

// corrupt moves an item that cannot be read to the dead letters; without a path for them the item stays. It reports the
// cause only if it is new. The error is the reason why the item could not be moved.
func (q *queue[T]) corrupt(m *claim.Message, cause error, isNew bool) error {
	if isNew {
		q.reportItem(q.root, m.Name, m.Data, cause)
	}
	switch {
	case q.paths.DeadLetters == "" && m.Lock != nil:
		q.release(m)
		return nil
	case q.paths.DeadLetters == "":
		return nil
	case m.Lock != nil:
		x := &claim.Settlement{Message: m, Dead: m.Data, Once: true}
		if x.Dead == nil {
			x.Dead = []byte{}
		}
		x.Done = func(err error) { q.count(q.root, x, err) }
		if isNew { // else the item was in quarantine
			x.Refused = func(err error) { q.reportItem(q.root, m.Name, m.Data, err) }
		}
		q.settler.Settle(x)
		return nil
	}
	err := q.move(m)
	if reply.IsUnanswered(err) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
		return nil // it is found again if it is there
	}
	return err
}

// move moves an item without a lock to the dead letters.
func (q *queue[T]) move(m *claim.Message) error {
	op := q.paths.Client.TransactionOp()
	move := op.Create().WithMode(builders.PersistentSequential)
	transaction := func() error {
		_, err := q.paths.Client.Transaction().ForOperations(builders.Pipelined(q.life),
			op.Delete().WithVersion(m.Stat.Version).ForPath(q.paths.Item(m.Name)),
			move.ForPath(zkpath.Join(q.paths.DeadLetters, m.Name.Prefix), m.Data))
		return err
	}
	err := transaction()
	if errors.Is(err, zk.ErrNoNode) && q.paths.Create(q.life) == nil { // the item or the other path
		err = transaction()
	}
	if err == nil {
		q.obs.DeadLettered(q.root)
	}
	return err
}
