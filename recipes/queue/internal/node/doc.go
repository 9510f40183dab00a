// Package node has the names and the bytes of a queue's nodes, which are Java Curator's, and the paths of a queue.
//
// A node holds one item or several, and behind them what Java does not read: how often they were put back, and a trace
// context. Its name holds the order: a number, and in some kinds of queues a priority, a time or an id.
package node
