package simulation_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
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
	c.taken = make(chan struct{})
	r := c.resource
	if r.turnless[c.path] {
		j.violate("granted without a turn: %v", c)
	}
	if at, ok := r.lostLock[c.path]; ok {
		j.loseLock(c, at)
	} else if at := r.lostLockOf[c.process]; c.path == "" && time.Since(at) < sessionTimeout {
		j.loseLock(c, at) // the grant was on its way
	}
	if c.lostLock.IsZero() {
		j.judgeOthers(c)
		j.judgeToken(c)
		j.judgeNode(c)
	}
	r.claims = append(r.claims, c)
	j.awaitRequest(c)
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
		case !other.lostLock.IsZero() || other.owner == c.owner:
		case !c.shared || !other.shared:
			j.violate("two hold it: %v, and %v", other, c)
		default:
			sharing++
		}
	}
	most := cmp.Or(c.most, r.most)
	if c.shared && most > 0 && sharing > most {
		j.violate("%d share what %d may: %v, and %v", sharing, most, r.claims, c)
	}
}

// judgeToken compares the token with earlier ones. Readers may come in another order than their tokens, and a latch may
// lead again with its node.
func (j *judge) judgeToken(c *claim) {
	r := c.resource
	again := slices.ContainsFunc(r.claims, func(other *claim) bool { return other.owner == c.owner })
	if c.follows != nil && c.token != c.follows.token {
		if c.follows.isAlive() {
			j.violate("the token of %v is not that of %v", c, c.follows)
		}
		c.follows = nil // the writer has lost its lock, and has come again as a reader
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
	if c.path == "" || !c.lostLock.IsZero() || !c.isAlive() {
		return
	}
	leader, err := j.world.cluster.Leader()
	if err != nil { // no server has a quorum
		return
	}
	if !leader.Exists(c.path) && c.isAlive() {
		j.violate("alive without a node: %v", c)
		c.lostLock = time.Now() // one failure is enough
	}
}

// keep returns a claim that is alive, or nil. Its holder keeps it until release is called, unless it is lost.
func (j *judge) keep(random *rand.Rand) (c *claim, release func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var held [][]*claim // by resource, of which some have many
	for _, r := range j.resources {
		alive := slices.DeleteFunc(slices.Clone(r.claims), func(c *claim) bool { return !c.isAlive() || c.kept != nil })
		if len(alive) > 0 {
			held = append(held, alive)
		}
	}
	if len(held) == 0 {
		return nil, nil
	}
	c = pick(random, pick(random, held))
	kept := make(chan struct{})
	c.kept = kept
	return c, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		c.kept = nil
		close(kept)
	}
}

// kept returns the channel of a claim that has to be kept, or nil.
func (j *judge) kept(c *claim) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return c.kept
}

// claimOf returns the claim that ends with a context, or nil.
func (j *judge) claimOf(held context.Context) *claim {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.resources {
		for _, c := range r.claims {
			if c.context == held {
				return c
			}
		}
	}
	return nil
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
			j.judgeData(r)
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
	r.lostLock[node] = now
	if owner != nil {
		r.lostLockOf[owner] = now
	}
	for _, c := range r.claims {
		if c.isAlive() && c.lostLock.IsZero() && (c.path == node || c.path == "" && c.process == owner) {
			j.loseLock(c, now)
			if within > 0 {
				time.AfterFunc(within, func() { j.judgeNotified(c, within) })
			}
		}
	}
}

// deletedLine records that nodes of a line were deleted in one transaction. So none but the first had its turn, or will
// have it, however old the lists are that its client sees. Readers do not wait for readers.
func (j *judge) deletedLine(r *resource, paths []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, path := range paths {
		r.turnless[path] = slices.ContainsFunc(paths, func(other string) bool {
			return number(other) < number(path) && !(isReader(other) && isReader(path))
		})
	}
	for _, c := range r.claims {
		if c.isAlive() && r.turnless[c.path] {
			j.violate("held without a turn: %v", c)
		}
	}
}

// number returns the number at the end of the path of a sequential node.
func number(path string) string { return path[max(0, len(path)-10):] }

func isReader(path string) bool { return strings.Contains(path, "__READ__") }

// wasTakenSince reports whether others have taken a node away since a time.
func (j *judge) wasTakenSince(r *resource, node string, since time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	at, ok := r.lostLock[node]
	return ok && !at.Before(since)
}

// loseLock records that the claim has lost its lock, and closes taken.
func (j *judge) loseLock(c *claim, at time.Time) {
	c.lostLock = at
	close(c.taken)
	j.world.history.note("lost    %v", c)
}

// judgeNotified fails a claim that is still alive long after its node has gone.
func (j *judge) judgeNotified(c *claim, within time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.isAlive() {
		j.violate("not reported in %v: %v", within, c)
	}
}
