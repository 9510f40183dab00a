// Package zkserver is a ZooKeeper service in memory: the tree, its transactions, sessions, watches and connections, as
// the clients of Apache ZooKeeper see them. It has no files and no listeners: its user accepts the connections.
// Package curatortest makes a test server of it.
//
// A [Service] is the history that all members share: one sequence of transactions, and the sessions. A [Member] is what
// clients connect to: a copy of the tree, which may be behind, and the watches of its connections. One mutex guards a
// whole service, which gives what the protocol promises: one order of all writes, and the events of a write ahead of
// its reply.
package zkserver
