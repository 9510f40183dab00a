// Package locks provides locks between processes. They use the nodes of Java Curator, so Go and Java processes exclude
// each other with one lock.
//
//	mu := locks.NewInterProcessMutex(client, "/locks/orders")
//	hold, err := mu.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer hold.Release(hold.Context())
//	return work(hold.Context(), hold.Token())
//
// The package has a mutex, a read-write lock, semaphores, and a lock of several locks. docs/locks.md helps to choose.
//
// # What a lock promises
//
// A lock has at most one holder at a time, as the server sees it. The holder learns that it can no longer rely on the
// lock: the context of its [Hold] ends when the session is lost, at the latest when the negotiated session timeout has
// passed since the leader of the ensemble last heard of the session, as far as a majority of the servers has proved
// that. The time is that of this process. A paused process, by its garbage collector or its hypervisor, cannot learn it
// in time. Write nodes that must be safe from that with [Hold.Client]: the server refuses the writes of a holder that
// has lost the lock. Any other resource compares [Hold.Token], which grows from holder to holder, and refuses lower
// tokens.
//
// # Re-entrance
//
// Java's locks belong to threads. Here they belong to owners: [WithOwner] puts an owner into a context, and that owner
// acquires a lock that it holds without waiting. It releases each of its holds. Without an owner, each Acquire waits
// for all other holders.
package locks
