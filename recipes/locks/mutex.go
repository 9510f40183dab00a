package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// InterProcessLock is what all locks of this package can do. In Java: InterProcessLock.
type InterProcessLock interface {
	// Acquire waits until the lock is granted or ctx ends.
	Acquire(ctx context.Context) (*Hold, error)
	// TryAcquire is Acquire that gives up with [ErrNotAcquired] after wait; 0 does not wait for other holders at all.
	TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error)
	// IsAcquiredInThisProcess reports whether somebody holds the lock through this value.
	IsAcquiredInThisProcess() bool
}

// InterProcessMutex is a lock that one holder at a time has, in the order in which they asked. One value serves all
// goroutines of a process. It is re-entrant for owners: see [WithOwner]. In Java: InterProcessMutex.
type InterProcessMutex struct {
	line lineup.Line
	bad  error // why the path cannot be
	name string
	told telemetry.Lock
	// driver is that of the user, nil if there is none.
	driver Driver
	// adapt makes of the line that of an owner, or says why it cannot line up. It returns the hold whose place the owner
	// keeps, which is lost with its node; nil if it takes a new place. It may be nil.
	adapt func(o *owner, line *lineup.Line) (keeps *Hold, err error)

	mu      sync.Mutex
	revoked func(*Hold)
	grants  map[*grant]struct{}
	owned   map[*owner][]*Hold // newest last
}

var _ InterProcessLock = (*InterProcessMutex)(nil)

// lockName is in front of the numbers of a mutex's nodes.
const lockName = "lock-"

// Option changes a default of a lock.
type Option interface{ apply(*InterProcessMutex) }

type option func(*InterProcessMutex)

func (o option) apply(m *InterProcessMutex) { o(m) }

// WithLockNodeData sets the data of the nodes of this process, by default the default data of the client. In Java:
// getLockNodeBytes.
func WithLockNodeData(data []byte) Option {
	return option(func(m *InterProcessMutex) { m.line.Data = append([]byte{}, data...) })
}

// NameOption is for all locks of this package.
type NameOption interface {
	Option
	SemaphoreOption
}

type nameOption string

func (o nameOption) apply(m *InterProcessMutex)                { m.name = string(o) }
func (o nameOption) applySemaphore(s *InterProcessSemaphoreV2) { s.name = string(o) }

// WithName sets what spans and metrics call the lock; the default is nothing. Metrics have a series for each name, so
// there should be few: "orders", not the number of an order.
func WithName(name string) NameOption { return nameOption(name) }

// NewInterProcessMutex returns the mutex of a path. The node of the path and its parents are created, as containers,
// when the lock is first acquired. It does no I/O; a path that cannot be is the error of every Acquire.
func NewInterProcessMutex(client Client, path string, opts ...Option) *InterProcessMutex {
	m := &InterProcessMutex{
		line:   lineup.Line{Client: client, Path: path, Name: lockName},
		bad:    zkpath.Validate(path, false),
		grants: make(map[*grant]struct{}),
		owned:  make(map[*owner][]*Hold),
	}
	for _, o := range opts {
		o.apply(m)
	}
	if m.driver != nil {
		m.follow(m.driver)
	}
	m.tellAs("mutex")
	return m
}

// tellAs says which recipe the mutex is part of.
func (m *InterProcessMutex) tellAs(recipe string) {
	m.told = telemetry.Of(m.line.Client).NewLock(recipe, m.name, m.line.Path)
}

func (m *InterProcessMutex) telemetry() *telemetry.Telemetry { return telemetry.Of(m.line.Client) }

// Acquire waits until the lock is granted and returns a [Hold], which must be released. ctx bounds the waiting: when it
// ends, the place in line is given up. While the connection is lost the place is kept; when the session is lost,
// Acquire lines up anew. An owner that holds the lock already gets another hold at once, or [ErrLockLost] if it has
// lost the lock and not yet released it. Other errors: those of the first create, when the retry policy of the client
// has given up.
func (m *InterProcessMutex) Acquire(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, lineup.Forever)
}

// TryAcquire is Acquire that gives up with [ErrNotAcquired] after wait, connecting included. 0 takes the lock if it is
// free; without a connection it fails as an operation does, when the retry policy of the client has given up. A
// negative wait is an error.
func (m *InterProcessMutex) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	if wait < 0 {
		return nil, fmt.Errorf("locks: negative wait %v", wait)
	}
	return m.acquire(ctx, wait)
}

