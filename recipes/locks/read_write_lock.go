package locks

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// InterProcessReadWriteLock is a lock that one writer or any number of readers hold. Readers and writers wait in one
// line: a reader waits for all writers before it, a writer for everybody before it. Both sides are re-entrant for
// owners: see [WithOwner].
//
// An owner that holds the write lock may acquire the read lock too. When it then releases the write lock, it stays a
// reader, and no writer gets in between. The other way round is an error, [ErrUpgrade], as the owner would wait for
// itself. Without an owner the lock cannot detect this, and Acquire waits for itself.
//
// In Java: InterProcessReadWriteLock.
type InterProcessReadWriteLock struct{ read, write *InterProcessMutex }

// The prefixes of the nodes of a read-write lock. They have the same length.
const (
	readName  = "__READ__"
	writeName = "__WRIT__"
)

var bothNames = []string{readName, writeName}

var errDriver = errors.New("a read-write lock takes no driver")

// NewInterProcessReadWriteLock returns the read-write lock of a path. It does no I/O. Every Acquire returns an error if
// the path is invalid. The options apply to both sides.
func NewInterProcessReadWriteLock(
	client *framework.Client, path string, opts ...MutexOption,
) *InterProcessReadWriteLock {
	rw := &InterProcessReadWriteLock{
		read:  NewInterProcessMutex(client, path, opts...),
		write: NewInterProcessMutex(client, path, opts...),
	}
	if rw.read.driver != nil {
		rw.read.err, rw.write.err = errDriver, errDriver
	}
	rw.read.queue.Prefix = readName
	rw.read.queue.Judge = func(children []string, own string) waitqueue.Verdict {
		return waitqueue.FirstAmong(children, own, bothNames, []string{writeName})
	}
	rw.read.prepare = rw.downgrade
	rw.read.initTelemetry("rw_read")
	rw.write.queue.Prefix = writeName
	rw.write.queue.Judge = func(children []string, own string) waitqueue.Verdict {
		return waitqueue.First(children, own, bothNames...)
	}
	rw.write.prepare = rw.refuseUpgrade
	rw.write.initTelemetry("rw_write")
	return rw
}

// ReadLock returns the lock of the readers. Its ParticipantNodes are readers only.
func (rw *InterProcessReadWriteLock) ReadLock() *InterProcessMutex { return rw.read }

// WriteLock returns the lock of the writers. Its ParticipantNodes are writers only.
func (rw *InterProcessReadWriteLock) WriteLock() *InterProcessMutex { return rw.write }

// downgrade lets an owner that holds the write lock share its place as a reader: the new node has the number of the
// writer's node, so those who wait for the writer wait for the reader too. It returns the hold of the writer, or nil. A
// writer that has lost its lock cannot share it, and must not read beside the next writer as if it still wrote.
func (rw *InterProcessReadWriteLock) downgrade(o *owner, queue *waitqueue.Queue) (*Hold, error) {
	hold := rw.write.newest(o)
	if hold == nil {
		return nil, nil
	}
	if !hold.isHeld() {
		return nil, ErrLockLost
	}
	writer := zkpath.Node(hold.Path())
	number, ok := waitqueue.Sequence(writer, writeName)
	if !ok {
		return nil, ErrLockLost
	}
	queue.Prefix = fmt.Sprintf("%s%010d", readName, number)
	queue.PrepareCreate = func(create builders.Create) builders.Create {
		return create.WithProtection().WithMode(builders.Ephemeral)
	}
	queue.Judge = func(children []string, own string) waitqueue.Verdict {
		return waitqueue.Verdict{
			Found:   slices.Contains(children, own) && slices.Contains(children, writer), // the writer still has its place
			Granted: true,
		}
	}
	return hold, nil
}

// refuseUpgrade refuses an owner that holds the read lock.
func (rw *InterProcessReadWriteLock) refuseUpgrade(o *owner, _ *waitqueue.Queue) (*Hold, error) {
	if rw.read.holdOf(o) != nil {
		return nil, ErrUpgrade
	}
	return nil, nil
}
