package queue

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/zkpath"
)

// place holds the paths of a queue's nodes.
type place struct {
	client      Client
	path        string
	lockPath    string // "" without locks
	deadLetters string // "" if there are none
}

// node returns the path of an item.
func (p *place) node(n nodeName) string { return zkpath.Join(p.path, n.whole) }

// lock returns the path of the lock of an item.
func (p *place) lock(n nodeName) string { return zkpath.Join(p.lockPath, n.whole) }

func (p *place) hasLocks() bool { return p.lockPath != "" }

// ensure creates the nodes of the queue, with Java's data and Java's kind of parents.
func (p *place) ensure(ctx context.Context) error {
	for _, path := range []string{p.path, p.lockPath, p.deadLetters} {
		if path == "" {
			continue
		}
		_, err := p.client.Create().CreatingParentContainersIfNeeded().ForPath(ctx, path, nil)
		if err == nil || errors.Is(err, zk.ErrNodeExists) {
			continue
		}
		if stat, _ := p.client.CheckExists().ForPath(ctx, path); stat == nil { // it may exist without the permission
			return err
		}
	}
	return nil
}
