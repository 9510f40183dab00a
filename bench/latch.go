package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gocurator/curator/recipes/leader"
)

// latchWork measures leader election.
var latchWork = section{
	workloads: map[string]workload{latches: runLatches},
	rows: []row{{
		// There is no rate: it would include the next place in line of the closed latch.
		name: "latch, the next of 3 leads after a close", server: realServer, show: waits,
		entries: against(work(latches).threads(3), curator, javas),
		budget:  []bound{atMost(1, p50).of(javas)},
	}},
}

// runLatches starts latches with a client each. It closes the leader again and again, and starts a new latch in its
// place. The latency is from the call of Close to the call of the next leader's listener.
func runLatches(ctx context.Context, t *target, l load) (r result, err error) {
	c, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	e := &election{target: t, latches: make([]*leader.LeaderLatch, l.Threads), begun: make(chan beginning, l.Threads)}
	if e.path, err = t.node(ctx, "latch", nil); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, e.close(), c.removeTree(ctx, e.path)) }()
	for i := range e.latches {
		if err := e.join(ctx, i, i+1); err != nil {
			return r, err
		}
	}
	if err := e.next(ctx); err != nil {
		return r, err
	}
	return loop(l.duration(), []operation{func() (time.Duration, error) { return e.failOver(ctx) }}), nil
}

// election is the latches of a path, by the numbers of their clients.
type election struct {
	target  *target
	path    string
	latches []*leader.LeaderLatch
	begun   chan beginning
	leads   beginning
}

// beginning is the time at which a latch began to lead.
type beginning struct {
	latch int
	at    time.Time
}

// failOver closes the leader and starts a new latch in its place.
func (e *election) failOver(ctx context.Context) (time.Duration, error) {
	last := e.leads.latch
	start := time.Now()
	if err := e.latches[last].Close(); err != nil {
		return -1, err
	}
	if err := e.next(ctx); err != nil {
		return -1, err
	}
	latency := e.leads.at.Sub(start)
	return latency, e.join(ctx, last, len(e.latches))
}

// join starts the latch of a number and waits until there are that many contenders.
func (e *election) join(ctx context.Context, number, contenders int) error {
	c, err := e.target.client(ctx, number)
	if err != nil {
		return err
	}
	own, ok := c.(curatorClient)
	if !ok {
		return fmt.Errorf("%T has no latch", c)
	}
	latch := leader.NewLeaderLatch(own.Client, e.path)
	latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
		if ev.IsLeader {
			e.begun <- beginning{number, time.Now()}
		}
	})
	if err := latch.Start(); err != nil {
		return err
	}
	e.latches[number] = latch
	for {
		children, err := c.children(ctx, e.path)
		if err != nil || len(children) == contenders {
			return err
		}
	}
}

// next waits for the next beginning.
func (e *election) next(ctx context.Context) error {
	select {
	case e.leads = <-e.begun:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("nobody leads: %w", ctx.Err())
	}
}

func (e *election) close() error {
	var errs []error
	for _, latch := range e.latches {
		if latch != nil {
			errs = append(errs, latch.Close())
		}
	}
	return errors.Join(errs...)
}
