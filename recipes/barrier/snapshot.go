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
	children []string        // the children of the barrier
	parent   zk.Stat         // the Stat of the barrier
	ready    *zk.Stat        // read after children; nil if it does not exist
	quorum   int             // the number of members that open the barrier
	flight   context.Context // the flight of the read: later requests with it use the same connection
}

// verdict is the meaning of a snapshot for the member.
type verdict int

const (
	waiting  verdict = iota // members are missing
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

// mayHaveMissed reports whether ready may have been created and deleted since an earlier snapshot: a child was created
// that neither snapshot has. Other children than own, our new node, that were created again under their name count too.
func (s *snapshot) mayHaveMissed(last *snapshot, own string) bool {
	if last == nil || last.parent.Czxid != s.parent.Czxid || s.has(readyNode) {
		return true
	}
	created := creates(&s.parent) - creates(&last.parent)
	for _, name := range s.children {
		if name == own || !last.has(name) {
			created--
		}
	}
	return created > 0
}

// creates returns the number of children of a node that were ever created. A Cversion counts creates and deletes.
func creates(stat *zk.Stat) int32 { return (stat.Cversion + stat.NumChildren) / 2 }

// last reports whether our node is the latest change of the barrier.
func (s *snapshot) last() bool { return s.born == s.parent.Pzxid }

// has reports whether the barrier has a child name.
func (s *snapshot) has(name string) bool { return slices.Contains(s.children, name) }
