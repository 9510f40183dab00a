// Package leader provides leader election between processes. The recipes use the nodes of Java Curator, so Go and Java
// processes elect one leader.
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
// A [LeaderSelector] leads while a function runs, and then others get their turn. [Do] is one turn of it, in one call.
//
// # What leadership promises
//
// An election has at most one leader at a time, as the server sees it. The leader learns that it can no longer rely on
// that: the context of its [Leadership] ends when the connection is in an error state of the client's error policy, by
// default as soon as it is lost, and in any case with the session. A paused process cannot learn it in time. Write
// nodes that must be safe from that with [Leadership.Client]: the server refuses the writes of a former leader. Any
// other resource compares [Leadership.Token], which grows from leader to leader, and refuses lower tokens.
package leader
