package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// InterProcessSemaphoreV2 is a semaphore: a number of leases that are held at a time. All processes have to agree on the
// number. Leases are given in the order in which they were asked for. One value serves all goroutines of a process.
//
// Its nodes are not those of Java's deprecated InterProcessSemaphore, which is not ported. In Java:
// InterProcessSemaphoreV2.
type InterProcessSemaphoreV2 struct {
	client Client
	turn   lineup.Line // who may take leases: one at a time
	leases lineup.Line
	most   LeaseCount
	bad    error // why the path or the number cannot be
	name   string
	told   telemetry.Lock

	crowded atomic.Bool // others had the turn before us when we asked last
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
	return semaphoreOption(func(s *InterProcessSemaphoreV2) { s.most = c })
}

// fixedCount is a number of leases that does not change.
type fixedCount int

func (c fixedCount) Count() int             { return int(c) }
func (fixedCount) Changed() <-chan struct{} { return nil }

// NewInterProcessSemaphoreV2 returns the semaphore of a path with a number of leases. It does no I/O; a path or a number
// that cannot be is the error of every Acquire.
func NewInterProcessSemaphoreV2(client Client, path string, leases int, opts ...SemaphoreOption) *InterProcessSemaphoreV2 {
	s := &InterProcessSemaphoreV2{client: client, most: fixedCount(leases), bad: zkpath.Validate(path, false)}
	if s.bad == nil {
		s.turn = lineup.Line{Client: client, Path: zkpath.Join(path, turnNode), Name: lockName}
		s.leases = lineup.Line{Client: client, Path: zkpath.Join(path, leaseNode), Name: leaseName}
	}
	for _, o := range opts {
		o.applySemaphore(s)
	}
	if _, fixed := s.most.(fixedCount); fixed && leases < 1 && s.bad == nil {
		s.bad = fmt.Errorf("locks: a semaphore of %d leases", leases)
	}
	s.tellAs("semaphore", path)
	s.leases.Judge = s.judge
	s.leases.Changed = s.most.Changed
	return s
}

// tellAs says which recipe the semaphore is.
func (s *InterProcessSemaphoreV2) tellAs(recipe, path string) {
	s.told = telemetry.Of(s.client).NewLock(recipe, s.name, path)
}

// judge grants a lease when there are not too many with it. Whose they are does not matter: only who has the turn adds
// one.
func (s *InterProcessSemaphoreV2) judge(children []string, own string) lineup.Verdict {
	return lineup.Verdict{Found: slices.Contains(children, own), Granted: len(children) <= s.most.Count()}
}

// Acquire waits for a lease, which must be returned. ctx bounds the waiting: when it ends, neither lease nor node is
// left. While the connection is lost the place is kept; when the session is lost, Acquire lines up anew.
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

// AcquireN waits for n leases, all or none: nobody else gets a lease between two of them.
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
	if most, fixed := s.most.(fixedCount); n < 1 || fixed && n > int(most) {
		return nil, fmt.Errorf("locks: acquire %s: %d leases of a semaphore of %d", s.leases.Path, n, s.most.Count())
	}
	defer s.client.QuorumHeartbeats()()
	within, asked := s.told.Acquire(ctx)
	leases, err := s.takeWithin(within, ctx, n, wait, asked)
	asked.End(outcome(err), err)
	if err != nil {
		return nil, errtext.Wrap(err, "locks", "acquire %s", s.leases.Path)
	}
	for _, l := range leases {
		l.hold.observe(s.told.Hold(asked))
	}
	return leases, nil
}

// takeWithin is take that fails with [ErrNotAcquired] after wait.
func (s *InterProcessSemaphoreV2) takeWithin(
	ctx, values context.Context, n int, wait time.Duration, asked *telemetry.Wait,
) ([]*Lease, error) {
	bounded := ctx
	if wait > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
		wait = lineup.Forever
	}
	leases, err := s.take(bounded, values, n, wait, asked)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, ErrNotAcquired // the end of wait
	}
	return leases, err
}

// take waits for the turn, then for the leases, and gives the turn on. With the session of the turn all are lost, and it
// begins anew: if two could add leases, each might wait for the other to have none. bounded ends the waiting, values are
// for the leases.
func (s *InterProcessSemaphoreV2) take(
	bounded, values context.Context, n int, wait time.Duration, asked *telemetry.Wait,
) ([]*Lease, error) {
	for {
		leases, err := s.takeInTurn(bounded, values, n, wait, asked)
		if !errors.Is(err, lineup.ErrGone) {
			return leases, err
		}
	}
}

