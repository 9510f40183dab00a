// Package cache keeps a copy of a node, or of a tree of nodes, in memory, and notifies listeners of changes.
//
//   - [CuratorCache] keeps a node and everything below it. Use it unless you need the events of another one.
//   - [NodeCache], [PathChildrenCache] and [TreeCache] have the events of Java's older caches.
//   - [PersistentWatcher] keeps a persistent watch. It reads nothing: its listeners do.
//
// All caches share one engine. The comments in engine.go describe its protocol. docs/caches.md describes what a cache
// guarantees after the loss of a connection or a session.
package cache