func (m *InterProcessMutex) acquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	if m.bad != nil {
		return nil, errtext.Wrap(m.bad, "locks", "acquire")
	}
	o := ownerOf(ctx)
	defer m.line.Client.QuorumHeartbeats()()
	within, asked := m.told.Acquire(ctx)
	if hold, err := m.enter(o); hold != nil || err != nil {
		asked.Reentrant()
		asked.End(outcome(err), err)
		return hold, err
	}
	hold, err := m.grant(ctx, within, wait, o, asked)
	asked.End(outcome(err), err)
	if err != nil {
		return nil, err
	}
	hold.observe(m.told.Hold(asked))
	return hold, nil
}

// grant waits for the lock, with the context within; values are for the hold.
func (m *InterProcessMutex) grant(
	values, within context.Context, wait time.Duration, o *owner, asked *telemetry.Wait,
) (*Hold, error) {
	m.mu.Lock()
	line, revoked := m.line, m.revoked
	m.mu.Unlock()
	if asked.IsSeen() {
		line.Lined = asked.Position
	}
	if revoked != nil {
		line.Data = []byte{} // as in Java: empty until somebody asks
	}
	c, keeps, err := m.lineUp(within, wait, o, &line)
	if err != nil {
		return nil, errtext.Wrap(err, "locks", "acquire %s", line.Path)
	}
	g := newGrant(values, &line, c)
	if keeps != nil {
		g.tokens = keeps.tokens
	}
	deleteNode := g.release
	g.release = func(ctx context.Context) error {
		m.mu.Lock()
		delete(m.grants, g)
		m.forgetReleased(o)
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
	if revoked != nil {
		g.watch.ReportData(requestOf(hold, revoked))
	} else {
		g.watch.Start(lineup.ShortHold)
	}
	return hold, nil
}

// lineUp gets a place in line and waits until it is its turn. keeps is the hold whose place it is, nil for a new one.
func (m *InterProcessMutex) lineUp(
	ctx context.Context, wait time.Duration, o *owner, line *lineup.Line,
) (c *lineup.Contender, keeps *Hold, err error) {
	if m.adapt != nil {
		if keeps, err = m.adapt(o, line); err != nil {
			return nil, nil, err
		}
	}
	if keeps == nil {
		c, err = line.Acquire(ctx, wait)
		return c, nil, err
	}
	c, err = line.Once(ctx, wait)
	if errors.Is(err, lineup.ErrGone) {
		err = ErrLockLost
	}
	return c, keeps, err
}

// holdOf returns the newest hold of an owner, nil if it has none that is not lost.
func (m *InterProcessMutex) holdOf(o *owner) *Hold {
	if o == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.owned[o]
	if len(held) == 0 || !held[len(held)-1].isHeld() {
		return nil
	}
	return held[len(held)-1]
}

// enter returns another hold of an owner that has the lock; nil if it has none.
func (m *InterProcessMutex) enter(o *owner) (*Hold, error) {
	if o == nil {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetReleased(o)
	held := m.owned[o]
	if len(held) == 0 {
		return nil, nil
	}
	hold, err := held[len(held)-1].hold()
	if err != nil {
		return nil, errtext.Wrap(err, "locks", "acquire %s", m.line.Path)
	}
	m.owned[o] = append(held, hold)
	return hold, nil
}

// forgetReleased drops the holds that an owner has released by themselves. mu is held.
func (m *InterProcessMutex) forgetReleased(o *owner) {
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

// Release ends the newest hold of the owner of ctx, as [Hold.Release] does, or fails with [ErrNotOwner]: see
// [WithOwner]. It is for code that comes from Java; new code releases its Hold.
func (m *InterProcessMutex) Release(ctx context.Context) error {
	o := ownerOf(ctx)
	if o == nil {
		return errtext.Wrap(errNoOwner, "locks", "release %s", m.line.Path)
	}
	m.mu.Lock()
	m.forgetReleased(o)
	held := m.owned[o]
	m.mu.Unlock()
	if len(held) == 0 {
		return errtext.Wrap(ErrNotOwner, "locks", "release %s", m.line.Path)
	}
	return held[len(held)-1].Release(ctx)
}

// IsAcquiredInThisProcess reports whether somebody holds the lock through this value, and has not lost it.
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

// IsOwned reports whether the owner of ctx holds the lock through this value, and has not lost it. In Java:
// isOwnedByCurrentThread.
func (m *InterProcessMutex) IsOwned(ctx context.Context) bool { return m.holdOf(ownerOf(ctx)) != nil }

// ParticipantNodes returns the paths of the nodes that stand in line, the holder's first.
func (m *InterProcessMutex) ParticipantNodes(ctx context.Context) ([]string, error) {
	paths, err := m.line.Participants(ctx)
	if m.adapt == nil {
		return paths, err
	}
	return slices.DeleteFunc(paths, func(path string) bool { // those of the other side
		return !strings.Contains(zkpath.Node(path), m.line.Name)
	}), err
}
