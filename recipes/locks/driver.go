package locks

import (
	"slices"
	"strings"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// Driver changes how a mutex works: what its nodes are like, in which order they stand, and who holds the lock. All
// processes have to use the same. In Java: LockInternalsDriver.
type Driver interface {
	// CreatesTheLock completes the create of a contender's node: its mode and protection. The name that it is created
	// with is "lock-". A node that is not ephemeral outlives the session, and so does the hold.
	CreatesTheLock(create builders.Create) builders.Create
	// FixForSorting returns what the name of a node is sorted by. In Java: LockInternalsSorter.
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

// WithDriver sets the driver of a mutex. In Java: the constructor with a LockInternalsDriver.
func WithDriver(d Driver) Option {
	return option(func(m *InterProcessMutex) {
		m.line.Make = d.CreatesTheLock
		m.line.Judge = func(children []string, own string) lineup.Verdict {
			ordered := slices.Clone(children)
			slices.SortStableFunc(ordered, func(a, b string) int {
				return strings.Compare(d.FixForSorting(a, m.line.Name), d.FixForSorting(b, m.line.Name))
			})
			if !slices.Contains(ordered, own) {
				return lineup.Verdict{}
			}
			r := d.GetsTheLock(ordered, own)
			return lineup.Verdict{Found: true, Granted: r.GetsTheLock, Watch: r.PathToWatch}
		}
	})
}
