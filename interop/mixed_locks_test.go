package interop_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/locks"
)

// lockKind is a lock that Go and Java have.
type lockKind struct {
	ours   func(*framework.Client) *contender
	theirs func(*java) *contender
	alone  bool // who has it is alone
	nodes  int  // of one who waits for it
}

// contender is a lock in the hands of a client.
type contender struct {
	acquire      func(context.Context) (*held, error)
	participants func(context.Context) ([]string, error) // names in order; nil if the lock does not tell

	// revocable has the lock hear, from the next acquire on, of those who ask for it. asked waits until one does.
	revocable func() (asked func(context.Context) error, err error)
}

// held is a lock that a client has.
type held struct {
	ctx     context.Context // ends with it; nil for Java, whose locks do not notice when their session ends
	release func(context.Context) error
}

// mostLeases is how many leases the semaphore has.
const mostLeases = 2

var multiPaths = []string{meetingPath + "/one", meetingPath + "/two"}

var (
	mutex = lockKind{
		ours: func(c *framework.Client) *contender {
			return ourLock(locks.NewInterProcessMutex(c, meetingPath))
		},
		theirs: javaLock("mutex", "mutexNew"), alone: true, nodes: 1,
	}
	readLock = lockKind{
		ours: func(c *framework.Client) *contender {
			return ourLock(locks.NewInterProcessReadWriteLock(c, meetingPath).ReadLock())
		},
		theirs: javaLock("readLock", "readWriteLockNew"), nodes: 1,
	}
	writeLock = lockKind{
		ours: func(c *framework.Client) *contender {
			return ourLock(locks.NewInterProcessReadWriteLock(c, meetingPath).WriteLock())
		},
		theirs: javaLock("writeLock", "readWriteLockNew"), alone: true, nodes: 1,
	}
	// downgraded is the read lock of one who wrote before. Java's just reads: 5.4.0 would let a writer in that waits
	// (CURATOR-621).
	downgraded = lockKind{
		ours: func(c *framework.Client) *contender {
			return &contender{acquire: downgrade(locks.NewInterProcessReadWriteLock(c, meetingPath))}
		},
		theirs: readLock.theirs, nodes: 1,
	}
	semaphoreMutex = lockKind{
		ours: func(c *framework.Client) *contender {
			return ourLock(locks.NewInterProcessSemaphoreMutex(c, meetingPath))
		},
		theirs: javaLock("semaphoreMutex", "semaphoreMutexNew"), alone: true, nodes: 2,
	}
	oneLease = leases(1)
	// Two of Java that want all leases may have half of them each, and wait for ever: no more than one may want them.
	allLeases = leases(mostLeases)
	multiLock = lockKind{
		ours: func(c *framework.Client) *contender {
			var each []locks.InterProcessLock
			for _, path := range multiPaths {
				each = append(each, locks.NewInterProcessMutex(c, path))
			}
			return ourLock(locks.NewInterProcessMultiLock(each...))
		},
		theirs: javaLock("multiLock", "multiLockNew"), alone: true, nodes: 1,
	}
)

func ourLock(l locks.InterProcessLock) *contender {
	c := &contender{acquire: func(ctx context.Context) (*held, error) {
		hold, err := l.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &held{hold.Context(), hold.Release}, nil
	}}
	if mu, ok := l.(*locks.InterProcessMutex); ok {
		c.participants = names(mu.ParticipantNodes)
		c.revocable = func() (func(context.Context) error, error) {
			asked := make(chan struct{}, 1)
			mu.MakeRevocable(func(*locks.Hold) { asked <- struct{}{} })
			return func(ctx context.Context) error { return await(ctx, asked) }, nil
		}
	}
	return c
}

func downgrade(rw *locks.InterProcessReadWriteLock) func(context.Context) (*held, error) {
	return func(ctx context.Context) (*held, error) {
		ctx = locks.WithOwner(ctx)
		writes, err := rw.WriteLock().Acquire(ctx)
		if err != nil {
			return nil, err
		}
		reads, err := rw.ReadLock().Acquire(ctx)
		if err != nil {
			return nil, errors.Join(err, writes.Release(ctx))
		}
		return &held{reads.Context(), reads.Release}, writes.Release(ctx)
	}
}

// leases is a semaphore of which so many leases are acquired at once.
func leases(n int) lockKind {
	return lockKind{
		ours: func(c *framework.Client) *contender {
			s := locks.NewInterProcessSemaphoreV2(c, meetingPath, mostLeases)
			return &contender{
				acquire: func(ctx context.Context) (*held, error) {
					leases, err := s.AcquireN(ctx, n)
					if err != nil {
						return nil, err
					}
					all := func(ctx context.Context) error { return s.ReturnAll(ctx, leases...) }
					return &held{leases[0].Context(), all}, nil
				},
				participants: names(s.ParticipantNodes),
			}
		},
		theirs: func(j *java) *contender {
			o := j.newObject("semaphore", "semaphoreNew", interop.Args{"path": meetingPath, "leases": mostLeases})
			return &contender{acquire: o.acquire(interop.Args{"leases": n}), participants: o.participants}
		},
		alone: n == mostLeases,
		nodes: 2,
	}
}

// javaLock is a lock of Java, one for each contender: a Java lock belongs to a thread.
func javaLock(kind, op string) func(*java) *contender {
	return func(j *java) *contender {
		o := j.newObject(kind, op, interop.Args{"path": meetingPath, "paths": multiPaths})
		c := &contender{acquire: o.acquire(nil)}
		if kind == "mutex" || op == "readWriteLockNew" {
			c.participants = o.participants
			c.revocable = func() (func(context.Context) error, error) {
				revoked := func(ev interop.Event) bool { return ev.Kind == "revoked" && ev.Name == o.name }
				return func(ctx context.Context) error {
					_, err := j.WaitEvent(ctx, revoked)
					return err
				}, j.Call(j.ctx, kind+"MakeRevocable", o.args(nil), nil)
			}
		}
		return c
	}
}

func (j *java) newObject(kind, op string, args interop.Args) *object {
	j.t.Helper()
	o := &object{j: j, kind: kind, name: newName()}
	j.must(op, o.args(args), nil)
	return o
}

func (o *object) acquire(args interop.Args) func(context.Context) (*held, error) {
	return func(ctx context.Context) (*held, error) {
		var answer any
		if err := o.j.Call(ctx, o.kind+"Acquire", o.args(args), &answer); err != nil {
			return nil, err
		}
		if answer == nil || answer == false {
			return nil, fmt.Errorf("%s was not acquired", o.kind)
		}
		return &held{release: func(ctx context.Context) error {
			return o.j.Call(ctx, o.kind+"Release", o.args(nil), nil)
		}}, nil
	}
}

func (o *object) participants(ctx context.Context) ([]string, error) {
	return names(func(ctx context.Context) (all []string, err error) {
		err = o.j.Call(ctx, o.kind+"Participants", o.args(nil), &all)
		if o.kind == "semaphore" { // Java gives names, in the server's order
			slices.SortFunc(all, func(a, b string) int { return cmp.Compare(a[len(a)-10:], b[len(b)-10:]) })
		}
		return all, err
	})(ctx)
}

// names turns paths into names.
func names(paths func(context.Context) ([]string, error)) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		all, err := paths(ctx)
		for i := range all {
			all[i] = path.Base(all[i])
		}
		return all, err
	}
}

// await takes from the channel, even if the context has ended, or fails when it ends.
func await(ctx context.Context, ch <-chan struct{}) error {
	select {
	case <-ch:
		return nil
	default:
	}
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
