package builders

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// catchUp calls next when the connected server has all earlier writes of all servers. It is for finding a node that may
// exist. A sync is not enough, because it trusts the leader, which answers its own clients
//   - before it has applied the newest writes of its followers;
//   - after it has lost its leadership without notice: it was cut off, or stood still, while the others continued.
//
// So catchUp sends a transaction that changes nothing: a former leader gets no majority for it.
func (c *call) catchUp(path string, next func()) {
	nothing := jute.Request{Op: jute.OpCheck, Path: path, Version: -1}
	c.send(jute.Request{Op: jute.OpMulti, Ops: []jute.Request{nothing}}, func() {
		err := c.op.Err()
		if err != nil && err != zk.ErrNoNode && err != zk.ErrNoAuth { // a majority has agreed to these answers too
			c.op.Finish(err)
			return
		}
		next()
	})
}
