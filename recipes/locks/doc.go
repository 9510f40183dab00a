// Package locks has locks between processes, as Java Curator has them: the same nodes with the same names, so that Go
// and Java hold one lock against each other.
//
//	mu := locks.NewInterProcessMutex(client, "/locks/orders")
//	hold, err := mu.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer hold.Release(hold.Context())
//	return work(hold.Context(), hold.Token())
//
// There are a mutex, a read-write lock, semaphores, and several locks as one; docs/locks.md says which to take.
//
// # What a lock promises
//
// At most one holder at a time, as the server sees it. A holder is told when it can no longer rely on that: the context
// of its [Hold] ends when the session is lost, at the latest when the negotiated session timeout has passed since the
// leader of the ensemble last heard of it, as far as a majority of the servers has proved that. The clock is that of
// this process. A process that is paused, by its garbage collector or its hypervisor, cannot be told in time. Write the
// nodes that must be safe from it with [Hold.Client]: the server refuses the writes of a holder that has lost the lock.
// Another resource compares [Hold.Token], which grows from holder to holder, and refuses lower ones.
//
// # Re-entrance
//
// Java's locks belong to threads. Here a line of execution that wants to enter again says who it is, once, with
// [WithOwner]; the same owner then enters a lock that it holds without waiting, and every hold is released. Without an
// owner every Acquire is on its own, and waits for all others.
package locks
