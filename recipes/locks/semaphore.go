package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// InterProcessSemaphoreV2 is a semaphore: it has a number of leases, and each lease has one holder at a time. All
// processes have to use the same number. Waiters get leases in the order of their requests. One value serves all
// goroutines of a process.
//
// Its nodes are not those of Java's deprecated InterProcessSemaphore, which is not ported. In Java:
// InterProcessSemaphoreV2.
type InterProcessSemaphoreV2 struct {
	client     *framework.Client
	path       string
	turnQueue  waitqueue.Queue // its first contender may take leases
	leaseQueue waitqueue.Queue
	limit      LeaseCount
	err        error // returned by every Acquire if not nil: the path or the number is invalid
	name       string
	obs        report.Lock
}

// The nodes of a semaphore below its path, and the prefix of the leases.
const (
	turnNode  = "locks"
	leaseNode = "leases"
	leaseName = "lease-"
)

// NewInterProcessSemaphoreV2 returns the semaphore of a path with a number of leases. It does no I/O. Every Acquire
// returns an error if the path or the number is invalid.
func NewInterProcessSemaphoreV2(
	client *framework.Client, path string, leases int, opts ...SemaphoreOption,
) *InterProcessSemaphoreV2 {
	s := &InterProcessSemaphoreV2{
		client: client, path: path, limit: fixedCount(leases), err: zkpath.Validate(path, false),
	}
	if s.err == nil {
		s.leaseQueue = waitqueue.Queue{Client: client, Path: zkpath.Join(path, leaseNode), Prefix: leaseName}
		s.turnQueue = waitqueue.Queue{
			Client: client, Path: zkpath.Join(path, turnNode), Prefix: lockName,
			CountPath: s.leaseQueue.Path,
		}
	}
	for _, o := range opts {
		o.applySemaphore(s)
	}
	if _, fixed := s.limit.(fixedCount); fixed && leases < 1 && s.err == nil {
		s.err = fmt.Errorf("locks: a semaphore of %d leases", leases)
	}
	s.initTelemetry("semaphore")
	return s
}

// initTelemetry names the recipe in spans and metrics.
func (s *InterProcessSemaphoreV2) initTelemetry(recipe string) {
	s.obs = report.NewLock(hook.Telemetry(s.client), recipe, s.name, s.path)
}

// Acquire waits for a lease. The caller must return it. ctx bounds the wait: when it ends, no lease and no node is
// left. The place in line survives a lost connection. After the end of the session Acquire queues again. Acquire also
// fails when the first create fails after all retries of the client.
func (s *InterProcessSemaphoreV2) Acquire(ctx context.Context) (*Lease, error) {
	return single(s.acquire(ctx, 1, waitqueue.Forever))
}

// TryAcquire is Acquire that fails with [ErrNotAcquired] after wait. The time to connect counts. A wait of 0 takes a
// lease if one is free and nobody else is taking one; without a connection it fails after all retries of the client. A
// negative wait is an error.
func (s *InterProcessSemaphoreV2) TryAcquire(ctx context.Context, wait time.Duration) (*Lease, error) {
	return single(s.TryAcquireN(ctx, 1, wait))
}

