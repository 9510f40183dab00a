// Package simulation runs the recipes against an ensemble in virtual time, while everything between and around them
// fails at random. It has tests only.
//
// A seed makes a world in a bubble of testing/synctest: an ensemble in memory, processes with a client each, actors
// that contend for locks and leadership, use queues and meet at barriers, and faults. Every byte takes a random time
// over the network, so that hardly two things happen at the same moment. Therefore a seed replays event by event for a
// minute or two, until some goroutines of one process are ready at the same moment: then their order is that of the
// scheduler. A violation that does not come back at once comes back in a few attempts.
//
// # Locks and elections
//
// The judge compares what the actors hold, by the contexts of their holds and leaderships, with what the servers have
// decided:
//
//   - At no moment two contexts are alive that exclude each other, nor more leases than there are.
//   - A context that is alive has its node on the leader of the ensemble.
//   - Tokens grow from grant to grant.
//   - Whoever waits is granted in bounded time once the faults end.
//   - At the end neither node nor watch, session, connection nor goroutine is left.
//
// # Queues
//
// Each process puts, consumes and pulls items, with queues that it opens and closes at random. The ledger of a queue
// has every item from its put to its end, with its nodes and their locks as the servers had them:
//
//   - A put that has succeeded has made a node, and one that has failed has made none. A flush that succeeds comes
//     after the outcome of each put.
//   - With a lock path a node goes when its items were consumed, and not before. An item is delivered under a lock, and
//     again only after the lock ended with its session or its process, was deleted by an operator, or the queue was
//     closed over it. An item has a second node after a failure, or if the connection was lost when it was put.
//   - Without a lock path an item is delivered when its node is gone, and once. What nobody is given was told with its
//     bytes, or claimed by a process that has died.
//   - Nodes are in the order of the puts of one producer, but for a put whose outcome was told as unknown.
//     Without a lock path, a consumer gets items in that order.
//   - Nothing is delivered before it is due, after it was removed by its id, or after Close.
//   - Close takes no longer than its time to flush, from when the consumers are back.
//   - Once the faults end everything is consumed in bounded time.
//
// # Barriers
//
// A double barrier has a member in each process:
//
//   - It opens when as many members as it needs are there at one moment, and a member is in only by such an opening.
//   - A member is in once for each opening, and never by one that all others have left.
//   - A member is out when no member is left that was there at the opening.
//   - Once the faults end every member has a round in bounded time, and the barrier is empty and shut.
//
// # Limits
//
// Some limits are documented, and modelled as they are:
//
//   - Somebody deletes the node of a holder, or ends its session on the server. The holder cannot be told before the
//     next one is granted. Such a hold excludes nobody from then on; it has to end within a bound where that is
//     promised.
//   - A crashed process holds nothing, whatever its contexts say.
//   - A process that stands still cannot be told of anything, and cannot be stopped alone in here. Its clock can jump,
//     as it does after a suspension, and tokens have to grow: they protect from its late writes.
//   - Servers do not refuse to list a line. A client whose create has an unknown outcome finds its node by a list; if
//     that is refused, the node stays until the session ends.
//   - The clock of a server does not jump: ZooKeeper measures sessions with a monotonic one.
//   - An operator deletes queues with their items. Of a barrier it deletes nodes of members while it is open, but never
//     the node that opens it: a member that has not heard of it would wait for the others, and they for it.
package simulation
