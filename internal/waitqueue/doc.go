// Package waitqueue is the wait queue of the recipes. Each contender creates a sequential node below one path and
// watches the node that it waits for. All recipes share this one loop.
//
// A contender keeps its place as long as its session lives, also while connections are lost. A contender whose node
// belongs to an earlier session gets no turn. A contender that gives up leaves neither node nor watch.
package waitqueue
