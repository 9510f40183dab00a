// Package leader has leader election between processes, as Java Curator has it: the same nodes with the same names, so
// that Go and Java elect one leader among them.
//
// A [LeaderLatch] takes part from Start to Close, and leads when it is first in line:
//
//	latch := leader.NewLeaderLatch(client, "/leader", leader.WithID("host-7"))
//	if err := latch.Start(); err != nil {
//		return err
//	}
//	defer latch.Close()
//	leadership, err := latch.Await(ctx)
//	if err != nil {
//		return err
//	}
//	return work(leadership.Context(), leadership.Token())
//
// A [LeaderSelector] leads for as long as a function runs, and then gives others their turn.
//
// # What leadership promises
//
// One leader at a time, as the server sees it. A leader is told when it can no longer rely on that: the context of its
// [Leadership] ends when the connection is in a state that the client's error policy takes for an error, by default as
// soon as it is lost, and in any case with the session. A process that is paused cannot be told in time. Write the
// nodes that must be safe from it with [Leadership.Client]: the server refuses the writes of a process that leads no
// more. Another resource compares [Leadership.Token], which grows from leader to leader, and refuses lower ones.
package leader
