package builders

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// catchUp goes on when the server that we are connected to knows all that was written before, at whichever server. It
// finds a node that may be there where a sync would not do, because the leader takes itself for up to date.
// It answers its own clients
//   - before it has applied what its followers have;
//   - when it leads no longer, and does not know yet: it was cut off, or stood still, while the others went on.
//
// So we have a transaction agreed to that changes nothing: one that leads no longer has nobody to agree.
func (c *call) catchUp(path string, next func()) {
	nothing := jute.Request{Op: jute.OpCheck, Path: path, Version: -1}
	c.ask(jute.Request{Op: jute.OpMulti, Ops: []jute.Request{nothing}}, func() {
		if err := c.Request.Err; err != nil && err != zk.ErrNoNode { // that it is not there was agreed to as well
			c.Finish(err)
			return
		}
		next()
	})
}
