// Package nullserver is a ZooKeeper server that does no work: it keeps nothing, answers every request at once
// and with success, and so shows how fast a client is on its own, where a real server would be the limit.
//
// Every node exists, holds [PayloadSize] bytes and has no children; a create answers with the path it was
// given, also for a sequential mode. Watches are accepted and never fire. A recipe that looks for its own node
// among the children, as a lock does, does not work here.
//
// In one process with the client, which then pays for both:
//
//	srv, err := nullserver.New()
//	defer srv.Close()
//	client, err := framework.New(srv.Addr())
//
// In a process of its own, so that its CPU time is not the client's: a program calls [Run] when it is asked
// to be the server, and starts itself that way with [Spawn].
package nullserver
