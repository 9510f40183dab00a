package queue

import (
	"fmt"
	"slices"

	"github.com/gocurator/curator/internal/errtext"
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

// addShard builds and starts the queue of a path, unless the sharder has it.
func (s *QueueSharder[Q]) addShard(path string) error {
	if slices.ContainsFunc(s.shards, func(sh *shard[Q]) bool { return sh.path == path }) {
		return nil
	}
	q, err := s.open(path)
	if err != nil {
		return errtext.Wrap(err, "queue", "shard %s", path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shards = append(s.shards, &shard[Q]{path: path, queue: q, preferred: true})
	if len(s.shards) == 1 {
		close(s.ready)
	}
	return nil
}

// open calls the user's code; a panic is an error.
func (s *QueueSharder[Q]) open(path string) (q Q, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic of the allocator: %s", errtext.Panic(p))
		}
	}()
	if q, err = s.allocate(path); err == nil {
		err = q.Start()
	}
	return q, err
}
