package node

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// Paths holds the client of a queue and the paths of its nodes.
type Paths struct {
	Client      *framework.Client
	Queue       string
	Locks       string // "" without locks
	DeadLetters string // "" if there are none
}

// Item returns the path of an item.
func (p *Paths) Item(n Name) string { return zkpath.Join(p.Queue, n.Whole) }

// Lock returns the path of the lock of an item.
func (p *Paths) Lock(n Name) string { return zkpath.Join(p.Locks, n.Whole) }

// HasLocks reports whether items are locked while they are consumed.
func (p *Paths) HasLocks() bool { return p.Locks != "" }

// Create creates the nodes of the queue, with Java's data and Java's kind of parents.
func (p *Paths) Create(ctx context.Context) error {
	for _, path := range []string{p.Queue, p.Locks, p.DeadLetters} {
		if path == "" {
			continue
		}
		_, err := p.Client.Create().CreatingParentContainersIfNeeded().ForPath(ctx, path, nil)
		if err == nil || errors.Is(err, zk.ErrNodeExists) {
			continue
		}
		if stat, _ := p.Client.CheckExists().ForPath(ctx, path); stat == nil { // it may exist without the permission
			return err
		}
	}
	return nil
}
