package simulation_test

import (
	"context"
	"time"

	"github.com/gocurator/curator/recipes/locks"
)

// revocationLimit is the time in which a holder gets a request to release, whatever its network does meanwhile.
const revocationLimit = 10 * sessionTimeout

// revocation is the story of the requests to release one hold.
type revocation struct {
	requested bool // perhaps without effect
	due       bool // a request took effect
	received  int
}

// revocably returns the attempt to hold a mutex whose holders get requests to release. Some hold until they get one.
func revocably(a *actor, r *resource, lock *locks.InterProcessMutex) attempt {
	w := a.process.world
	received := make(chan string, 100)
	lock.MakeRevocable(func(hold *locks.Hold) {
		w.judge.receivedRequest(r, hold.Path())
		select {
		case received <- hold.Path():
		default: // nobody waits for them
		}
	})
	try := exclusively(w, r, lock)
	return func(ctx context.Context, wait time.Duration) (*holding, error) {
		h, err := try(ctx, wait)
		if err != nil {
			return nil, err
		}
		h.claims[0].revocable = true
		if !w.isCalm() && a.random.IntN(3) == 0 {
			h.wait = func() { a.awaitRequest(h, received) }
		}
		return h, nil
	}
}

// awaitRequest waits until the holder gets a request to release, or the hold is lost.
func (a *actor) awaitRequest(h *holding, received <-chan string) {
	for {
		select {
		case path := <-received:
			if path == h.claims[0].path {
				return
			}
		case <-h.context.Done():
			return
		case <-a.process.ctx.Done():
			return
		case <-a.process.world.calm:
			return
		}
	}
}

// revoke asks holders and waiters of a mutex to release, again and again.
func (a *actor) revoke(ctx context.Context, r *resource) {
	w := a.process.world
	lock := locks.NewInterProcessMutex(a.client, r.path)
	for !w.isCalm() && ctx.Err() == nil {
		a.pause(ctx, w.calm, 6*time.Second)
		nodes, err := lock.ParticipantNodes(ctx)
		if err != nil || len(nodes) == 0 {
			continue
		}
		node := nodes[0]
		if a.random.IntN(4) == 0 {
			node = pick(a.random, nodes)
		}
		w.judge.requesting(r, node)
		if err := locks.Revoke(ctx, a.client, node); err == nil {
			w.judge.requested(r, node)
		}
	}
}

func (r *resource) revocation(node string) *revocation {
	if r.revocations[node] == nil {
		r.revocations[node] = &revocation{}
	}
	return r.revocations[node]
}

// requesting records that the holder of a node is about to be asked to release.
func (j *judge) requesting(r *resource, node string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.revocation(node).requested = true
}

// requested records that a request took effect. The holder, now or later, must get it in time.
func (j *judge) requested(r *resource, node string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.world.report.count("requests to release")
	r.revocation(node).due = true
	for _, c := range r.claims {
		if c.path == node {
			j.awaitRequest(c)
		}
	}
}

// awaitRequest judges later whether a holder has got a request. mu is held.
func (j *judge) awaitRequest(c *claim) {
	rev := c.resource.revocation(c.path)
	if !c.revocable || !rev.due || rev.received > 0 {
		return
	}
	time.AfterFunc(revocationLimit, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if rev.received == 0 && c.isAlive() && c.lostLock.IsZero() {
			j.violate("not asked to release in %v: %v", revocationLimit, c)
		}
	})
}

// receivedRequest records that a holder is asked to release, which happens once at most, and never by itself.
func (j *judge) receivedRequest(r *resource, node string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.world.report.count("holders that are asked to release")
	rev := r.revocation(node)
	if rev.received++; rev.received > 1 {
		j.violate("asked to release again: %s", node)
	}
	if !rev.requested {
		j.violate("asked to release by nobody: %s", node)
	}
}
