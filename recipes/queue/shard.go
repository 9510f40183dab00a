package queue

import (
	"github.com/gocurator/curator/internal/usercode"
)

// Shard is one of the queues of a [QueueSharder]: a [DistributedQueue] or one of its kinds.
type Shard interface {
	Start() error
	Close() error
}

type shard[Q Shard] struct {
	path      string
	queue     Q
	preferred bool // it has not been full since it was at most half full
}

func (sh *shard[Q]) close() (err error) {
	defer usercode.Catch("the queue", &err)
	return sh.queue.Close()
}
