package locks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// Driver changes how a mutex works: what its nodes are called and like, in which order they stand, and who holds the
// lock. All processes have to understand the nodes of each other. That one at a time holds the lock is then the
// driver's to promise: whoever comes later must not be granted it beside the one who has it, so it must not be sorted
// before. In Java: LockInternalsDriver.
type Driver interface {
	// LockName is what stands in front of the numbers of this contender's nodes, and behind their protection: a name
	// without a slash. In Java: the path that createsTheLock makes of the one it is given.
	LockName() string
	// CreatesTheLock completes the create of a contender's node: its mode and protection. A node that is not ephemeral
	// outlives the session, and so does the hold.
	CreatesTheLock(create builders.Create) builders.Create
	// FixForSorting returns what the name of a node is sorted by; lockName is that of the own nodes. In Java:
	// LockInternalsSorter.
	FixForSorting(node, lockName string) string
	// GetsTheLock decides from the sorted names of all nodes whether own, which is one of them, holds the lock.
	GetsTheLock(children []string, own string) PredicateResults
}

// PredicateResults is how it stands with a contender.
type PredicateResults struct {
	// GetsTheLock is whether it holds the lock.
	GetsTheLock bool
	// PathToWatch is the name of the node that it waits for if it does not; empty is any.
	PathToWatch string
}

// StandardDriver is the driver of a mutex that is given no other. In Java: StandardLockInternalsDriver.
type StandardDriver struct{}

var _ Driver = StandardDriver{}

// LockName is "lock-".
func (StandardDriver) LockName() string { return lockName }

// CreatesTheLock makes it a protected, ephemeral, sequential node.
func (StandardDriver) CreatesTheLock(create builders.Create) builders.Create {
	return create.WithProtection().WithMode(builders.EphemeralSequential)
}

// FixForSorting returns what stands behind the last occurrence of the name of the lock.
func (StandardDriver) FixForSorting(node, lockName string) string {
	if i := strings.LastIndex(node, lockName); i >= 0 {
		return node[i+len(lockName):]
	}
	return node
}

// GetsTheLock gives the lock to the first; each of the others waits for the one before it.
func (StandardDriver) GetsTheLock(children []string, own string) PredicateResults {
	i := slices.Index(children, own)
	if i <= 0 {
		return PredicateResults{GetsTheLock: i == 0}
	}
	return PredicateResults{PathToWatch: children[i-1]}
}

// WithDriver sets the driver of a mutex. A name that cannot be, and a read-write lock, which has drivers of its own,
// are the error of every Acquire. In Java: the constructor with a LockInternalsDriver.
func WithDriver(d Driver) Option { return option(func(m *InterProcessMutex) { m.driver = d }) }

// follow has the line of m be as its driver wants it.
func (m *InterProcessMutex) follow(d Driver) {
	name := d.LockName()
	if m.bad == nil && (name == "" || zkpath.Validate("/"+name, true) != nil || strings.Contains(name, "/")) {
		m.bad = fmt.Errorf("%w: the lock name %q", zk.ErrInvalidPath, name)
	}
	m.queue.Prefix, m.queue.PrepareCreate = name, d.CreatesTheLock
	m.queue.Order = func(children []string) []string {
		ordered := slices.Clone(children)
		slices.SortStableFunc(ordered, func(a, b string) int {
			return strings.Compare(d.FixForSorting(a, name), d.FixForSorting(b, name))
		})
		return ordered
	}
	m.queue.Judge = func(children []string, own string) lineup.Verdict {
		ordered := m.queue.Order(children)
		if !slices.Contains(ordered, own) {
			return lineup.Verdict{}
		}
		r := d.GetsTheLock(ordered, own)
		return lineup.Verdict{Found: true, Granted: r.GetsTheLock, Watch: r.PathToWatch}
	}
}