func single(leases []*Lease, err error) (*Lease, error) {
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

// AcquireN waits for n leases, all or none. Nobody else gets a lease between two of them. If the number of leases falls
// below n, AcquireN leaves the line until the number rises.
func (s *InterProcessSemaphoreV2) AcquireN(ctx context.Context, n int) ([]*Lease, error) {
	return s.acquire(ctx, n, waitqueue.Forever)
}

// TryAcquireN is AcquireN that fails with [ErrNotAcquired] after wait, one wait for all leases.
func (s *InterProcessSemaphoreV2) TryAcquireN(ctx context.Context, n int, wait time.Duration) ([]*Lease, error) {
	if wait < 0 {
		return nil, fmt.Errorf("locks: negative wait %v", wait)
	}
	return s.acquire(ctx, n, wait)
}

func (s *InterProcessSemaphoreV2) acquire(ctx context.Context, n int, wait time.Duration) ([]*Lease, error) {
	if s.err != nil {
		return nil, errtext.Wrap(s.err, "locks", "acquire")
	}
	if limit, fixed := s.limit.(fixedCount); n < 1 || fixed && n > int(limit) {
		return nil, fmt.Errorf("locks: acquire %s: %d leases of a semaphore of %d", s.path, n, s.limit.Count())
	}
	defer s.client.QuorumHeartbeats()()
	waitCtx, span := s.obs.Acquire(ctx)
	leases, err := waitqueue.Retry(waitCtx, s.client, wait, func(waitCtx context.Context) ([]*Lease, error) {
		return s.take(ctx, waitCtx, n, wait, span)
	})
	span.End(waitOutcome(err), err)
	if err != nil {
		return nil, errtext.Wrap(err, "locks", "acquire %s", s.path)
	}
	for _, l := range leases {
		l.hold.setSpan(s.obs.Hold(span))
	}
	return leases, nil
}

// take waits for the turn, then for the leases. waitCtx bounds the wait. The leases have the values of ctx. It fails
// with [waitqueue.ErrNodeLost] if the turn is lost while it waits; the caller has to queue again.
func (s *InterProcessSemaphoreV2) take(
	ctx, waitCtx context.Context, n int, wait time.Duration, span *report.Wait,
) (leases []*Lease, err error) {
	if err := s.awaitLimit(waitCtx, n, wait); err != nil {
		return nil, err
	}
	waitCtx = hook.Telemetry(s.client).ExpectingErrors(waitCtx)
	queue := s.turnQueue
	if span.IsRecording() {
		queue.OnQueued = span.Position
	}
	turn, err := queue.AcquireOnce(waitCtx, wait)
	if err != nil {
		return nil, err
	}
	over := false
	defer func() {
		if !over { // code of the program, such as an ACL provider, has ended the goroutine
			s.leaseQueue.ReleaseInBackground(waitCtx, turn.Path)
		}
	}()
	session := turn.Session.Context()
	turnCtx, cancel := context.WithCancel(waitCtx)
	defer cancel()
	defer context.AfterFunc(session, cancel)()
	t := &leaseTurn{semaphore: s, turn: turn, wanted: n, wait: wait}
	taken, err := t.take(turnCtx)
	over = true
	// After a suspension of the machine, Session ends a session that has expired meanwhile.
	if s.client.Session() != turn.Session || session.Err() != nil {
		err = waitqueue.ErrNodeLost
	}
	if err != nil {
		for _, c := range append(taken, turn) {
			s.leaseQueue.ReleaseInBackground(waitCtx, c.Path)
		}
		return nil, err
	}
	for _, c := range taken {
		g := newGrant(ctx, &s.leaseQueue, c)
		g.watch.Start(waitqueue.ShortHold)
		leases = append(leases, &Lease{hold: &Hold{grant: g}, client: s.client})
	}
	return leases, nil
}

// awaitLimit waits outside the line until the limit is at least n, so that others can take the leases there are.
func (s *InterProcessSemaphoreV2) awaitLimit(ctx context.Context, n int, wait time.Duration) error {
	for {
		changed := s.limit.Changed()
		switch {
		case n <= s.limit.Count():
			return nil
		case wait == 0:
			return waitqueue.ErrNotAcquired
		}
		if err := hook.AwaitConnection(ctx, s.client); err != nil {
			return err
		}
		session := s.client.Session()
		if session == nil {
			continue
		}
		select {
		case <-changed:
		case <-session.Context().Done(): // the client may be closed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// createLeaseContainer creates the parent node of the leases.
func (s *InterProcessSemaphoreV2) createLeaseContainer(ctx context.Context) error {
	below := zkpath.Join(s.leaseQueue.Path, s.leaseQueue.Prefix)
	_, err := s.client.CheckExists().CreatingParentContainersIfNeeded().ForPath(ctx, below)
	return err
}

// ReturnAll returns all leases, even if some returns fail, and joins the errors. In Java: returnAll.
func (s *InterProcessSemaphoreV2) ReturnAll(ctx context.Context, leases ...*Lease) error {
	var wg sync.WaitGroup
	errs := make([]error, len(leases))
	for i, l := range leases {
		if l != nil {
			wg.Go(func() { errs[i] = l.Return(ctx) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ParticipantNodes returns the paths of the leases in use. They include the leases that waiters in Java have created.
func (s *InterProcessSemaphoreV2) ParticipantNodes(ctx context.Context) ([]string, error) {
	if s.err != nil {
		return nil, errtext.Wrap(s.err, "locks", "participants")
	}
	return participantNodes(ctx, &s.leaseQueue)
}
