package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// InterProcessSemaphoreV2 is a semaphore: a number of leases that are held at a time. All processes have to agree on
// the number. Leases are given in the order in which they were asked for. One value serves all goroutines of a process.
//
// Its nodes are not those of Java's deprecated InterProcessSemaphore, which is not ported. In Java:
// InterProcessSemaphoreV2.
type InterProcessSemaphoreV2 struct {
	client Client
	path   string
	turn   lineup.Line // who may take leases: one at a time
	leases lineup.Line
	limit  LeaseCount
	bad    error // why the path or the number cannot be
	name   string
	told   telemetry.Lock
}

// LeaseCount is a number of leases that may change and that all processes share. In Java: SharedCountReader.
type LeaseCount interface {
	// Count returns the number of leases.
	Count() int
	// Changed returns a channel that is closed when the number changes after the call.
	Changed() <-chan struct{}
}

// Where a semaphore has its nodes, and what stands in front of their numbers.
const (
	turnNode  = "locks"
	leaseNode = "leases"
	leaseName = "lease-"
)

// SemaphoreOption changes a default of a semaphore.
type SemaphoreOption interface {
	applySemaphore(*InterProcessSemaphoreV2)
}

type semaphoreOption func(*InterProcessSemaphoreV2)

func (o semaphoreOption) applySemaphore(s *InterProcessSemaphoreV2) { o(s) }

// WithLeaseData sets the data of the leases of this process, by default the default data of the client. In Java:
// setNodeData.
func WithLeaseData(data []byte) SemaphoreOption {
	return semaphoreOption(func(s *InterProcessSemaphoreV2) { s.leases.Data = append([]byte{}, data...) })
}

// WithLeaseCount has the number of leases follow a count that all processes share, in place of the number that the
// semaphore was made with. Who waits is woken by a change; leases that are held when the number falls are kept.
func WithLeaseCount(c LeaseCount) SemaphoreOption {
	return semaphoreOption(func(s *InterProcessSemaphoreV2) { s.limit = c })
}

// fixedCount is a number of leases that does not change.
type fixedCount int

func (c fixedCount) Count() int             { return int(c) }
func (fixedCount) Changed() <-chan struct{} { return nil }

// NewInterProcessSemaphoreV2 returns the semaphore of a path with a number of leases. It does no I/O; a path or a
// number that cannot be is the error of every Acquire.
func NewInterProcessSemaphoreV2(
	client Client, path string, leases int, opts ...SemaphoreOption,
) *InterProcessSemaphoreV2 {
	s := &InterProcessSemaphoreV2{
		client: client, path: path, limit: fixedCount(leases), bad: zkpath.Validate(path, false),
	}
	if s.bad == nil {
		s.leases = lineup.Line{Client: client, Path: zkpath.Join(path, leaseNode), Name: leaseName}
		s.turn = lineup.Line{
			Client: client, Path: zkpath.Join(path, turnNode), Name: lockName, Count: s.leases.Path, Contended: new(atomic.Bool),
		}
	}
	for _, o := range opts {
		o.applySemaphore(s)
	}
	if _, fixed := s.limit.(fixedCount); fixed && leases < 1 && s.bad == nil {
		s.bad = fmt.Errorf("locks: a semaphore of %d leases", leases)
	}
	s.tellAs("semaphore")
	return s
}

// tellAs says which recipe the semaphore is.
func (s *InterProcessSemaphoreV2) tellAs(recipe string) {
	s.told = telemetry.Of(s.client).NewLock(recipe, s.name, s.path)
}

// Acquire waits for a lease, which must be returned. ctx bounds the waiting: when it ends, neither lease nor node is
// left. While the connection is lost the place is kept; when the session is lost, Acquire lines up anew. Other errors:
// those of the first create, when the retry policy of the client has given up.
func (s *InterProcessSemaphoreV2) Acquire(ctx context.Context) (*Lease, error) {
	return one(s.acquire(ctx, 1, lineup.Forever))
}

// TryAcquire is Acquire that gives up with [ErrNotAcquired] after wait, connecting included. 0 takes a lease if one is
// free and nobody else is taking one; without a connection it fails as an operation does, when the retry policy of the
// client has given up. A negative wait is an error.
func (s *InterProcessSemaphoreV2) TryAcquire(ctx context.Context, wait time.Duration) (*Lease, error) {
	return one(s.TryAcquireN(ctx, 1, wait))
}

