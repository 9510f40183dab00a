package simulation_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/retry"
)

// counter is a number of a world that only grows. So each change has a part of it for itself, from the number before it
// to the number after it.
type counter struct {
	world *world
	path  string

	mu      sync.Mutex
	number  int64 // as the leader had it last
	applied []part
	open    []part // of changes whose outcome is not known
}

// part is what a change has added.
type part struct {
	from, to int64
	actor    string
}

// counterRecipe is a counter with some goroutines in each process. Every other process has receipts.
func counterRecipe(w *world) recipe {
	c := &counter{world: w, path: "/counter"}
	w.counters = append(w.counters, c)
	return recipe{name: "counter", actors: []role{{"counts", c.count}}}
}

const countersPerProcess = 3 // goroutines

// count adds to the number, again and again.
func (c *counter) count(ctx context.Context, a *actor) {
	for ctx.Err() == nil {
		last := c.world.isCalm()
		if c.countOnce(ctx, a, last) && last {
			return
		}
		a.pause(ctx, c.world.calm, 3*time.Second)
	}
}

// countOnce adds some times with one value. It returns false if one of them has failed.
func (c *counter) countOnce(ctx context.Context, a *actor, last bool) bool {
	var opts []atomic.Option
	if a.random.IntN(2) == 0 {
		opts = append(opts, atomic.WithReceipts("/receipts"))
	}
	if a.random.IntN(4) == 0 {
		opts = append(opts, atomic.WithPromotedToLock(atomic.PromotedToLock{
			Path: "/counter-lock", Timeout: 5 * time.Second, Policy: retry.NTimes(5, 100*time.Millisecond),
		}))
	}
	policy := retry.Forever(50 * time.Millisecond)
	if a.random.IntN(3) == 0 {
		policy = retry.NTimes(2, 50*time.Millisecond)
	}
	n := atomic.NewDistributedAtomicLong(a.process.client, c.path, policy, opts...)
	defer n.Close()
	var mu sync.Mutex
	all := true
	together(a, countersPerProcess, func(_ int, random *rand.Rand) {
		for range 1 + random.IntN(6) {
			added := c.add(ctx, a, n, random, last)
			mu.Lock()
			all = all && added
			mu.Unlock()
			if !last {
				wait(ctx, within(random, 500*time.Millisecond))
			}
		}
	})
	return all
}

func (c *counter) add(
	ctx context.Context, a *actor, n *atomic.DistributedAtomicLong, random *rand.Rand, last bool,
) bool {
	if !last && random.IntN(6) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within(random, 2*time.Second))
		defer cancel()
	}
	r, err := n.Add(ctx, 1+random.Int64N(3))
	c.mu.Lock()
	defer c.mu.Unlock()
	what := part{r.Pre, r.Post, a.name}
	switch {
	case errors.Is(err, atomic.ErrUncertain):
		c.world.history.note("%s: from %d to %d: %v", a.name, r.Pre, r.Post, err)
		c.world.report.count("changes of a number whose outcome is not known")
		c.open = append(c.open, what)
		return true
	case err != nil:
		c.world.history.note("%s: %v", a.name, err)
		if last && ctx.Err() == nil && !errors.Is(err, framework.ErrConnectionLoss) {
			c.world.violate("%s: an addition fails though all is well: %v", a.name, err)
		}
		return false
	case !r.Succeeded:
		return false
	}
	c.world.report.count("changes of a number")
	c.applied = append(c.applied, what)
	return true
}

// observe judges the number of the leader: it never falls.
func (c *counter) observe(leader *curatortest.Server) {
	node, ok := leader.Node(c.path)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	number := int64(binary.BigEndian.Uint64(node.Data))
	if number < c.number {
		c.world.violate("%s falls from %d to %d", c.path, c.number, number)
	}
	c.number = number
}

// judge compares the number with the parts: those of the changes that were applied, and some of the open ones, are the
// whole number, and none has a place that is another's.
func (c *counter) judge() {
	leader, err := c.world.cluster.Leader()
	if err != nil {
		c.world.violate("no number in the end: %v", err)
		return
	}
	c.observe(leader)
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.applied, func(a, b part) int { return cmp.Compare(a.from, b.from) })
	at := int64(0)
	for _, p := range append(slices.Clone(c.applied), part{from: c.number, to: c.number, actor: "the end"}) {
		if !c.fills(at, p.from) {
			c.world.violate("%s is %d: before %+v it is %d, and no open change leads there: %+v", c.path, c.number, p, at,
				c.open)
			return
		}
		at = p.to
	}
}

// fills reports whether some of the open changes lead from one number to another.
func (c *counter) fills(from, to int64) bool {
	if from >= to {
		return from == to
	}
	for _, p := range c.open {
		if p.from == from && p.to <= to && c.fills(p.to, to) {
			return true
		}
	}
	return false
}
