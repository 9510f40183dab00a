package callbacks

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// EventType is the kind of operation or occurrence that an [Event] reports.
type EventType int

// The event types, with the meaning of Java's CuratorEventType.
const (
	Create EventType = iota + 1
	Delete
	Exists
	GetData
	SetData
	Children
	Sync
	GetACL
	SetACL
	Transaction
	GetConfig
	Reconfig
	Watched
	RemoveWatches
	Closing
	AddWatch
	MultiRead
	GetEphemerals
	GetAllChildrenNumber
)

var eventNames = [...]string{
	Create: "CREATE", Delete: "DELETE", Exists: "EXISTS", GetData: "GET_DATA", SetData: "SET_DATA",
	Children: "CHILDREN", Sync: "SYNC", GetACL: "GET_ACL", SetACL: "SET_ACL", Transaction: "TRANSACTION",
	GetConfig: "GET_CONFIG", Reconfig: "RECONFIG", Watched: "WATCHED", RemoveWatches: "REMOVE_WATCHES",
	Closing: "CLOSING", AddWatch: "ADD_WATCH", MultiRead: "MULTI_READ",
	GetEphemerals: "GET_EPHEMERALS", GetAllChildrenNumber: "GET_ALL_CHILDREN_NUMBER",
}

// String returns Java's name of the type.
func (t EventType) String() string {
	if t <= 0 || int(t) >= len(eventNames) {
		return "UNKNOWN"
	}
	return eventNames[t]
}

// Event is the result of a background operation, or an event for a listener of the client. Only the fields that the
// operation has are set. In Java: CuratorEvent.
type Event struct {
	Type EventType
	// Err is nil if the operation succeeded; errors.Is matches the zk.Err… of the failure. In Java: the result code.
	Err error
	// Path is the path that the caller gave, or the path of a watch event, without namespace and chroot.
	Path string
	// Name is the path of the node that was created, with protection prefix and sequence number.
	Name     string
	Data     []byte
	Stat     *zk.Stat // nil if the operation has none, or the node does not exist
	Children []string // of a getEphemerals: the paths
	Count    int      // of a getAllChildrenNumber
	ACL      []zk.ACL
	Results  []OperationResult // of a transaction
	Reads    []ReadResult      // of a multiRead
	Watched  zk.Event          // of type Watched
}

// BackgroundCallback gets the result of a background operation. ctx has the values of the operation's context, and
// nothing ends it. It is called exactly once for each operation that was accepted, also when the client is closed. In
// Java: BackgroundCallback.
type BackgroundCallback func(ctx context.Context, ev Event)

// OperationType is the kind of an operation in a transaction.
type OperationType int

// The operation types. In Java: OperationType.
const (
	OperationCreate OperationType = iota + 1
	OperationDelete
	OperationSetData
	OperationCheck
)

var operationNames = [...]string{
	OperationCreate: "CREATE", OperationDelete: "DELETE", OperationSetData: "SET_DATA", OperationCheck: "CHECK",
}

// String returns Java's name of the type.
func (t OperationType) String() string {
	if t <= 0 || int(t) >= len(operationNames) {
		return "UNKNOWN"
	}
	return operationNames[t]
}

// OperationResult is the outcome of one operation of a transaction. In Java: CuratorTransactionResult.
type OperationResult struct {
	Type OperationType
	// ForPath is the path that the caller gave.
	ForPath string
	// ResultPath is the path of the created node; empty for other operations.
	ResultPath string
	// Stat is that of a created or changed node, nil otherwise. Servers before 3.8.2 send none for a node that is neither
	// a container nor has a TTL. It is also nil if a protected transaction was found to have taken effect after its answer
	// was lost.
	Stat *zk.Stat
	// Err is the error of this operation. When one operation of a transaction fails, none takes effect: the operations
	// before it have no error, and those after it have one that means that they were not tried.
	Err error
}

// ReadResult is the outcome of one read of a multiRead.
type ReadResult struct {
	// Path is the path that the caller gave.
	Path     string
	Data     []byte
	Stat     zk.Stat  // of the node whose data was read
	Children []string // of the node whose children were listed, in no order
	// Err is the error of this read; the others are not affected. Data that does not decompress is returned as it is
	// stored.
	Err error
}
