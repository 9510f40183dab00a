package queue

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
)

// lockClaim claims an item by creating its lock. The lock is its own if it holds the id of the claim. Another lock of
// the same session may belong to another queue.
type lockClaim struct {
	place    *place
	watch    *queueWatch
	name     nodeName
	id       string
	epoch    int64
	gap      int64 // of the watch
	unlocks  int   // how often the lock of the item was deleted before
	lock     *itemLock
	created  builders.Future[string]
	lockStat zk.Stat
	read     builders.Future[[]byte]
	stat     zk.Stat
}

// unlockedInList stands for a lock that was deleted before a list, perhaps after the claim was submitted.
const unlockedInList = -1

func (c *lockClaim) node() nodeName { return c.name }

// begin reads the item after the create of the lock: another may have consumed it before.
func (c *lockClaim) begin(flight context.Context) {
	c.lock = &itemLock{name: c.name.whole, id: c.id, flight: flight, gap: c.gap}
	c.watch.follow(c.lock)
	create := c.place.client.Create().WithMode(builders.Ephemeral).Uncompressed().StoringStatIn(&c.lockStat)
	c.created = create.Submit(flight, c.place.lock(c.name), []byte(c.id))
	c.watch.submitted(c.lock, c.created.Done())
	c.read = c.place.client.GetData().StoringStatIn(&c.stat).Submit(flight, c.place.node(c.name))
}

func (c *lockClaim) done() <-chan struct{} { return c.read.Done() }

func (c *lockClaim) end(ctx context.Context) (*message, error) {
	m, err := c.answer(ctx)
	if m == nil {
		c.watch.forget(c.lock)
	}
	return m, err
}

func (c *lockClaim) answer(ctx context.Context) (*message, error) {
	_, err := c.created.Wait(ctx)
	data, readErr := c.read.Wait(ctx)
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil, errTaken
	case err != nil:
		return nil, err
	case errors.Is(readErr, framework.ErrNotSent): // the create was sent
		return nil, framework.ErrConnectionLoss
	case isUnanswered(readErr):
		return nil, readErr
	}
	session := c.place.client.Session()
	if session == nil || session.ID() != c.lockStat.EphemeralOwner {
		return nil, errTaken // the lock was deleted with its session
	}
	c.lock.session = session
	m := &message{name: c.name, data: data, stat: c.stat, epoch: c.epoch, lock: c.lock}
	if errors.Is(readErr, zk.ErrNoNode) {
		readErr = errTaken
	}
	return m, readErr
}

// resolve returns a lock that may exist, to be released. The item is then listed and locked again.
func (c *lockClaim) resolve(ctx context.Context) (*message, error) {
	m, err := c.end(ctx)
	session := c.place.client.Session()
	open := mayBeApplied(err)
	if m != nil || session == nil || !open {
		return m, err
	}
	c.lock.gap, c.lock.session = -1, session
	return &message{name: c.name, lock: c.lock}, err
}

// readLock returns the data of an item's lock and the session that owns it, nothing if there is none. It syncs first,
// so that the server has applied the requests of an earlier connection.
func (p *place) readLock(flight context.Context, n nodeName) (id string, owner int64, err error) {
	if err := p.client.Sync().ForPath(flight, p.lock(n)); err != nil {
		return "", 0, err
	}
	var stat zk.Stat
	data, err := p.client.GetData().Undecompressed().StoringStatIn(&stat).ForPath(flight, p.lock(n))
	if errors.Is(err, zk.ErrNoNode) {
		return "", 0, nil
	}
	return string(data), stat.EphemeralOwner, err
}
