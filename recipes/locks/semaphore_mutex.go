package locks

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// InterProcessSemaphoreMutex is a lock that one holder at a time has and that nobody re-enters: an owner who asks again
// waits for itself. It is a semaphore of one lease. In Java: InterProcessSemaphoreMutex.
type InterProcessSemaphoreMutex struct {
	semaphore *InterProcessSemaphoreV2

	mu   sync.Mutex
	held []*Hold // newest last; those that are released or lost may still be there
}

var _ InterProcessLock = (*InterProcessSemaphoreMutex)(nil)

// NewInterProcessSemaphoreMutex returns the lock of a path. It does no I/O; a path that cannot be is the error of every
// Acquire.
func NewInterProcessSemaphoreMutex(client Client, path string, opts ...SemaphoreOption) *InterProcessSemaphoreMutex {
	m := &InterProcessSemaphoreMutex{semaphore: NewInterProcessSemaphoreV2(client, path, 1, opts...)}
	m.semaphore.tellAs("semaphore_mutex")
	return m
}

func (m *InterProcessSemaphoreMutex) telemetry() *telemetry.Telemetry {
	return telemetry.Of(m.semaphore.client)
}

// Acquire waits until the lock is granted and returns a [Hold], which must be released. ctx bounds the waiting. While
// the connection is lost the place in line is kept; when the session is lost, Acquire lines up anew.
func (m *InterProcessSemaphoreMutex) Acquire(ctx context.Context) (*Hold, error) {
	return m.keep(m.semaphore.acquire(ctx, 1, lineup.Forever))
}

// TryAcquire is Acquire that gives up with [ErrNotAcquired] after wait, connecting included. 0 takes the lock if it is
// free. A negative wait is an error.
func (m *InterProcessSemaphoreMutex) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	return m.keep(m.semaphore.TryAcquireN(ctx, 1, wait))
}

func (m *InterProcessSemaphoreMutex) keep(leases []*Lease, err error) (*Hold, error) {
	if err != nil {
		return nil, err
	}
	hold := leases[0].hold
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetReleased()
	m.held = append(m.held, hold)
	return hold, nil
}

// forgetReleased drops the holds that were released by themselves. mu is held.
func (m *InterProcessSemaphoreMutex) forgetReleased() {
	m.held = slices.DeleteFunc(m.held, (*Hold).isReleased)
}

// Release ends the newest hold, whoever has it, as [Hold.Release] does, or fails with [ErrNotOwner]. It is for code
// that comes from Java; new code releases its Hold.
func (m *InterProcessSemaphoreMutex) Release(ctx context.Context) error {
	m.mu.Lock()
	m.forgetReleased()
	n := len(m.held)
	if n == 0 {
		m.mu.Unlock()
		return errtext.Wrap(ErrNotOwner, "locks", "release %s", m.semaphore.path)
	}
	hold := m.held[n-1]
	m.held = m.held[:n-1]
	m.mu.Unlock()
	return hold.Release(ctx)
}

// IsAcquiredInThisProcess reports whether somebody holds the lock through this value, and has not lost it.
func (m *InterProcessSemaphoreMutex) IsAcquiredInThisProcess() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.held, (*Hold).isHeld)
}
