package interop_test

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/gocurator/curator/interop"
)

// lockKind is a lock that Go and Java have.
type lockKind struct {
	of    func(*peer) *contender
	alone bool // the lock is exclusive
	nodes int  // of a Java waiter; a Go waiter has one
}

// nodesOf returns how many nodes a side has that waits for the lock.
func (k lockKind) nodesOf(s side) int {
	if p, ok := s.(*peer); ok && p.language == javaPeer {
		return k.nodes
	}
	return 1
}

// contender is a lock in the hands of a client.
type contender struct {
	acquire      func(context.Context) (*held, error)
	participants func(context.Context) ([]string, error) // names in order; nil if the lock has none

	// revocable makes the lock revocable from the next acquire on. asked waits for a request to release it.
	revocable func() (requested func(context.Context) error, err error)
}

// held is a lock that a client has.
type held struct {
	release func(context.Context) error
	lost    func(context.Context) (cause string, err error) // waits; nil for Java, whose locks do not report it
}

// mostLeases is how many leases the semaphore has.
const mostLeases = 2

var multiPaths = []string{meetingPath + "/one", meetingPath + "/two"}

var (
	mutex     = lockKind{of: lock("mutex", "mutexNew"), alone: true, nodes: 1}
	readLock  = lockKind{of: lock("readLock", "readWriteLockNew"), nodes: 1}
	writeLock = lockKind{of: lock("writeLock", "readWriteLockNew"), alone: true, nodes: 1}
	// downgraded is the read lock of a former writer. Java's just reads: 5.4.0 would let in a writer that waits
	// (CURATOR-621).
	downgraded = lockKind{
		of: func(p *peer) *contender {
			if p.language == javaPeer {
				return readLock.of(p)
			}
			return lock("downgraded", "readWriteLockNew")(p)
		},
		nodes: 1,
	}
	semaphoreMutex = lockKind{of: lock("semaphoreMutex", "semaphoreMutexNew"), alone: true, nodes: 2}
	oneLease       = leases(1)
	// Two of Java that want all leases may have half of them each, and wait for ever: no more than one may want them.
	allLeases = leases(mostLeases)
	multiLock = lockKind{of: lock("multiLock", "multiLockNew"), alone: true, nodes: 1}
)

// leases is a semaphore of which so many leases are acquired at once.
func leases(n int) lockKind {
	return lockKind{
		of: func(p *peer) *contender {
			o := p.newObject("semaphore", "semaphoreNew", interop.Args{"path": meetingPath, "leases": mostLeases})
			return &contender{acquire: o.acquire(interop.Args{"leases": n}), participants: o.participants}
		},
		alone: n == mostLeases,
		nodes: 2,
	}
}

// lock is a lock, one for each contender: a Java lock belongs to a thread.
func lock(kind, op string) func(*peer) *contender {
	return func(p *peer) *contender {
		o := p.newObject(kind, op, interop.Args{"path": meetingPath, "paths": multiPaths})
		c := &contender{acquire: o.acquire(nil)}
		if kind == "mutex" || kind == "readLock" || kind == "writeLock" {
			c.participants = o.participants
			c.revocable = func() (func(context.Context) error, error) {
				return func(ctx context.Context) error {
					_, err := o.awaitEvent(ctx, "revoked")
					return err
				}, p.Call(p.ctx, kind+"MakeRevocable", o.args(nil), nil)
			}
		}
		return c
	}
}

func (j *peer) newObject(kind, op string, args interop.Args) *object {
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
		h := &held{release: func(ctx context.Context) error {
			return o.j.Call(ctx, o.kind+"Release", o.args(nil), nil)
		}}
		if o.j.language == golangPeer {
			h.lost = func(ctx context.Context) (string, error) {
				ev, err := o.awaitEvent(ctx, "lost")
				return ev.Item, err
			}
		}
		return h, nil
	}
}

// awaitEvent waits for an event of the object.
func (o *object) awaitEvent(ctx context.Context, kind string) (interop.Event, error) {
	return o.j.WaitEvent(ctx, func(ev interop.Event) bool { return ev.Kind == kind && ev.Name == o.name })
}

func (o *object) participants(ctx context.Context) ([]string, error) {
	return names(func(ctx context.Context) (all []string, err error) {
		err = o.j.Call(ctx, o.kind+"Participants", o.args(nil), &all)
		if o.kind == "semaphore" { // names, in the server's order if it is Java's
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
