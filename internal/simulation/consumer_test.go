package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/gocurator/curator/recipes/queue"
)

// The failures of a consumer. They count as faults.
const (
	consumerFails   = "consumer fails"
	consumerPanics  = "consumer panics"
	consumerEnds    = "consumer ends its goroutine"
	consumerIsSlow  = "consumer is slow"
	consumerIgnores = "consumer ignores its context"
	pullerForgets   = "puller forgets an item"
)

var consumerFaults = []string{
	consumerFails, consumerPanics, consumerEnds, consumerIsSlow, consumerIgnores, pullerForgets,
}

// consume opens a queue with a consumer and closes it, again and again. The last one is open until the queue is empty.
func (u *workQueue) consume(ctx context.Context, a *actor) {
	for ctx.Err() == nil {
		last := u.world.isCalm()
		o := u.open(a, true)
		if !last {
			a.pause(ctx, u.world.calm, 40*time.Second)
		}
		if last = last || u.keeps && u.world.isCalm(); last {
			u.awaitEmpty(ctx)
		}
		if o.leave(ctx, last) {
			return
		}
		a.pause(ctx, u.world.calm, 4*time.Second)
	}
}

// leave closes the queue and reports whether the turn was the last one: an item may have been put back since the queue
// was empty, while all others were leaving.
func (o *openQueue) leave(ctx context.Context, last bool) (over bool) {
	if err := o.close(); err != nil {
		o.world.history.note("%s: close: %v", o.actor.name, err)
	}
	return last && o.isOver(ctx)
}

// consumeItem is the consumer. It may panic, and end its goroutine.
func (o *openQueue) consumeItem(ctx context.Context, value string) error {
	d := o.ledger.begin(ctx, o, "", value, queue.InfoOf(ctx))
	result := itemFailed
	defer func() { o.ledger.end(d, result) }()
	err := o.work(ctx, d)
	if err == nil {
		result = itemDone
	}
	return err
}

// work is the work of a consumer on an item. It depends on the item, and on the number of its deliveries.
func (o *openQueue) work(ctx context.Context, d *delivery) error {
	w := o.world
	random := rand.New(rand.NewPCG(w.seed, sum(d.value)+uint64(d.attempt)))
	if w.isCalm() {
		wait(ctx, within(random, 20*time.Millisecond))
		return nil
	}
	n := random.IntN(100)
	switch {
	case n < 50:
		return nil
	case n < 78:
		wait(ctx, within(random, 50*time.Millisecond))
		return nil
	case n < 88:
		w.report.hit(consumerIsSlow)
		wait(ctx, within(random, 2*time.Second))
	case n < 90:
		w.report.hit(consumerIsSlow)
		wait(ctx, 2*sessionTimeout)
	case n < 92:
		w.report.hit(consumerIgnores)
		<-time.After(within(random, 3*time.Second))
		return nil
	case n < 96:
		w.report.hit(consumerFails)
		return fmt.Errorf("%s fails", d.value)
	case n < 98:
		w.report.hit(consumerPanics)
		panic("panic of " + d.value)
	default:
		w.report.hit(consumerEnds)
		runtime.Goexit()
	}
	if random.IntN(2) == 0 {
		return context.Cause(ctx)
	}
	return nil // the work is done in spite of the error
}

// pull opens a queue, pulls items and closes it, again and again. The last time it continues until the queue is empty.
func (u *workQueue) pull(ctx context.Context, a *actor) {
	for ctx.Err() == nil {
		last := u.world.isCalm()
		o := u.open(a, false)
		pulling, stop := context.WithCancel(ctx)
		length := a.within(40 * time.Second)
		go func() {
			defer stop()
			if last {
				u.awaitEmpty(ctx)
				return
			}
			waiting, cancel := context.WithTimeout(ctx, length)
			defer cancel()
			select {
			case <-waiting.Done():
			case <-u.world.calm:
			}
		}()
		together(a, u.pullers, func(i int, random *rand.Rand) {
			for pulling.Err() == nil {
				o.loop(pulling, fmt.Sprint(i), random)
			}
		})
		if o.leave(ctx, last) {
			return
		}
		<-pulling.Done()
		a.pause(ctx, u.world.calm, 4*time.Second)
	}
}

// loop pulls items until ctx ends, or until a random number of items.
func (o *openQueue) loop(ctx context.Context, name string, random *rand.Rand) {
	for item, err := range o.queue.Items(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				o.world.history.note("%s: items: %v", o.actor.name, err)
				wait(ctx, time.Second)
			}
			return
		}
		d := o.ledger.begin(item.Context(), o, name, item.Value, item.Info)
		o.pulled(item, d, random)
		if !o.world.isCalm() && random.IntN(12) == 0 {
			return
		}
	}
}

// pulled works on a pulled item, and ends it.
func (o *openQueue) pulled(item queue.Item[string], d *delivery, random *rand.Rand) {
	wait(item.Context(), within(random, pick(random, []time.Duration{1, 1, 50 * time.Millisecond, 2 * time.Second})))
	ctx, cancel := context.WithCancel(context.WithoutCancel(o.actor.process.ctx))
	defer cancel()
	n := random.IntN(20)
	if o.world.isCalm() {
		n = 0
	}
	switch {
	case n < 1: // wait for the outcome
		defer context.AfterFunc(o.actor.process.ctx, cancel)()
	case n < 4: // wait for a while
		timer := time.AfterFunc(within(random, 100*time.Millisecond), cancel)
		defer timer.Stop()
	case n == 4:
		cancel()
	default:
		timer := time.AfterFunc(time.Minute, cancel)
		defer timer.Stop()
	}
	var err error
	switch n {
	case 5:
		o.world.report.hit(pullerForgets)
		return
	case 6, 7:
		o.ledger.end(d, itemFailed)
		err = item.Requeue(ctx)
	default:
		o.ledger.end(d, itemDone)
		err = item.Done(ctx)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		o.ledger.recordEnd(d, err)
	}
}
