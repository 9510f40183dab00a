// Package framework is the client of the library: a session with a ZooKeeper ensemble, kept alive and watched over,
// with fluent operations, retries, namespaces and listeners.
//
//	client, err := framework.New("zk1:2181,zk2:2181/app",
//		framework.WithRetryPolicy(retry.ExponentialBackoff(time.Second, 3)))
//	if err != nil {
//		return err
//	}
//	if err := client.Start(); err != nil {
//		return err
//	}
//	defer client.Close()
//	path, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/orders/17", data)
//
// # Connection states
//
// Listeners get Connected once, then Suspended when the connection is lost, and Reconnected when there is one again.
// Lost means that the session is over: because the server said so, or because by the client's own clock the negotiated
// timeout has passed since the server's last answer, also while no server can be reached. While the client waits for a
// lock, has one or takes part in an election, answers count only as far as a majority of the servers proves them: Lost
// comes earlier then, see [Client.QuorumHeartbeats]. Lost is never left out and comes before the Reconnected of the
// next session. Code that must not act without a session holds on to the context of [Client.Session].
//
// # Retries
//
// Connection loss, operation timeout, session expiry and session move are retried as the [retry.Policy] says; all else
// is returned at once. An operation waits for a connection once, at most the connection timeout. An operation that was
// sent and not answered may have taken effect: see builders for the steps that make that harmless.
//
// # Concurrency
//
// A [Client] is safe for concurrent use. The order in which a goroutine submits operations is the order in which the
// server executes them. Callbacks run as package callbacks says.
//
// # Coming from Java Curator
//
// The words are Java's; docs/porting-from-java.md has them side by side, docs/differences.md what behaves differently.
package framework