// takeInTurn is take that fails with [lineup.ErrGone] if the turn, or a node that is to be a lease, goes while it waits.
func (s *InterProcessSemaphoreV2) takeInTurn(
	bounded, values context.Context, n int, wait time.Duration, asked *telemetry.Wait,
) (leases []*Lease, err error) {
	look := &lookout{semaphore: s, wanted: n}
	line := s.turn
	line.Along, line.Inherit = look.out, look.inherit
	line.Lined = func(ahead int) {
		look.lined(ahead)
		asked.Position(ahead)
	}
	turn, err := line.Acquire(bounded, wait)
	if err != nil {
		return nil, err
	}
	session := turn.Session.Context()
	inTurn, cancel := context.WithCancel(bounded)
	defer cancel()
	defer context.AfterFunc(session, cancel)()
	taken, err := s.occupy(inTurn, wait, turn, look, n)
	if session.Err() != nil {
		err = lineup.ErrGone
	}
	if err != nil {
		for _, c := range taken {
			s.leases.Leave(bounded, c.Path)
		}
		return nil, err
	}
	for _, c := range taken {
		g := newGrant(values, s.client, c, func(ctx context.Context) error { return s.leases.Release(ctx, c.Path) })
		leases = append(leases, &Lease{hold: &Hold{grant: g}, client: s.client})
	}
	return leases, nil
}

// occupy takes n leases and ends the turn. What it has taken when it fails is returned, too.
func (s *InterProcessSemaphoreV2) occupy(
	ctx context.Context, wait time.Duration, turn *lineup.Contender, look *lookout, n int,
) (taken []*lineup.Contender, err error) {
	enough, err := look.enough(ctx, wait)
	if enough { // and they stay free: only who has the turn adds leases
		if taken, err = s.create(ctx, turn, n, look.mayTell(zkpath.Node(turn.Path))); err == nil {
			return taken, nil
		}
	}
	defer s.turn.Leave(context.WithoutCancel(ctx), turn.Path) // nobody needs to wait for that
	if err != nil {
		return taken, err
	}
	for range n { // as Java does: who waits for a lease has its node
		c, err := s.leases.Once(ctx, wait)
		if err != nil {
			return taken, err
		}
		taken = append(taken, c)
	}
	return taken, nil
}

// create creates the nodes of the leases and ends the turn, all in one: a turn that is lost takes no lease. To tell what is
// left, the data of the turn's node is set before it is deleted. Who watches it hears that it has changed, and not that it is
// gone: so it knows that the turn is its own, if its node is still there, and what is left for it.
func (s *InterProcessSemaphoreV2) create(
	ctx context.Context, turn *lineup.Contender, n int, tell bool,
) ([]*lineup.Contender, error) {
	op := s.client.TransactionOp()
	lease := op.Create().WithProtection().WithMode(builders.EphemeralSequential)
	var ops []builders.TransactionOperation
	for range n {
		ops = append(ops, lease.ForPath(zkpath.Join(s.leases.Path, s.leases.Name), s.leases.Data))
	}
	if tell {
		ops = append(ops, op.SetData().ForPath(turn.Path, nil))
	}
	ops = append(ops, op.Delete().ForPath(turn.Path))
	stat := zk.Stat{EphemeralOwner: turn.Stat.EphemeralOwner}
	transaction := s.client.Transaction().StoringZxidIn(&stat.Czxid)
	for {
		results, err := transaction.ForOperations(ctx, ops...)
		switch {
		case err == nil:
			return taken(results[:n], stat, turn.Session)
		case errors.Is(err, zk.ErrNoAuth) && tell: // we may create and delete only
			tell, ops = false, slices.Delete(ops, n, n+1)
		case errors.Is(err, zk.ErrNoNode) && len(results) > 0 && results[0].Err != nil: // an empty container may vanish
			if err := s.makeLeases(ctx); err != nil {
				return nil, err
			}
		case errors.Is(err, zk.ErrNoNode): // the turn
			return nil, lineup.ErrGone
		default:
			return nil, err
		}
	}
}

// taken gives the leases that were created.
func taken(
	results []callbacks.OperationResult, stat zk.Stat, session *framework.Session,
) (leases []*lineup.Contender, err error) {
	for _, r := range results {
		if r.ResultPath == "" { // somebody has deleted it before we knew of it
			err = lineup.ErrGone
			continue
		}
		leases = append(leases, &lineup.Contender{Path: r.ResultPath, Stat: stat, Session: session})
	}
	return leases, err
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

// ParticipantNodes returns the paths of the leases that are held or being taken.
func (s *InterProcessSemaphoreV2) ParticipantNodes(ctx context.Context) ([]string, error) {
	if s.bad != nil {
		return nil, errtext.Wrap(s.bad, "locks", "participants")
	}
	return s.leases.Participants(ctx)
}
