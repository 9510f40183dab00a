package simulation_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/framework"
)

// recipe is a kind of lock, election, queue, barrier, counter, value, node or row of writes that processes take part
// in.
type recipe struct {
	name      string
	resources []*resource
	actors    []role
	// mayHaveClient is true if a process may have a client for this recipe alone.
	mayHaveClient bool
	// chroot is true if a process has a client with a missing chroot for this recipe.
	chroot bool
}

// String is the name of the recipe.
func (r recipe) String() string { return r.name }

// allRecipes returns the recipes of a world.
func allRecipes() []func(w *world) recipe {
	all := []func(w *world) recipe{
		mutexRecipe, readWriteRecipe, semaphoreRecipe, multiRecipe, latchRecipe, selectorRecipe,
		orderRecipe,
	}
	for i, newRecipe := range all {
		all[i] = func(w *world) recipe {
			r := newRecipe(w)
			r.mayHaveClient = true
			return r
		}
	}
	if !*queues {
		return all
	}
	return append(all,
		meetingRecipe,
		counterRecipe,
		sharedRecipe,
		chrootRecipe,
		nodesRecipe,
		func(w *world) recipe { return queueRecipe(w, "queue", plainQueue, false) },
		func(w *world) recipe { return queueRecipe(w, "locked-queue", plainQueue, true) },
		func(w *world) recipe {
			kind := pick(w.random("kind"), []queueKind{priorityQueue, delayQueue, idQueue})
			return queueRecipe(w, kind.String()+"-queue", kind, false)
		},
		func(w *world) recipe {
			kind := pick(w.random("kind with locks"), []queueKind{priorityQueue, delayQueue, idQueue})
			return queueRecipe(w, "locked-"+kind.String()+"-queue", kind, true)
		},
	)
}

// role is the work of one actor of each process. It ends with its context, or after a last turn when the world is calm.
type role struct {
	name string
	run  func(ctx context.Context, a *actor)
}

// actor is a goroutine of a process that uses one recipe.
type actor struct {
	process *process
	client  *framework.Client
	name    string
	role    string
	random  *rand.Rand
	waiting atomic.Bool // for a grant that must come
	closing atomic.Bool // a queue, whose Close must return
}

// notStarted handles the error of a recipe's Start, which a process that leaves may cause.
func (a *actor) notStarted(err error) {
	if !errors.Is(err, framework.ErrClosed) || !a.process.left.Load() {
		a.process.world.violate("%s: start: %v", a.name, err)
	}
}

// holding is the result of one acquire.
type holding struct {
	claims  []*claim
	context context.Context
	release func(ctx context.Context) error
	// wait waits for the release. It may be nil: then the actor works for a while.
	wait func()
	// next acquires more before the release; it may be nil.
	next func(ctx context.Context) (*holding, error)
}

// forever is the wait of an acquire that does not give up.
const forever time.Duration = -1

// attempt acquires. It gives up after wait, unless wait is forever.
type attempt func(ctx context.Context, wait time.Duration) (*holding, error)

// contend acquires, holds for a while and releases, again and again. When the world is calm it does so a last time, and
// does not give up.
func (a *actor) contend(ctx context.Context, try attempt) {
	w := a.process.world
	for ctx.Err() == nil {
		last := w.isCalm()
		h, err := a.acquire(ctx, try, last)
		if err != nil {
			w.history.note("%s: %v", a.name, err)
			if last && ctx.Err() == nil && !errors.Is(err, framework.ErrConnectionLoss) {
				w.violate("%s: an acquire fails though all is well: %v", a.name, err)
			}
			a.pause(ctx, w.calm, time.Second)
			continue
		}
		for h != nil {
			if h.wait != nil {
				h.wait()
			} else {
				a.work(a.process.ctx, h.context)
			}
			var next *holding
			if h.next != nil && h.context.Err() == nil {
				if next, err = h.next(ctx); err != nil {
					w.history.note("%s: %v", a.name, err)
				} else {
					a.granted(next)
				}
			}
			a.letGo(ctx, h)
			h = next
		}
		if last {
			return
		}
		a.pause(ctx, w.calm, 6*time.Second)
	}
}

// acquire tries once. The last time it does not give up.
func (a *actor) acquire(ctx context.Context, try attempt, last bool) (*holding, error) {
	wait := forever
	if !last {
		switch a.random.IntN(8) {
		case 0:
			wait = 0
		case 1, 2:
			wait = a.within(20 * time.Second)
		case 3:
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.within(20*time.Second))
			defer cancel()
		}
	}
	a.waiting.Store(true)
	defer a.waiting.Store(false)
	h, err := try(ctx, wait)
	if err != nil {
		return nil, err
	}
	a.granted(h)
	return h, nil
}

func (a *actor) granted(h *holding) {
	for _, c := range h.claims {
		c.process, c.client, c.actor = a.process, a.client, a.name
		a.process.world.judge.granted(c)
	}
}

// work holds for a while, and as long as the judge has it kept, and writes meanwhile: also when the node is taken away,
// before the client hears of it. When the hold is lost, it may still write. It reports whether it has finished before
// the loss and the end of ctx.
func (a *actor) work(ctx, held context.Context) (finished bool) {
	w := a.process.world
	timer := time.NewTimer(a.within(w.longestHold(a.random)))
	defer timer.Stop()
	c := w.judge.claimOf(held)
	if c == nil { // that of a latch comes with its event
		a.pause(ctx, nil, 10*time.Millisecond)
		c = w.judge.claimOf(held)
	}
	var kept, taken <-chan struct{}
	if c != nil {
		taken = c.taken
	}
	over := timer.C
	for writes := a.random.IntN(4); ; {
		var next <-chan time.Time
		if c != nil && writes > 0 {
			next = time.After(a.within(time.Second))
		}
		select {
		case <-next:
			a.write(c, false)
			writes--
			continue
		case <-taken:
			a.write(c, false)
			taken = nil
			continue
		case <-over:
			if c = cmp.Or(w.judge.claimOf(held), c); c == nil {
				return true
			}
			if over, kept = nil, w.judge.kept(c); kept == nil {
				return true
			}
			continue
		case <-kept:
			return true
		case <-ctx.Done():
			return false
		case <-held.Done():
		}
		a.pause(a.process.ctx, nil, 10*time.Millisecond) // all that ends with a session ends at one moment
		if c != nil && a.random.IntN(2) == 0 {
			a.write(c, true)
		}
		return false
	}
}

// letGo releases. Sometimes it does not wait for the release.
func (a *actor) letGo(ctx context.Context, h *holding) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if a.random.IntN(4) == 0 {
		cancel()
	}
	if err := h.release(ctx); err != nil {
		a.process.world.history.note("%s: release: %v", a.name, err)
	}
}

// pause waits for a random time, or until ctx or done ends. done may be nil.
func (a *actor) pause(ctx context.Context, done <-chan struct{}, most time.Duration) {
	if a.process.world.isCalm() {
		done = nil
		most = min(most, time.Second)
	}
	timer := time.NewTimer(a.within(most))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	case <-ctx.Done():
	}
}

// within returns a random time.
func (a *actor) within(most time.Duration) time.Duration {
	return time.Duration(a.random.Int64N(int64(most))) + 1
}
