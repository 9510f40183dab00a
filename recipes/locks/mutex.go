package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// InterProcessMutex is a lock with one holder at a time. Waiters get it in the order of their requests. One value
// serves all goroutines of a process. It is re-entrant for owners: see [WithOwner]. In Java: InterProcessMutex.
type InterProcessMutex struct {
	queue  waitqueue.Queue
	err    error // returned by every Acquire if not nil: the path is invalid
	name   string
	obs    report.Lock
	driver Driver // may be nil
	// prepare changes the queue for an owner, or refuses the owner. It returns the hold whose place in the queue the owner
	// shares, or nil for a new place. It may be nil.
	prepare func(o *owner, queue *waitqueue.Queue) (shared *Hold, err error)

	mu       sync.Mutex
	onRevoke func(*Hold)
	grants   map[*grant]struct{}
	owned    map[*owner][]*Hold // the holds of each owner, the newest last
}

var _ InterProcessLock = (*InterProcessMutex)(nil)

// lockName is the prefix of the nodes of a mutex.
const lockName = "lock-"

// NewInterProcessMutex returns the mutex of a path. It does no I/O. The first Acquire creates the node of the path and
// its parents as containers. Every Acquire returns an error if the path is invalid.
func NewInterProcessMutex(client *framework.Client, path string, opts ...MutexOption) *InterProcessMutex {
	m := &InterProcessMutex{
		queue:  waitqueue.Queue{Client: client, Path: path, Prefix: lockName},
		err:    zkpath.Validate(path, false),
		grants: make(map[*grant]struct{}),
		owned:  make(map[*owner][]*Hold),
	}
	for _, o := range opts {
		o.applyMutex(m)
	}
	if m.driver != nil {
		m.useDriver(m.driver)
	}
	m.initTelemetry("mutex")
	return m
}

// initTelemetry names the recipe in spans and metrics.
func (m *InterProcessMutex) initTelemetry(recipe string) {
	m.obs = report.NewLock(hook.Telemetry(m.queue.Client), recipe, m.name, m.queue.Path)
}

func (m *InterProcessMutex) telemetry() *telemetry.Telemetry { return hook.Telemetry(m.queue.Client) }

// Acquire waits for the lock and returns a [Hold]. The caller must release it. ctx bounds the wait: when it ends, the
// caller loses its place in line. The place survives a lost connection. After the end of the session Acquire queues
// again. An owner that holds the lock gets another hold at once, or [ErrLockLost] if it has lost the lock and has not
// released it yet. Acquire also fails when the first create fails after all retries of the client.
func (m *InterProcessMutex) Acquire(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, waitqueue.Forever)
}

// TryAcquire is Acquire that fails with [ErrNotAcquired] after wait. The time to connect counts. A wait of 0 takes the
// lock if it is free; without a connection it fails after all retries of the client. A negative wait is an error.
func (m *InterProcessMutex) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	if wait < 0 {
		return nil, fmt.Errorf("locks: negative wait %v", wait)
	}
	return m.acquire(ctx, wait)
}

func (m *InterProcessMutex) acquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	if m.err != nil {
		return nil, errtext.Wrap(m.err, "locks", "acquire")
	}
	o := ownerOf(ctx)
	defer m.queue.Client.QuorumHeartbeats()()
	waitCtx, span := m.obs.Acquire(ctx)
	if hold, err := m.reenter(o); hold != nil || err != nil {
		span.Reentrant()
		span.End(waitOutcome(err), err)
		return hold, err
	}
	hold, err := m.grant(ctx, waitCtx, wait, o, span)
	span.End(waitOutcome(err), err)
	if err != nil {
		return nil, err
	}
	hold.setSpan(m.obs.Hold(span))
	return hold, nil
}

// grant waits for the lock with waitCtx. The hold has the values of ctx.
func (m *InterProcessMutex) grant(
	ctx, waitCtx context.Context, wait time.Duration, o *owner, span *report.Wait,
) (*Hold, error) {
	m.mu.Lock()
	queue, onRevoke := m.queue, m.onRevoke
	m.mu.Unlock()
	if span.IsRecording() {
		queue.OnQueued = span.Position
	}
	if onRevoke != nil {
		queue.Data = []byte{} // as in Java: no data before a request
	}
	c, shared, err := m.enqueue(waitCtx, wait, o, &queue)
	if err != nil {
		return nil, errtext.Wrap(err, "locks", "acquire %s", queue.Path)
	}
	g := newGrant(ctx, &queue, c)
	if shared != nil {
		g.tokens = shared.tokens
	}
	deleteNode := g.release
	g.release = func(ctx context.Context) error {
		m.mu.Lock()
		delete(m.grants, g)
		m.dropReleased(o)
		m.mu.Unlock()
		return deleteNode(ctx)
	}
	hold := &Hold{grant: g}
	m.mu.Lock()
	m.grants[g] = struct{}{}
	if o != nil {
		m.owned[o] = append(m.owned[o], hold)
	}
	m.mu.Unlock()
	if onRevoke != nil {
		g.watch.ReportData(revocationHandler(m.queue.Client, hold, onRevoke))
	} else {
		g.watch.Start(waitqueue.ShortHold)
	}
	return hold, nil
}

