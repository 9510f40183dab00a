// Package cache keeps a copy of a node, or of a tree of nodes, in memory, and tells listeners what changes.
//
//   - [CuratorCache] has a node and everything below it. It is the one to take.
//   - [NodeCache], [PathChildrenCache] and [TreeCache] have the events of Java's older caches.
//   - [PersistentWatcher] keeps a persistent watch, and leaves the reading to its listeners.
//
// All stand on one engine, whose protocol is described in engine.go. docs/caches.md says what a cache promises when the
// connection or the session is lost.
package cache
