package claim

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// LockClaim claims an item by creating its lock. The lock is its own if it holds the id of the claim. Another lock of
// the same session may belong to another queue.
type LockClaim struct {
	Paths    *node.Paths
	Watch    *Watch
	Name     node.Name
	ID       string
	Gap      int64 // of the watch
	Unlocks  int   // how often the lock of the item was deleted before
	lock     *Lock
	created  builders.Future[string]
	lockStat zk.Stat
	read     builders.Future[[]byte]
	stat     zk.Stat
}

// UnlockedInList stands for a lock that was deleted before a list, perhaps after the claim was submitted.
const UnlockedInList = -1

// Node returns the name of the item.
func (c *LockClaim) Node() node.Name { return c.Name }

// Begin reads the item after the create of the lock: another may have consumed it before.
func (c *LockClaim) Begin(flight context.Context) {
	c.lock = &Lock{name: c.Name.Whole, ID: c.ID, flight: flight, gap: c.Gap}
	c.Watch.follow(c.lock)
	create := c.Paths.Client.Create().WithMode(builders.Ephemeral).Uncompressed().StoringStatIn(&c.lockStat)
	c.created = create.Submit(flight, c.Paths.Lock(c.Name), []byte(c.ID))
	c.Watch.submitted(c.lock, c.created.Done())
	c.read = c.Paths.Client.GetData().StoringStatIn(&c.stat).Submit(flight, c.Paths.Item(c.Name))
}

// Done implements [Claim].
func (c *LockClaim) Done() <-chan struct{} { return c.read.Done() }

// End implements [Claim].
func (c *LockClaim) End(ctx context.Context) (*Message, error) {
	m, err := c.await(ctx)
	if m == nil {
		c.Watch.forget(c.lock)
	}
	return m, err
}

func (c *LockClaim) await(ctx context.Context) (*Message, error) {
	_, err := c.created.Wait(ctx)
	data, readErr := c.read.Wait(ctx)
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil, node.ErrTaken
	case err != nil:
		return nil, err
	case errors.Is(readErr, framework.ErrNotSent): // the create was sent
		return nil, framework.ErrConnectionLoss
	case reply.IsUnanswered(readErr):
		return nil, readErr
	}
	session := c.Paths.Client.Session()
	if session == nil || session.ID() != c.lockStat.EphemeralOwner {
		return nil, node.ErrTaken // the lock was deleted with its session
	}
	c.lock.Session = session
	m := &Message{Name: c.Name, Data: data, Stat: c.stat, Lock: c.lock}
	if errors.Is(readErr, zk.ErrNoNode) {
		readErr = node.ErrTaken
	}
	return m, readErr
}

// Resolve returns a lock that may exist, to be released. The item is then listed and locked again.
func (c *LockClaim) Resolve(ctx context.Context) (*Message, error) {
	m, err := c.End(ctx)
	session := c.Paths.Client.Session()
	open := reply.MayBeApplied(err)
	if m != nil || session == nil || !open {
		return m, err
	}
	c.lock.gap, c.lock.Session = -1, session
	return &Message{Name: c.Name, Lock: c.lock}, err
}

// ReadLock returns the data of an item's lock and the session that owns it, nothing if there is none. It syncs first,
// so that the server has applied the requests of an earlier connection.
func ReadLock(flight context.Context, p *node.Paths, n node.Name) (id string, owner int64, err error) {
	if err := p.Client.Sync().ForPath(flight, p.Lock(n)); err != nil {
		return "", 0, err
	}
	var stat zk.Stat
	data, err := p.Client.GetData().Undecompressed().StoringStatIn(&stat).ForPath(flight, p.Lock(n))
	if errors.Is(err, zk.ErrNoNode) {
		return "", 0, nil
	}
	return string(data), stat.EphemeralOwner, err
}
