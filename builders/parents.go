package builders

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/zkpath"
)

// found reports whether an exists has found the node. One that we may not read is there: newer servers say so.
func found(err error) bool { return err == nil || err == zk.ErrNoAuth }

// makeParents creates what is missing of path and goes on with done. It looks for the deepest node that exists from
// the bottom up, so that no right to read what is above is needed, and creates downward from there. That somebody
// else creates the same is no error. acl is given for all of them; without it there are the answers of
// the provider.
func (c *call) makeParents(path string, container bool, acl []zk.ACL, answers acls, done func(err error)) {
	var missing []string // from the bottom up
	var look, create func(path string)
	look = func(path string) {
		c.ask(jute.Request{Op: jute.OpExists, Path: path}, func() {
			switch err := c.Request.Err; {
			case found(err) && len(missing) == 0:
				done(nil)
			case found(err):
				create(missing[len(missing)-1])
			case err == zk.ErrNoNode && path != "/":
				missing = append(missing, path)
				if parent := zkpath.Parent(path); parent != "/" {
					look(parent)
				} else { // the root is there
					create(path)
				}
			default:
				done(err)
			}
		})
	}
	create = func(path string) {
		c.write(c.env.parentRequest(path, container, c.env.aclOf(path, acl, answers)), true, func() {
			switch err := c.Request.Err; {
			case err == nil || err == zk.ErrNodeExists:
				if missing = missing[:len(missing)-1]; len(missing) == 0 {
					done(nil)
					return
				}
				create(missing[len(missing)-1])
			case err == jute.ErrUnimplemented && container: // a server without containers
				container = false
				create(path)
			default: // NoNode too: somebody removes what we create; the operation will say so
				done(err)
			}
		})
	}
	if path == "/" {
		done(nil)
		return
	}
	look(path)
}
