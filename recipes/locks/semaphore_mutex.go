package locks

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/waitqueue"
)

// InterProcessSemaphoreMutex is a lock with one holder at a time that is not re-entrant: a holder that acquires it
// again waits for itself. It is a semaphore of one lease. In Java: InterProcessSemaphoreMutex.
type InterProcessSemaphoreMutex struct {
	semaphore *InterProcessSemaphoreV2

	mu   sync.Mutex
	held []*Hold // the newest last; may include released and lost holds
}

var _ InterProcessLock = (*InterProcessSemaphoreMutex)(nil)

// NewInterProcessSemaphoreMutex returns the lock of a path. It does no I/O. Every Acquire returns an error if the path
// is invalid.
func NewInterProcessSemaphoreMutex(
	client *framework.Client, path string, opts ...SemaphoreOption,
) *InterProcessSemaphoreMutex {
	m := &InterProcessSemaphoreMutex{semaphore: NewInterProcessSemaphoreV2(client, path, 1, opts...)}
	m.semaphore.initTelemetry("semaphore_mutex")
	return m
}

func (m *InterProcessSemaphoreMutex) telemetry() *telemetry.Telemetry {
	return hook.Telemetry(m.semaphore.client)
}

// Acquire waits for the lock and returns a [Hold]. The caller must release it. ctx bounds the wait. The place in line
// survives a lost connection. After the end of the session Acquire queues again. Acquire also fails when the first
// create fails after all retries of the client.
func (m *InterProcessSemaphoreMutex) Acquire(ctx context.Context) (*Hold, error) {
	return m.keep(m.semaphore.acquire(ctx, 1, waitqueue.Forever))
}

// TryAcquire is Acquire that fails with [ErrNotAcquired] after wait. The time to connect counts. A wait of 0 takes the
// lock if it is free. A negative wait is an error.
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
	m.dropReleased()
	m.held = append(m.held, hold)
	return hold, nil
}

// dropReleased drops the released holds. mu is held.
func (m *InterProcessSemaphoreMutex) dropReleased() {
	m.held = slices.DeleteFunc(m.held, (*Hold).isReleased)
}

// Release ends the newest hold of this value, as [Hold.Release] does, whichever goroutine acquired it. It fails with
// [ErrNotOwner] if there is no hold. It is for code ported from Java; new code releases its [Hold].
func (m *InterProcessSemaphoreMutex) Release(ctx context.Context) error {
	m.mu.Lock()
	m.dropReleased()
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

// IsAcquiredInThisProcess reports whether the lock is held through this value and not lost.
func (m *InterProcessSemaphoreMutex) IsAcquiredInThisProcess() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.held, (*Hold).isHeld)
}
