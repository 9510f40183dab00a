// Package lineup is how the recipes wait for each other: every contender creates a node below one path, the server
// numbers the nodes, and each watches the one that it waits for. There is one loop for all of them.
//
// A contender keeps its place for as long as its session lives, whatever happens to the connection; it is granted
// nothing on a node of an earlier session; and whoever gives up leaves neither node nor watch behind.
package lineup
