package locks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// Driver changes a mutex: the names and modes of its nodes, their order, and the choice of the holder. The drivers of
// all processes have to understand each other's nodes. The driver is responsible for mutual exclusion: it must not
// grant the lock to a later contender while another one holds it, so it must not sort a new node before the holder's.
// In Java: LockInternalsDriver.
type Driver interface {
	// LockName returns the prefix of this contender's nodes, after the protection prefix. It has no slash. In Java: the
	// path that createsTheLock derives from its argument.
	LockName() string
	// CreatesTheLock completes the create of a contender's node: its mode and protection. A persistent node outlives the
	// session, and so does the hold.
	CreatesTheLock(create builders.Create) builders.Create
	// FixForSorting returns the sort key of a node. lockName is the own LockName. In Java: LockInternalsSorter.
	FixForSorting(node, lockName string) string
	// GetsTheLock reports whether the node own holds the lock. children are the sorted names of all nodes; own is one of
	// them.
	GetsTheLock(children []string, own string) PredicateResults
}

// PredicateResults is the decision of a driver for one contender.
type PredicateResults struct {
	// GetsTheLock is true if the contender holds the lock.
	GetsTheLock bool
	// PathToWatch is the name of the node to wait for if it does not. "" is any node.
	PathToWatch string
}

// StandardDriver is the default driver of a mutex. In Java: StandardLockInternalsDriver.
type StandardDriver struct{}

var _ Driver = StandardDriver{}

// LockName returns "lock-".
func (StandardDriver) LockName() string { return lockName }

// CreatesTheLock creates a protected, ephemeral, sequential node.
func (StandardDriver) CreatesTheLock(create builders.Create) builders.Create {
	return create.WithProtection().WithMode(builders.EphemeralSequential)
}

// FixForSorting returns the part of node after the last lockName.
func (StandardDriver) FixForSorting(node, lockName string) string {
	if i := strings.LastIndex(node, lockName); i >= 0 {
		return node[i+len(lockName):]
	}
	return node
}

// GetsTheLock grants the lock to the first node. Each of the others waits for the one before it.
func (StandardDriver) GetsTheLock(children []string, own string) PredicateResults {
	i := slices.Index(children, own)
	if i <= 0 {
		return PredicateResults{GetsTheLock: i == 0}
	}
	return PredicateResults{PathToWatch: children[i-1]}
}

// useDriver configures the queue of m for a driver.
func (m *InterProcessMutex) useDriver(d Driver) {
	name := d.LockName()
	if m.err == nil && (name == "" || zkpath.Validate("/"+name, true) != nil || strings.Contains(name, "/")) {
		m.err = fmt.Errorf("%w: the lock name %q", zk.ErrInvalidPath, name)
	}
	m.queue.Prefix, m.queue.PrepareCreate = name, d.CreatesTheLock
	m.queue.Order = func(children []string) []string {
		ordered := slices.Clone(children)
		slices.SortStableFunc(ordered, func(a, b string) int {
			return strings.Compare(d.FixForSorting(a, name), d.FixForSorting(b, name))
		})
		return ordered
	}
	m.queue.Judge = func(children []string, own string) waitqueue.Verdict {
		ordered := m.queue.Order(children)
		if !slices.Contains(ordered, own) {
			return waitqueue.Verdict{}
		}
		results := d.GetsTheLock(ordered, own)
		return waitqueue.Verdict{Found: true, Granted: results.GetsTheLock, Watch: results.PathToWatch}
	}
}
