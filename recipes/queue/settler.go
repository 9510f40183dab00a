package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// settler ends the deliveries of items with a lock, many at a time: node and lock go in one transaction, and what is put
// back comes in the same.
type settler struct {
	client      Client
	path, locks string
	life        context.Context // ends when close has waited long enough
	end         context.CancelFunc
	submitted   chan *settlement
	done        chan struct{}

	mu     sync.RWMutex // for the closing of submitted
	closed bool
}

type settlement struct {
	name    nodeName
	session *framework.Session // of the lock
	back    []byte             // what is put back, nil for nothing
	done    func(error)
	cause   context.Context //nolint:containedctx // of its span, nil if nobody traces
	sent    builders.Future[[]callbacks.OperationResult]
}

func newSettler(client Client, path, locks string, window int) *settler {
	return &settler{
		client: client, path: path, locks: locks,
		submitted: make(chan *settlement, window), done: make(chan struct{}),
	}
}

func (s *settler) start(life context.Context) {
	s.life, s.end = context.WithCancel(life)
	go s.run()
}

func (s *settler) run() {
	defer close(s.done)
	for x := range s.submitted {
		x.done(s.outcome(x))
	}
}

// settle submits x. It waits while there are too many under way.
func (s *settler) settle(x *settlement) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.closed:
		x.done(ErrClosed)
	case x.session.Context().Err() != nil: // the lock that is there now is another's
		x.done(s.lost(x))
	default:
		s.submit(x)
		s.submitted <- x
	}
}

// close waits for what was submitted, and gives it up when ctx ends. Nothing is submitted after it.
func (s *settler) close(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.end)
	defer stop()
	s.mu.Lock()
	s.closed = true
	close(s.submitted)
	s.mu.Unlock()
	<-s.done
	s.end()
}

func (s *settler) submit(x *settlement) {
	op := s.client.TransactionOp()
	ops := []builders.TransactionOperation{op.Delete().ForPath(zkpath.Join(s.path, x.name.whole))}
	if x.back != nil {
		again := op.Create().WithMode(builders.PersistentSequential)
		ops = append(ops, again.ForPath(zkpath.Join(s.path, x.name.prefix), x.back))
	}
	ops = append(ops, op.Delete().ForPath(zkpath.Join(s.locks, x.name.whole)))
	flight := builders.InOneFlight(s.life)
	if x.cause != nil {
		flight = telemetry.Traced(flight, x.cause)
	}
	x.sent = s.client.Transaction().Submit(flight, ops...)
}

// outcome waits for the end of x. After a lost connection it may find that x has taken effect.
func (s *settler) outcome(x *settlement) error {
	for {
		_, err := x.sent.Wait(s.life)
		switch {
		case err == nil:
			return nil
		case s.life.Err() != nil:
			s.leave(x)
			return ErrClosed
		case x.session.Context().Err() != nil:
			return s.lost(x)
		case !lineup.IsOutage(err):
			return s.apart(x, err)
		}
		if awaitConnection(s.life, s.client) == nil && x.session.Context().Err() == nil {
			s.submit(x)
		}
	}
}

// lost ends x after the lock was lost with its session: another consumer may have the item. What is consumed is deleted
// all the same, so that not one more gets it.
func (s *settler) lost(x *settlement) error {
	if x.back == nil {
		s.delete(zkpath.Join(s.path, x.name.whole))
	}
	return ErrLockLost
}

// apart ends x without a transaction, because of which it failed: somebody has deleted the item or the lock, it was
// applied before, or something in it is not allowed.
func (s *settler) apart(x *settlement, cause error) error {
	switch {
	case x.back == nil:
		cause = s.client.Delete().Quietly().ForPath(s.life, zkpath.Join(s.path, x.name.whole))
	case errors.Is(cause, zk.ErrNoNode):
		cause = nil
	}
	s.delete(zkpath.Join(s.locks, x.name.whole))
	if cause != nil {
		return errtext.Wrap(cause, "queue", "settle")
	}
	return nil
}

// leave ends x as far as it can be while there is no connection and nobody waits for one.
func (s *settler) leave(x *settlement) {
	if x.back == nil {
		s.delete(zkpath.Join(s.path, x.name.whole))
	}
	s.delete(zkpath.Join(s.locks, x.name.whole))
}

func (s *settler) delete(path string) {
	ctx := context.WithoutCancel(s.life)
	_ = s.client.Delete().Guaranteed().Quietly().InBackground(lineup.Ignore).ForPath(ctx, path)
}
