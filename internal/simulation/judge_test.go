package simulation_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// judge compares the claims of the actors with the decisions of the servers.
type judge struct {
	world *world

	mu        sync.Mutex
	resources []*resource
	grants    int
}

// violate ends the world with a violation.
func (j *judge) violate(format string, args ...any) { j.world.violate(format, args...) }

// granted judges a claim when its actor gets it.
func (j *judge) granted(c *claim) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !c.isAlive() {
		j.world.history.note("too late: %v: %v", c, context.Cause(c.context))
		return
	}
	j.world.history.note("granted %v", c)
	j.grants++
	r := c.resource
	if at, ok := r.robbed[c.path]; ok {
		j.rob(c, at)
	} else if at := r.robbedOf[c.process]; c.path == "" && time.Since(at) < sessionTimeout {
		j.rob(c, at) // the grant was on its way
	}
	if c.robbed.IsZero() {
		j.judgeOthers(c)
		j.judgeToken(c)
		j.judgeNode(c)
	}
	r.claims = append(r.claims, c)
	context.AfterFunc(c.context, func() {
		j.world.history.note("ended   %v: %v", c, context.Cause(c.context))
	})
}

// judgeOthers looks for a claim that is alive and excludes the new one.
func (j *judge) judgeOthers(c *claim) {
	r := c.resource
	r.claims = slices.DeleteFunc(r.claims, func(other *claim) bool { return !other.isAlive() })
	sharing := 1
	for _, other := range r.claims {
		switch {
		case !other.robbed.IsZero() || other.owner == c.owner:
		case !c.shared || !other.shared:
			j.violate("two hold it: %v, and %v", other, c)
		default:
			sharing++
		}
	}
	if c.shared && r.most > 0 && sharing > r.most {
		j.violate("%d share what %d may: %v, and %v", sharing, r.most, r.claims, c)
	}
}

// judgeToken compares the token with earlier ones. Readers may come in another order than their tokens, and a latch may
// lead again with its node.
func (j *judge) judgeToken(c *claim) {
	r := c.resource
	again := slices.ContainsFunc(r.claims, func(other *claim) bool { return other.owner == c.owner })
	if c.follows != nil && c.token != c.follows.token {
		j.violate("the token of %v is not that of %v", c, c.follows)
	}
	if c.token == 0 || c.follows != nil || again {
		return
	}
	before := r.newest
	if c.shared {
		before = r.exclusive
	}
	if c.token < before || c.token == before && c.path != r.leader {
		j.violate("the token of %v is not above %#x", c, before)
	}
	r.newest = max(r.newest, c.token)
	if !c.shared {
		r.exclusive, r.leader = max(r.exclusive, c.token), c.path
	}
}

// judgeNode looks for the node of a claim that is alive.
func (j *judge) judgeNode(c *claim) {
	if c.path == "" || !c.robbed.IsZero() || !c.isAlive() {
		return
	}
	leader, err := j.world.cluster.Leader()
	if err != nil { // no server has a quorum
		return
	}
	if !leader.Exists(c.path) && c.isAlive() {
		j.violate("alive without a node: %v", c)
		c.robbed = time.Now() // one failure is enough
	}
}

// holder returns a process with a claim, or nil.
func (j *judge) holder(random *rand.Rand) *process {
	j.mu.Lock()
	defer j.mu.Unlock()
	var alive []*claim
	for _, r := range j.resources {
		for _, c := range r.claims {
			if c.isAlive() {
				alive = append(alive, c)
			}
		}
	}
	if len(alive) == 0 {
		return nil
	}
	return pick(random, alive).process
}

// watch judges all claims after each decision of the servers, until ctx ends.
func (j *judge) watch(ctx context.Context) {
	_ = j.world.cluster.Servers()[0].Eventually(ctx, func() bool {
		j.world.observe()
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, r := range j.resources {
			for _, c := range r.claims {
				j.judgeNode(c)
			}
		}
		return false
	})
}

// taken records that a node was taken from its holder, or that its session was ended. The holder must get the event by
// the time `by`; 0 is never.
func (j *judge) taken(r *resource, node string, owner *process, within time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	r.robbed[node] = now
	if owner != nil {
		r.robbedOf[owner] = now
	}
	for _, c := range r.claims {
		if c.isAlive() && c.robbed.IsZero() && (c.path == node || c.path == "" && c.process == owner) {
			j.rob(c, now)
			if within > 0 {
				time.AfterFunc(within, func() { j.judgeNotified(c, within) })
			}
		}
	}
}

// isRobbed reports whether others have taken a node away since a time.
func (j *judge) isRobbed(r *resource, node string, since time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	at, ok := r.robbed[node]
	return ok && !at.Before(since)
}

func (j *judge) rob(c *claim, at time.Time) {
	c.robbed = at
	j.world.history.note("robbed  %v", c)
}

// judgeNotified fails a claim that is still alive long after its node has gone.
func (j *judge) judgeNotified(c *claim, within time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.isAlive() {
		j.violate("not reported in %v: %v", within, c)
	}
}
