package interop_test

import (
	"context"
	"errors"
	"sync"

	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
)

// goLocks are the commands that make a lock.
var goLocks = map[string]func(*goScope, *order){
	"mutexNew": func(s *goScope, o *order) {
		s.addMutex("mutex", o, locks.NewInterProcessMutex(s.client, o.Path))
	},
	"readWriteLockNew": func(s *goScope, o *order) {
		rw := locks.NewInterProcessReadWriteLock(s.client, o.Path)
		s.addMutex("readLock", o, rw.ReadLock())
		s.addMutex("writeLock", o, rw.WriteLock())
		s.addLock("downgraded", o, downgrade(rw))
	},
	"semaphoreMutexNew": func(s *goScope, o *order) {
		s.addLock("semaphoreMutex", o, holdOf(locks.NewInterProcessSemaphoreMutex(s.client, o.Path)))
	},
	"multiLockNew": func(s *goScope, o *order) {
		var each []locks.InterProcessLock
		for _, path := range o.Paths {
			each = append(each, locks.NewInterProcessMutex(s.client, path))
		}
		s.addLock("multiLock", o, holdOf(locks.NewInterProcessMultiLock(each...)))
	},
	"semaphoreNew": func(s *goScope, o *order) {
		sem := locks.NewInterProcessSemaphoreV2(s.client, o.Path, o.Leases)
		s.addLock("semaphore", o, func(ctx context.Context, o *order) (*goHeld, error) {
			leases, err := sem.AcquireN(ctx, o.Leases)
			if err != nil {
				return nil, err
			}
			all := func(ctx context.Context) error { return sem.ReturnAll(ctx, leases...) }
			return &goHeld{leases[0].Context(), all}, nil
		})
		s.addParticipants("semaphore", o, sem.ParticipantNodes)
	},
}

// goHeld is a lock that is held.
type goHeld struct {
	ctx     context.Context // ends with it
	release func(context.Context) error
}

type goAcquire func(context.Context, *order) (*goHeld, error)

func holdOf(l locks.InterProcessLock) goAcquire {
	return func(ctx context.Context, _ *order) (*goHeld, error) {
		hold, err := l.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &goHeld{hold.Context(), hold.Release}, nil
	}
}

func downgrade(rw *locks.InterProcessReadWriteLock) goAcquire {
	return func(ctx context.Context, _ *order) (*goHeld, error) {
		ctx = locks.WithOwner(ctx)
		writes, err := rw.WriteLock().Acquire(ctx)
		if err != nil {
			return nil, err
		}
		reads, err := rw.ReadLock().Acquire(ctx)
		if err != nil {
			return nil, errors.Join(err, writes.Release(ctx))
		}
		return &goHeld{reads.Context(), reads.Release}, writes.Release(ctx)
	}
}

// addLock adds the commands of every lock.
func (s *goScope) addLock(kind string, o *order, acquire goAcquire) {
	var mu sync.Mutex
	var has *goHeld
	s.on(kind+"Acquire", o, func(how *order) (any, error) {
		h, err := acquire(s.ctx, how)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		has = h
		context.AfterFunc(h.ctx, func() {
			if cause := context.Cause(h.ctx); errors.Is(cause, locks.ErrLockLost) {
				s.event("lost", o, cause.Error())
			}
		})
		return true, nil
	})
	s.on(kind+"Release", o, func(*order) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		return nil, has.release(s.ctx)
	})
}

func (s *goScope) addMutex(kind string, o *order, mu *locks.InterProcessMutex) {
	s.addLock(kind, o, holdOf(mu))
	s.addParticipants(kind, o, mu.ParticipantNodes)
	s.on(kind+"MakeRevocable", o, func(*order) (any, error) {
		mu.MakeRevocable(func(*locks.Hold) { s.event("revoked", o, "") })
		return nil, nil
	})
}

func (s *goScope) addParticipants(kind string, o *order, nodes func(context.Context) ([]string, error)) {
	s.on(kind+"Participants", o, func(*order) (any, error) { return nodes(s.ctx) })
}

// goElection is the common part of latch and selector.
type goElection interface {
	Start() error
	HasLeadership() bool
	Leader(context.Context) (leader.Participant, error)
	Participants(context.Context) ([]leader.Participant, error)
	Close() error
}

func (s *goScope) startElection(kind string, o *order, e goElection) error {
	s.on(kind+"HasLeadership", o, func(*order) (any, error) { return e.HasLeadership(), nil })
	s.on(kind+"Leader", o, func(*order) (any, error) {
		who, err := e.Leader(s.ctx)
		return who.ID, err
	})
	s.on(kind+"Participants", o, func(*order) (any, error) {
		var reported []map[string]any
		all, err := e.Participants(s.ctx)
		for _, p := range all {
			reported = append(reported, map[string]any{"id": p.ID, "leader": p.IsLeader})
		}
		return reported, err
	})
	s.on(kind+"Close", o, func(*order) (any, error) { return nil, e.Close() })
	s.closeAtEnd(e.Close)
	return e.Start()
}

func startLatch(s *goScope, o *order) error {
	l := leader.NewLeaderLatch(s.client, o.Path, leader.WithID(o.Participant), leader.WithCloseMode(leader.NotifyLeader))
	l.AddListener(func(_ context.Context, ev leader.LatchEvent) {
		if ev.IsLeader {
			s.event("isLeader", o, "")
		} else {
			s.event("notLeader", o, "")
		}
	})
	return s.startElection("latch", o, l)
}

func startSelector(s *goScope, o *order) error {
	relinquished := make(chan struct{})
	s.on("selectorRelinquish", o, func(*order) (any, error) {
		select {
		case relinquished <- struct{}{}:
			return nil, nil
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		}
	})
	return s.startElection("selector", o, leader.NewLeaderSelector(s.client, o.Path, func(ctx context.Context) error {
		s.event("taken", o, "")
		defer s.event("released", o, "")
		select {
		case <-relinquished:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, leader.WithID(o.Participant), leader.WithAutoRequeue()))
}
