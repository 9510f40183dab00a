package queue

import (
	"context"
	"time"

	"github.com/gocurator/curator/recipes/queue/internal/node"
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

// describe sets the field that a name in a queue of a kind holds.
func (i *Info) describe(k node.Kind, n node.Name) {
	switch {
	case k.Delayed:
		i.Due = n.Due()
	case k.Claimed > 0:
		i.Priority = n.Priority()
	case k.HasIDs:
		i.ID = n.Field
	}
}
