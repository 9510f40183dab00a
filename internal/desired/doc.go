// Package desired keeps nodes in ZooKeeper for as long as a process wants them: persistent nodes, group members and
// registered instances. One [Reconciler] for each client looks at the desired nodes, compares them with what they
// should be, and writes only what differs.
//
// # Whose node it is
//
// An ephemeral node is ours if it belongs to the current session of the client. A node of an earlier session of the
// client is replaced, with a delete of its version and a create in one transaction: the server is about to remove it
// with its session. A node of anybody else stays. It is reported once, and looked at again when it goes and after
// growing pauses. The other modes have no owner: a node that exists is adopted.
//
// # Hints and facts
//
// A watch event, a lost connection and a write without an answer are hints: they make the reconciler look at a node.
// Only the answer to a read or to a write is a fact, and only if the session is the one in which it was requested. All
// requests of a connection travel in one pipeline, so an answer is never older than that of an earlier request.
//
// # Few requests
//
// Nodes with the same parent share one recursive watch, are read with one request for each hundred of them, and are
// written in transactions. The watch survives the loss of a connection within the session, so a new connection costs
// these reads and nothing else. A parent with few desired nodes has no such watch, because its events would be those of
// all its children, in every process: there each node has a one-shot watch, which the next connection of the session
// sets again without a read. So it is with servers before 3.6.
package desired
