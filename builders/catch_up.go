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

// unlessNewer calls next, with which an attempt to write begins. After an attempt with a lost answer it looks first at
// the nodes that have to have a version. One that is newer than all that the client knew before is another node: its
// versions began anew, and may have come to the same. Then the operation ends without an outcome: the lost attempt may
// have taken effect before.
func (c *call) unlessNewer(next func(), paths ...string) {
	known, lost := c.op.LostAnswer()
	if !lost || known == 0 || len(paths) == 0 {
		next()
		return
	}
	c.catchUp(paths[0], func() { c.look(known, paths, next) })
}

func (c *call) look(known int64, paths []string, next func()) {
	if len(paths) == 0 {
		next()
		return
	}
	c.send(jute.Request{Op: jute.OpExists, Path: paths[0]}, func() {
		switch err := c.op.Err(); {
		case err != nil && err != zk.ErrNoNode: // the write gets the error of a node that is gone
			c.op.Finish(err)
		case err == nil && c.op.Reply().Stat.Czxid > known:
			c.op.SetUncertain(true)
			c.op.Finish(jute.ErrConnectionLoss)
		default:
			c.look(known, paths[1:], next)
		}
	})
}
