package queue

import (
	"context"
	"time"
)

// Info has the known facts of an item beside its value.
type Info struct {
	// Path is that of the item's node.
	Path string
	// Put is when the server created the node, by its clock.
	Put time.Time
	// Priority is that of an item of a [DistributedPriorityQueue].
	Priority int
	// Due is when an item of a [DistributedDelayQueue] was due.
	Due time.Time
	// ID is that of an item of a [DistributedIDQueue], with _ for each / and |.
	ID string
}

type infoKey struct{}

// InfoOf returns the [Info] of the item that the context of a [Consumer] belongs to; the zero Info for another
// context.
func InfoOf(ctx context.Context) Info {
	info, _ := ctx.Value(infoKey{}).(Info)
	return info
}
