// Package builders provides the client's fluent operations, one type for each verb of ZooKeeper, with Java Curator's
// names for the steps.
//
// A builder is a value. Every step returns a changed copy, so a builder may be kept, branched and shared between
// goroutines; nothing happens before its last step, ForPath, which takes the context. InBackground changes the type:
// the ForPath of a background builder returns at once, and the error says only whether the operation was accepted.
//
//	path, err := client.Create().
//		CreatingParentsIfNeeded().
//		WithProtection().
//		WithMode(builders.EphemeralSequential).
//		ForPath(ctx, "/members/m-", data)
//
// # Contexts
//
// In the foreground ctx bounds the waiting for connection, answer and retries. An operation whose context ends may
// still take effect: what has been sent is executed. In the background ctx only carries values.
//
// # Data
//
// nil means the default data of the client, by default the address of this host as in Java; an empty slice is an
// empty node. Slices that were given must not be changed before the operation has ended.
//
// # Errors
//
// All errors are [*OpError] and match, with errors.Is, the zk.Err… of go-zookeeper where it has one for the code of
// the server.
package builders
