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

// open builds and starts a queue.
func (s *QueueSharder[Q]) open(path string) (q Q, err error) {
	defer catch(&err, "allocator")
	if q, err = s.allocate(path); err == nil {
		err = q.Start()
	}
	return q, err
}

func (sh *shard[Q]) close() (err error) {
	defer catch(&err, "queue")
	return sh.queue.Close()
}

// leads reports whether this process may add queues.
func (s *QueueSharder[Q]) leads() (leads bool, err error) {
	defer catch(&err, "leader")
	return s.leader.HasLeadership(), nil
}

// catch is deferred around the user's code. It makes a panic an error.
func catch(err *error, whose string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic of the %s: %s", whose, errtext.Panic(p))
	}
}