func one(leases []*Lease, err error) (*Lease, error) {
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

// AcquireN waits for n leases, all or none: nobody else gets a lease between two of them. If the number of leases falls
// below n, it leaves the line until the number rises.
func (s *InterProcessSemaphoreV2) AcquireN(ctx context.Context, n int) ([]*Lease, error) {
	return s.acquire(ctx, n, lineup.Forever)
}

// TryAcquireN is AcquireN that gives up with [ErrNotAcquired] after wait, one wait for all of them.
func (s *InterProcessSemaphoreV2) TryAcquireN(ctx context.Context, n int, wait time.Duration) ([]*Lease, error) {
	if wait < 0 {
		return nil, fmt.Errorf("locks: negative wait %v", wait)
	}
	return s.acquire(ctx, n, wait)
}

func (s *InterProcessSemaphoreV2) acquire(ctx context.Context, n int, wait time.Duration) ([]*Lease, error) {
	if s.bad != nil {
		return nil, errtext.Wrap(s.bad, "locks", "acquire")
	}
	if limit, fixed := s.limit.(fixedCount); n < 1 || fixed && n > int(limit) {
		return nil, fmt.Errorf("locks: acquire %s: %d leases of a semaphore of %d", s.path, n, s.limit.Count())
	}
	defer s.client.QuorumHeartbeats()()
	within, asked := s.told.Acquire(ctx)
	leases, err := lineup.Retry(within, s.client, wait, func(bounded context.Context) ([]*Lease, error) {
		return s.take(bounded, ctx, n, wait, asked)
	})
	asked.End(outcome(err), err)
	if err != nil {
		return nil, errtext.Wrap(err, "locks", "acquire %s", s.path)
	}
	for _, l := range leases {
		l.hold.observe(s.told.Hold(asked))
	}
	return leases, nil
}

// take waits for the turn, then for the leases. ctx bounds the wait, values are for the leases. It fails with
// [lineup.ErrGone] if the turn goes while it waits: it has to line up anew.
func (s *InterProcessSemaphoreV2) take(
	ctx, values context.Context, n int, wait time.Duration, asked *telemetry.Wait,
) (leases []*Lease, err error) {
	if err := s.awaitLimit(ctx, n, wait); err != nil {
		return nil, err
	}
	ctx = telemetry.Of(s.client).Handling(ctx)
	line := s.turn
	if asked.IsSeen() {
		line.Lined = asked.Position
	}
	turn, err := line.Once(ctx, wait)
	if err != nil {
		return nil, err
	}
	session := turn.Session.Context()
	inTurn, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(session, cancel)()
	t := &leaseTurn{semaphore: s, turn: turn, wanted: n, wait: wait}
	taken, err := t.take(inTurn)
	// Asking for the session ends one that has not survived a suspension of the machine, with all that it had.
	if s.client.Session() != turn.Session || session.Err() != nil {
		err = lineup.ErrGone
	}
	if err != nil {
		for _, c := range append(taken, turn) {
			s.leases.Leave(ctx, c.Path)
		}
		return nil, err
	}
	for _, c := range taken {
		g := newGrant(values, &s.leases, c)
		g.watch.Start(lineup.ShortHold)
		leases = append(leases, &Lease{hold: &Hold{grant: g}, client: s.client})
	}
	return leases, nil
}

// awaitLimit waits until the limit is not below n, out of line: others may take what there is.
func (s *InterProcessSemaphoreV2) awaitLimit(ctx context.Context, n int, wait time.Duration) error {
	for {
		changed := s.limit.Changed()
		switch {
		case n <= s.limit.Count():
			return nil
		case wait == 0:
			return lineup.ErrNotAcquired
		}
		if err := s.client.BlockUntilConnected(ctx); err != nil {
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

// makeLeases makes the container of the leases.
func (s *InterProcessSemaphoreV2) makeLeases(ctx context.Context) error {
	below := zkpath.Join(s.leases.Path, s.leases.Name)
	_, err := s.client.CheckExists().CreatingParentContainersIfNeeded().ForPath(ctx, below)
	return err
}

// ReturnAll returns leases, all of them whatever the error of one is. In Java: returnAll.
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

// ParticipantNodes returns the paths of the leases that are held, and of those that a Java semaphore waits with.
func (s *InterProcessSemaphoreV2) ParticipantNodes(ctx context.Context) ([]string, error) {
	if s.bad != nil {
		return nil, errtext.Wrap(s.bad, "locks", "participants")
	}
	return s.leases.Participants(ctx)
}
