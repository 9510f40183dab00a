package simulation_test

import (
	"context"
	"time"

	"github.com/gocurator/curator/recipes/leader"
)

// claimOf returns the claim of a leadership.
func (a *actor) claimOf(r *resource, l *leader.Leadership) *claim {
	return &claim{
		resource: r, process: a.process, client: a.client, actor: a.name, owner: a.process.world.owners.Add(1),
		path: l.Path(), token: l.Token(), context: l.Context(), fence: l,
	}
}

// latchRecipe is a latch that leads for a while and is closed, or leads until it loses its leadership.
func latchRecipe(w *world) recipe {
	r := newResource("/latch")
	r.notifiedOfNode = true
	return recipe{name: "latch", resources: []*resource{r}, actors: []role{{"latch", func(ctx context.Context, a *actor) {
		for last := false; !last && ctx.Err() == nil; {
			last = w.isCalm()
			a.latch(ctx, r)
			a.pause(ctx, w.calm, 6*time.Second)
		}
	}}}}
}

// latch takes part once, until it has led for a while, or for a while without leadership.
func (a *actor) latch(ctx context.Context, r *resource) {
	w := a.process.world
	latch := leader.NewLeaderLatch(a.client, r.path)
	latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
		if ev.IsLeader {
			w.judge.granted(a.claimOf(r, ev.Leadership))
		}
	})
	if err := latch.Start(); err != nil {
		a.notStarted(err)
		return
	}
	defer func() { _ = latch.Close() }()
	last := w.isCalm()
	for terms := 1 + a.random.IntN(3); terms > 0; terms-- {
		waiting, cancel := ctx, context.CancelFunc(func() {})
		if !last && a.random.IntN(4) == 0 {
			waiting, cancel = context.WithTimeout(ctx, a.within(30*time.Second))
		}
		a.waiting.Store(true)
		leadership, err := latch.Await(waiting)
		a.waiting.Store(false)
		cancel()
		if err != nil {
			w.history.note("%s: await: %v", a.name, err)
			return
		}
		finished := a.work(ctx, leadership.Context())
		if ctx.Err() != nil || finished && (last || a.random.IntN(2) == 0) {
			return
		}
	}
}

// selectorRecipe is a selector that leads again and again.
func selectorRecipe(w *world) recipe {
	r := newResource("/selector")
	act := func(ctx context.Context, a *actor) {
		for ctx.Err() == nil {
			if last := w.isCalm(); a.selector(ctx, r) && last {
				return
			}
			a.pause(ctx, w.calm, 6*time.Second)
		}
	}
	return recipe{name: "selector", resources: []*resource{r}, actors: []role{{"selector", act}}}
}

// selector takes part for some turns, until the world is calm, and reports whether it had a turn.
func (a *actor) selector(ctx context.Context, r *resource) (led bool) {
	w := a.process.world
	last := w.isCalm()
	turns := make(chan struct{}, 100)
	selector := leader.NewLeaderSelector(a.client, r.path, func(ctx context.Context) error {
		w.judge.granted(a.claimOf(r, leader.LeadershipOf(ctx)))
		a.work(ctx, leader.LeadershipOf(ctx).Context())
		select {
		case turns <- struct{}{}:
		default:
		}
		return nil
	}, leader.WithAutoRequeue())
	if err := selector.Start(); err != nil {
		a.notStarted(err)
		return false
	}
	defer func() { _ = selector.Close() }()
	for n := range 3 {
		a.waiting.Store(true)
		select {
		case <-turns:
			a.waiting.Store(false)
			if last {
				return true
			}
		case <-ctx.Done():
			return n > 0
		}
		if w.isCalm() {
			return false
		}
		if n == 1 {
			selector.InterruptLeadership()
		}
	}
	return true
}
