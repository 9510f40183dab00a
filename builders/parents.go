package builders

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/zkpath"
)

// found reports whether an exists has found the node. A node that we may not read exists: newer servers answer with
// this error.
func found(err error) bool { return err == nil || err == zk.ErrNoAuth }

// makeParents creates the missing nodes of path and calls done. It looks for the deepest existing node from the bottom
// up, so that it needs no right to read the nodes above, and creates downward from there. A node that others create
// meanwhile is no error. acl applies to all of them; without it the ACLs of the provider do. err is zk.ErrNoNode if
// another client removes nodes meanwhile, and wraps ErrNoChroot if the chroot is missing.
func (c *call) makeParents(path string, container bool, acl []zk.ACL, answers acls, done func(err error)) {
	var missing []string // from the bottom up
	var look, create func(path string)
	look = func(path string) {
		c.send(jute.Request{Op: jute.OpExists, Path: path}, func() {
			switch err := c.op.Err(); {
			case found(err) && len(missing) == 0:
				done(nil)
			case found(err):
				create(missing[len(missing)-1])
			case err == zk.ErrNoNode && path == "/":
				done(c.env.noNode(path))
			case err == zk.ErrNoNode:
				missing = append(missing, path)
				if parent := zkpath.Parent(path); parent != "/" {
					look(parent)
				} else { // a root exists, unless it is a chroot: the create shows that
					create(path)
				}
			default:
				done(err)
			}
		})
	}
	create = func(path string) {
		c.write(c.env.parentRequest(path, container, c.env.aclOf(path, acl, answers)), true, func() {
			switch err := c.op.Err(); {
			case err == nil || err == zk.ErrNodeExists:
				if missing = missing[:len(missing)-1]; len(missing) == 0 {
					done(nil)
					return
				}
				create(missing[len(missing)-1])
			case errors.Is(err, jute.ErrUnimplemented) && container: // a server without containers
				container = false
				create(path)
			case err == zk.ErrNoNode: // another client removes the new nodes, or there is no chroot
				c.findParent(path, done)
			default:
				done(err)
			}
		})
	}
	if path == "/" && c.env.Chroot() == "" {
		done(nil)
		return
	}
	look(path)
}

// findParent calls done with the error of a create of path whose parent the server has not found: ErrNoChroot if the
// parent is the chroot, and is still missing, else zk.ErrNoNode. A chroot that is made again meanwhile is not missing.
func (c *call) findParent(path string, done func(err error)) {
	if zkpath.Parent(path) != "/" || c.env.Chroot() == "" {
		done(zk.ErrNoNode)
		return
	}
	c.send(jute.Request{Op: jute.OpExists, Path: "/"}, func() {
		switch err := c.op.Err(); {
		case err == zk.ErrNoNode:
			done(c.env.noNode("/"))
		case found(err):
			done(zk.ErrNoNode)
		default:
			done(err)
		}
	})
}
