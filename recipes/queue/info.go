package queue

import (
	"context"
	"time"
)

// Info holds the known facts about an item beside its value.
type Info struct {
	// Path is the path of the item's node.
	Path string
	// Put is the time of the creation of the node, by the server's clock.
	Put time.Time
	// Priority is the priority in a [DistributedPriorityQueue].
	Priority int
	// Due is the due time in a [DistributedDelayQueue].
	Due time.Time
	// ID is the id in a [DistributedIDQueue], with _ for each / and |.
	ID string
}

type infoKey struct{}

// InfoOf returns the [Info] of the item that the context of a [Consumer] belongs to. For another context it returns the
// zero Info.
func InfoOf(ctx context.Context) Info {
	info, _ := ctx.Value(infoKey{}).(Info)
	return info
}
