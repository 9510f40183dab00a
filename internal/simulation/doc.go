// Package simulation runs the recipes against an ensemble in virtual time, while everything between and around them
// fails at random. It has tests only.
//
// A seed makes a world in a bubble of testing/synctest: an ensemble in memory, processes with a client each, actors
// that contend for locks and leadership, and faults. Every byte takes a random time over the network, so that hardly
// two things happen at the same moment. Therefore a seed replays event by event for a minute or two, until some
// goroutines of one process are ready at the same moment: then their order is that of the scheduler. A violation that
// does not come back at once comes back in a few attempts.
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
package simulation