// enqueue waits for the turn in the queue. shared is the hold whose place the owner shares, or nil.
func (m *InterProcessMutex) enqueue(
	ctx context.Context, wait time.Duration, o *owner, queue *waitqueue.Queue,
) (c *waitqueue.Contender, shared *Hold, err error) {
	if m.prepare != nil {
		if shared, err = m.prepare(o, queue); err != nil {
			return nil, nil, err
		}
	}
	if shared == nil {
		c, err = queue.Acquire(ctx, wait)
		return c, nil, err
	}
	c, err = queue.AcquireOnce(ctx, wait)
	if errors.Is(err, waitqueue.ErrNodeLost) {
		err = ErrLockLost
	}
	return c, shared, err
}

// holdOf returns the newest hold of an owner, or nil if that is lost or does not exist.
func (m *InterProcessMutex) holdOf(o *owner) *Hold {
	hold := m.newest(o)
	if hold == nil || !hold.isHeld() {
		return nil
	}
	return hold
}

// newest returns the newest hold of an owner that is not released, or nil. It may be lost.
func (m *InterProcessMutex) newest(o *owner) *Hold {
	if o == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropReleased(o)
	held := m.owned[o]
	if len(held) == 0 {
		return nil
	}
	return held[len(held)-1]
}

// reenter returns another hold for an owner that holds the lock, and nil for others.
func (m *InterProcessMutex) reenter(o *owner) (*Hold, error) {
	if o == nil {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropReleased(o)
	held := m.owned[o]
	if len(held) == 0 {
		return nil, nil
	}
	hold, err := held[len(held)-1].newHold()
	if err != nil {
		return nil, errtext.Wrap(err, "locks", "acquire %s", m.queue.Path)
	}
	m.owned[o] = append(held, hold)
	return hold, nil
}

// dropReleased drops the released holds of an owner. mu is held.
func (m *InterProcessMutex) dropReleased(o *owner) {
	var kept []*Hold
	for _, h := range m.owned[o] {
		if !h.isReleased() {
			kept = append(kept, h)
		}
	}
	if len(kept) == 0 {
		delete(m.owned, o)
		return
	}
	m.owned[o] = kept
}

// Release ends the newest hold of the owner of ctx, as [Hold.Release] does. It fails with [ErrNotOwner] if ctx has no
// owner or the owner has no hold: see [WithOwner]. It is for code ported from Java; new code releases its [Hold].
func (m *InterProcessMutex) Release(ctx context.Context) error {
	o := ownerOf(ctx)
	if o == nil {
		return errtext.Wrap(errNoOwner, "locks", "release %s", m.queue.Path)
	}
	m.mu.Lock()
	m.dropReleased(o)
	held := m.owned[o]
	m.mu.Unlock()
	if len(held) == 0 {
		return errtext.Wrap(ErrNotOwner, "locks", "release %s", m.queue.Path)
	}
	return held[len(held)-1].Release(ctx)
}

// IsAcquiredInThisProcess reports whether the lock is held through this value and not lost.
func (m *InterProcessMutex) IsAcquiredInThisProcess() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for g := range m.grants {
		if g.isHeld() {
			return true
		}
	}
	return false
}

// IsOwned reports whether the owner of ctx holds the lock through this value and has not lost it. In Java:
// isOwnedByCurrentThread.
func (m *InterProcessMutex) IsOwned(ctx context.Context) bool { return m.holdOf(ownerOf(ctx)) != nil }

// ParticipantNodes returns the paths of the nodes in line, that of the holder first.
func (m *InterProcessMutex) ParticipantNodes(ctx context.Context) ([]string, error) {
	paths, err := participantNodes(ctx, &m.queue)
	if m.prepare == nil {
		return paths, err
	}
	return slices.DeleteFunc(paths, func(path string) bool { // the nodes of the other side of a read-write lock
		return !strings.Contains(zkpath.Node(path), m.queue.Prefix)
	}), err
}

// participantNodes returns the paths of the nodes of a queue.
func participantNodes(ctx context.Context, queue *waitqueue.Queue) ([]string, error) {
	paths, err := queue.Participants(ctx)
	if err != nil {
		return nil, errtext.Wrap(err, "locks", "participants")
	}
	return paths, nil
}
