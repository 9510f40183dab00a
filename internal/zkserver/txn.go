package zkserver

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// txn is a transaction: the effect of one write on the tree, the same on every member. A refused write is a transaction
// without changes. It has a zxid, too.
type txn struct {
	zxid    int64
	time    int64 // in milliseconds
	changes []change
	closes  int64 // the session that it ends; 0 if none
}

// change is the effect of one operation on one node.
type change struct {
	op      jute.Op // create, delete, setData, setACL; check for nothing
	path    string
	data    []byte
	acl     []zk.ACL
	version int32 // of setData and setACL; for create, the parent's count of creates
	owner   int64 // of create
}
