// Package simulation runs the recipes against an ensemble in virtual time, while everything between and around them
// fails at random. It has tests only.
//
// A seed makes a world in a bubble of testing/synctest: an ensemble in memory, processes with a client each, actors
// that contend for locks and leadership, use queues and meet at barriers, and faults. Every byte takes a random time
// over the network, so that hardly two events have the same time. Therefore a seed replays event by event for a minute
// or two, until some goroutines of one process are ready at the same moment: then the scheduler decides about their
// order. A violation occurs again at once or after a few attempts.
//
// # Locks and elections
//
// The judge compares the contexts of holds and leaderships with the decisions of the servers:
//
//   - At no moment two contexts are alive that exclude each other, nor more leases than there are.
//   - A context that is alive has its node on the leader of the ensemble.
//   - Tokens grow from grant to grant.
//   - Each waiter gets its grant in bounded time after the end of the faults.
//   - At the end neither node nor watch, session, connection nor goroutine is left.
//
// # Queues
//
// Each process puts, consumes and pulls items, with queues that it opens and closes at random. The ledger of a queue
// records every item from its put to its end, with its nodes and their locks on the servers:
//
//   - A put that has succeeded has created a node, and one that has failed has created none. A flush succeeds after the
//     outcome of each put.
//   - With a lock path a node goes when its items were consumed, and not before. An item is delivered under a lock, and
//     again only after the lock ended with its session or its process, was deleted by an operator, or the queue was
//     closed meanwhile. An item has a second node after a failure, or if the connection was lost during its put.
//   - Without a lock path an item is delivered once, after its node is gone. An item without a delivery was reported
//     with its bytes, or claimed by a process that has died.
//   - Nodes are in the order of the puts of one producer, but for a put that was reported with an unknown outcome.
//     Without a lock path, a consumer gets items in that order.
//   - Nothing is delivered before it is due, after it was removed by its id, or after Close.
//   - Close takes no longer than its time to flush, from the return of the consumers.
//   - After the end of the faults everything is consumed in bounded time.
//
// # Barriers
//
// A double barrier has a member in each process:
//
//   - It opens when enough members are there at one moment, and a member is in only by such an opening.
//   - A member is in once for each opening, and never by an opening that all others have left.
//   - A member is out when no member is left that was there at the opening.
//   - After the end of the faults every member has a round in bounded time, and the barrier is empty and shut.
//
// # Limits
//
// The model has these documented limits:
//
//   - An operator deletes the node of a holder, or ends its session on the server. The holder cannot get the event
//     before the next grant. Such a hold excludes nobody from then on. It must end within a bound if the recipe
//     promises that.
//   - A crashed process holds nothing, whatever its contexts say.
//   - A stopped process gets no events. The simulation cannot stop one process alone, but its clock can jump, as after
//     a suspension. Tokens must grow: they protect from late writes.
//   - Servers do not refuse to list a line. A client whose create has an unknown outcome finds its node by a list; if
//     that is refused, the node stays until the session ends.
//   - The clock of a server does not jump: ZooKeeper measures sessions with a monotonic one.
//   - An operator deletes queues with their items. Of a barrier it deletes nodes of members while it is open, but never
//     the node that opens it: a member that has not seen it would wait for the others, and the others for it.
package simulation
