// Package curatortest gives tests a ZooKeeper. A [Server] is one in memory, and a [Cluster] is an ensemble of them. A
// Server starts in less than a millisecond, needs no Java, works in a bubble of testing/synctest, and can fail at any
// step of the protocol. For production use Apache ZooKeeper.
//
//	server := curatortest.NewServerT(t)
//	client, err := framework.New(server.ConnectString())
//
// A [Rule] for [Server.Faults] selects single requests, replies and watch events, and cuts, holds, delays, swallows or
// refuses them. Other methods of [Faults] fail whole connections. A rule that never acts fails its test.
// [Server.EventuallyT] waits for events of the server, and does not poll.
//
// A [RealServer] or [RealCluster] is the Apache ZooKeeper that is installed on the machine. A test can start, stop,
// kill and freeze it. With a [Proxy] in front, the same faults and the same tests work on it.
//
// docs/curatortest.md has more, and compares the server in memory with the real one.
//
// In Java: TestingServer, TestingCluster, KillSession and Timing2 of curator-test.
package curatortest
