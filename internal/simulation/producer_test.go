package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gocurator/curator/recipes/queue"
)

// produce opens a queue, puts items and closes it, again and again.
func (u *workQueue) produce(ctx context.Context, a *actor) {
	for ctx.Err() == nil {
		last := u.world.isCalm()
		if err := u.produceOnce(ctx, a, last); err == nil && last {
			return
		} else if err != nil {
			u.world.history.note("%s: %v", a.name, err)
		}
		a.pause(ctx, u.world.calm, 15*time.Second)
	}
}

// produceOnce puts some items. It returns the error of the last flush.
func (u *workQueue) produceOnce(ctx context.Context, a *actor, last bool) error {
	o := u.open(a, false)
	bursts := 1 + a.random.IntN(3)
	if last {
		bursts = 1
	}
	var err error
	for ; bursts > 0 && ctx.Err() == nil; bursts-- {
		together(a, u.putters, func(i int, random *rand.Rand) {
			o.putSome(ctx, fmt.Sprintf("%s %d", a.name, i), random, last)
		})
		if err = o.flush(ctx, last); err != nil && last && ctx.Err() == nil && !errors.Is(err, queue.ErrUncertain) {
			u.world.violate("%s: a put fails though all is well: %v", a.name, err)
		}
		if !last {
			a.pause(ctx, u.world.calm, 3*time.Second)
		}
	}
	if closeErr := o.close(); err == nil {
		err = closeErr
	}
	return err
}

// putSome puts a burst of items, one after the other.
func (o *openQueue) putSome(ctx context.Context, putter string, random *rand.Rand, last bool) {
	for n := 1 + random.IntN(8); n > 0 && ctx.Err() == nil; n-- {
		items := 1
		if random.IntN(6) == 0 {
			items += 1 + random.IntN(2)
		}
		p := &put{
			queue: o, putter: putter, priority: random.IntN(5) - 2, began: time.Now(),
			due: time.Now().Add(within(random, 2*time.Second)), id: fmt.Sprint("id ", o.world.owners.Add(1)),
		}
		values := o.ledger.putBegan(p, items)
		waiting, cancel := ctx, context.CancelFunc(func() {})
		if !last && random.IntN(6) == 0 {
			waiting, cancel = context.WithTimeout(ctx, within(random, 2*time.Second))
		}
		if err := o.put(waiting, p, values...); err != nil {
			o.ledger.putEnded(values[0], "", err)
		}
		cancel()
		if !last && random.IntN(3) == 0 {
			wait(ctx, within(random, 300*time.Millisecond))
		}
		if o.remove != nil && random.IntN(10) == 0 {
			o.removeItem(ctx, p, random)
		}
	}
}

// removeItem removes a new item, a moment after its put.
func (o *openQueue) removeItem(ctx context.Context, p *put, random *rand.Rand) {
	wait(ctx, within(random, 500*time.Millisecond))
	o.ledger.removing(p)
	n, err := o.remove(ctx, p.id)
	o.ledger.removed(p, n, err)
}

// flush waits for the outcome of the puts.
func (o *openQueue) flush(ctx context.Context, last bool) error {
	if !last && o.actor.random.IntN(3) == 0 {
		return nil
	}
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if !last && o.actor.random.IntN(4) == 0 {
		waiting, cancel = context.WithTimeout(ctx, o.actor.within(5*time.Second))
	}
	defer cancel()
	err := o.queue.FlushPuts(waiting)
	o.ledger.flushed(o, err)
	return err
}
