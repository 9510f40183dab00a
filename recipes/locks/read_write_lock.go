package locks

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// InterProcessReadWriteLock is a lock that one writer or any number of readers hold. All stand in one line: a reader
// waits for the writers before it, a writer for everybody before it, so that nobody is overtaken. Both sides are
// re-entrant for owners, see [WithOwner].
//
// An owner that writes may read as well, and keeps the lock as a reader when it has released the write lock, without
// letting a writer in between. The other way round is an error, [ErrUpgrade]: it would wait for itself. Without an
// owner nobody can tell, and it does wait.
//
// In Java: InterProcessReadWriteLock.
type InterProcessReadWriteLock struct{ read, write *InterProcessMutex }

// What stands in front of the numbers of a read-write lock's nodes. They are of the same length.
const (
	readName  = "__READ__"
	writeName = "__WRIT__"
)

var bothNames = []string{readName, writeName}

var errDriven = errors.New("a read-write lock takes no driver")

// NewInterProcessReadWriteLock returns the read-write lock of a path. It does no I/O; a path that cannot be is the
// error of every Acquire. The options are for both sides.
func NewInterProcessReadWriteLock(client Client, path string, opts ...Option) *InterProcessReadWriteLock {
	rw := &InterProcessReadWriteLock{
		read:  NewInterProcessMutex(client, path, opts...),
		write: NewInterProcessMutex(client, path, opts...),
	}
	if rw.read.driver != nil {
		rw.read.bad, rw.write.bad = errDriven, errDriven
	}
	rw.read.queue.Prefix = readName
	rw.read.queue.Judge = func(children []string, own string) lineup.Verdict {
		return lineup.FirstAmong(children, own, bothNames, []string{writeName})
	}
	rw.read.adapt = rw.downgrade
	rw.read.tellAs("rw_read")
	rw.write.queue.Prefix = writeName
	rw.write.queue.Judge = func(children []string, own string) lineup.Verdict {
		return lineup.First(children, own, bothNames...)
	}
	rw.write.adapt = rw.refuseUpgrade
	rw.write.tellAs("rw_write")
	return rw
}

// ReadLock returns the side of the readers. Its ParticipantNodes are readers only.
func (rw *InterProcessReadWriteLock) ReadLock() *InterProcessMutex { return rw.read }

// WriteLock returns the side of the writers. Its ParticipantNodes are writers only.
func (rw *InterProcessReadWriteLock) WriteLock() *InterProcessMutex { return rw.write }

// downgrade gives a writer that asks to read the place that it has: a node with the number of its own, so that who
// waits behind the writer waits behind the reader too. It returns the hold of the writer.
func (rw *InterProcessReadWriteLock) downgrade(o *owner, queue *lineup.Queue) (*Hold, error) {
	hold := rw.write.holdOf(o)
	if hold == nil {
		return nil, nil
	}
	writer := zkpath.Node(hold.Path())
	number, ok := lineup.Sequence(writer, writeName)
	if !ok {
		return nil, ErrLockLost
	}
	queue.Prefix = fmt.Sprintf("%s%010d", readName, number)
	queue.PrepareCreate = func(create builders.Create) builders.Create {
		return create.WithProtection().WithMode(builders.Ephemeral)
	}
	queue.Judge = func(children []string, own string) lineup.Verdict {
		return lineup.Verdict{
			Found:   slices.Contains(children, own) && slices.Contains(children, writer), // the place is still the writer's
			Granted: true,
		}
	}
	return hold, nil
}

func (rw *InterProcessReadWriteLock) refuseUpgrade(o *owner, _ *lineup.Queue) (*Hold, error) {
	if rw.read.holdOf(o) != nil {
		return nil, ErrUpgrade
	}
	return nil, nil
}
