package barrier

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"
)

// snapshot is one read of the barrier by a member that enters.
type snapshot struct {
	unknown  bool            // the connection was lost
	born     int64           // the transaction that created our node; 0 if it is not there, or not of our session
	children []string        // of the barrier
	parent   zk.Stat         // of the barrier
	ready    *zk.Stat        // read behind children; nil if there is none
	quorum   int             // the number of members that open the barrier
	flight   context.Context // of the read: what is sent with it later is sent on the same connection
}

// verdict is what a snapshot means for the member.
type verdict int

const (
	waiting  verdict = iota // for others
	unknown                 // the connection was lost
	absent                  // the others do not see our node, or what was listed has ended: look again
	complete                // all have come, and nobody has created ready
	opened                  // ready was created while our node was there
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
	case s.has(readyNode): // the round of those who were listed has ended since
		return absent
	case len(membersAmong(s.children)) >= s.quorum:
		return complete
	}
	return waiting
}

// last reports whether our node is the latest change of the barrier.
func (s *snapshot) last() bool { return s.born == s.parent.Pzxid }

// has reports whether a child of the barrier is there.
func (s *snapshot) has(name string) bool { return slices.Contains(s.children, name) }
