package barrier

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"
)

// snapshot is one read of the barrier by an entering member.
type snapshot struct {
	unknown  bool            // the connection was lost
	born     int64           // the transaction that created our node; 0 if it does not exist in our session
	children []string        // of the barrier
	parent   zk.Stat         // of the barrier
	ready    *zk.Stat        // read after children; nil if it does not exist
	quorum   int             // the number of members that open the barrier
	flight   context.Context // of the read: later requests with it use the same connection
}

// verdict is the meaning of a snapshot for the member.
type verdict int

const (
	waiting  verdict = iota // for others
	unknown                 // the connection was lost
	absent                  // the others do not see our node, or the listed round has ended: look again
	complete                // all members are there, and ready does not exist
	opened                  // ready was created while our node existed
	late                    // ready is older than our node
)

func (s *snapshot) verdict() verdict {
	switch {
	case s.unknown:
		return unknown
	case s.born == 0:
		return absent
	case s.ready != nil && s.ready.Czxid > s.born:
		return opened
	case s.ready != nil:
		return late
	case s.has(readyNode): // the listed round has ended since
		return absent
	case len(membersAmong(s.children)) >= s.quorum:
		return complete
	}
	return waiting
}

// last reports whether our node is the latest change of the barrier.
func (s *snapshot) last() bool { return s.born == s.parent.Pzxid }

// has reports whether the barrier has a child name.
func (s *snapshot) has(name string) bool { return slices.Contains(s.children, name) }
