// Package curatortest gives tests a ZooKeeper. A [Server], or a [Cluster] of them, is one in memory that starts in less
// than a millisecond, needs no Java, works in a bubble of testing/synctest, and can fail exactly where a real one
// cannot be made to. Production runs Apache ZooKeeper.
//
//	server := curatortest.NewServerT(t)
//	client, err := framework.New(server.ConnectString())
//
// A [Rule] for [Server.Faults] picks single requests, replies and watch events, to cut, hold, delay, swallow or refuse
// them; other methods of [Faults] fail whole connections. A rule that never acts fails its test. [Server.EventuallyT]
// waits for events of the server, and does not poll.
//
// A [RealServer] or [RealCluster] is Apache ZooKeeper as it is installed on the machine, started and stopped, killed
// and frozen at will. With a [Proxy] in front the same faults, and the same tests, work on it.
//
// docs/curatortest.md has more, and how the server in memory is held to the real one.
//
// In Java: TestingServer, TestingCluster, KillSession and Timing2 of curator-test.
package curatortest
