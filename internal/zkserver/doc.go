// Package zkserver is a ZooKeeper service in memory: the tree, its transactions, sessions, watches and connections, as
// the clients of Apache ZooKeeper see them. It has no files and no listeners: its user accepts the connections.
// Package curatortest is a test server on top of it.
//
// A [Service] is the history that all members share: one sequence of transactions, and the sessions. A [Member] is what
// clients connect to: a copy of the tree, which may lag, and the watches of its connections. One mutex guards a
// whole service. So the promises of the protocol hold: all writes have one order, and the events of a write come before
// its reply.
package zkserver
