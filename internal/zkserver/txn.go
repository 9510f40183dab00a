package zkserver

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// txn is a transaction: the effect of one write on the tree, the same on every member. A refused write is a transaction
// without changes, and has a zxid too.
type txn struct {
	zxid    int64
	time    int64 // Unix time in milliseconds
	changes []change
	closes  int64 // the session that the transaction ends; 0 means none
}

// change is the effect of one operation on one node.
type change struct {
	op      jute.Op // create, delete, setData, setACL or reconfig; a check changes nothing
	path    string
	data    []byte
	acl     []zk.ACL
	version int32 // the version after a setData or setACL; for a create node.creates of the parent
	owner   int64 // the owner of a created node
}
