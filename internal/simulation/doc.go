// Package simulation runs the recipes against an ensemble in virtual time, while everything between and around them
// fails at random. It has tests only.
//
// A seed makes a world in a bubble of testing/synctest: an ensemble in memory, processes with one or several clients,
// actors that contend for locks and leadership, use queues and meet at barriers, and faults. Every byte takes a random
// time over the network, so that hardly two events have the same time. Therefore a seed replays event by event for a
// minute or two, until some goroutines of one process are ready at the same moment: then the scheduler decides about
// their order. A violation occurs again at once or after a few attempts.
//
// # Locks and elections
//
// The judge compares the contexts of holds and leaderships with the decisions of the servers:
//
//   - At no moment two contexts are alive that exclude each other, nor more leases than there are.
//   - A context that is alive has its node on the leader of the ensemble.
//   - No lease is granted beyond the largest number since the waiter has read the number.
//   - A node that was deleted together with one that it waited for is granted nothing.
//   - Tokens grow from grant to grant.
//   - A fenced write takes effect only while its node exists, and never after a write of a later holder. One that was
//     refused takes no effect.
//   - A holder is asked to release in bounded time after a request, once at most, and never without one.
//   - Each waiter gets its grant in bounded time after the end of the faults.
//   - At the end neither node nor watch, session, connection nor goroutine is left.
//
// # Order
//
// Processes submit rows of writes, in the background and in the foreground, fenced and not:
//
//   - Each write that succeeds takes its last effect behind those that began before it.
//   - Each write in the background has a callback. Those of writes that succeed come in the order in which they began.
//   - A write whose error says that it took no effect takes none.
//
// # Chroots and providers
//
// Some clients have no chroot until the end: their recipes do nothing, say so, and go on when it is there. The ACL
// provider of a process panics, blocks or ends its goroutine at random.
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
// # Counters
//
// The goroutines of each process add to one number, some with receipts, some with a lock:
//
//   - The number never falls.
//   - The parts that the changes have added, each from the number before it to the number after it, are the whole
//     number in the end. No two have the same place. A change whose outcome is not known may have its part or not; one
//     that has failed has none.
//   - After the end of the faults each process can add.
//
// # Shared values
//
// Each process has a copy of one value, and sets it, mostly on the condition that it is what the copy has. Operators
// delete its node, create it again and protect it:
//
//   - Neither the copy nor what the listener gets goes back.
//   - The servers have had each value of a copy, with these bytes.
//   - A write that succeeded took effect, behind the value that it depends on. One that failed takes none, unless its
//     error says that its outcome is not known.
//   - In a quiet time the copy is what the servers have, and after the end of the faults in bounded time.
//
// # Desired nodes
//
// Each process desires some nodes, and is a member of a group. Operators delete, change, replace and protect them:
//
//   - A call that sets data has succeeded only if the servers have had the data.
//   - One desire never has two nodes in one session.
//   - In a quiet time, in which nothing has gone wrong for three session timeouts, the node is there, of the current
//     session of its process and with the data that was set last, unless the process has a reason why it is refused.
//   - Its listener learns in turns that it is there and that it is lost.
//   - After Close it is not there, and never again.
//   - After the end of the faults each process has its nodes, and each member knows all members, in bounded time. In
//     the end no node is left.
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
//   - An operator puts a node in the place of a desired one. If data is set at this moment, the new node may get it: it
//     has the same version. It is not the desired one, whatever its data.
//   - An operator deletes queues with their items. Of a barrier it deletes nodes of members while it is open, but never
//     the node that opens it: a member that has not seen it would wait for the others, and the others for it.
package simulation
