package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/locks"
)

// Events of writes in order.
const (
	orderedWrites = "writes in order"
	fencedRounds  = "rounds of fenced writes in order"
)

// orderedWrite is one of the writes of a round, each to a node of its own. So the zxid of its node is that of its last
// effect.
type orderedWrite struct {
	data       string
	background bool
	err        error
	position   int   // of its callback among those of the round, from 1 on; 0 without one
	zxid       int64 // of its node, 0 if it has not taken effect
}

// orderViolation returns what is wrong with the writes of a round, in the order in which they began, or "".
func orderViolation(writes []*orderedWrite) string {
	var last, called *orderedWrite
	for _, x := range writes {
		switch {
		case x.background && x.position == 0:
			return fmt.Sprintf("%s has no callback", x.data)
		case x.background && x.err == nil && called != nil && x.position < called.position:
			return fmt.Sprintf("the callback of %s came before that of %s", x.data, called.data)
		case x.err != nil && x.zxid != 0 && !framework.MayHaveTakenEffect(x.err):
			return fmt.Sprintf("%s is written, and has failed: %v", x.data, x.err)
		case x.err == nil && x.zxid == 0:
			return fmt.Sprintf("%s has succeeded, and is not written", x.data)
		case x.err == nil && last != nil && x.zxid <= last.zxid:
			return fmt.Sprintf("%s took effect at %#x, before %s at %#x", x.data, x.zxid, last.data, last.zxid)
		}
		if x.err != nil { // it ends when the retry policy gives up, whatever waits for a retry then
			continue
		}
		last = x
		if x.background {
			called = x
		}
	}
	return ""
}

// orderRecipe is a row of writes of each process, whose effects and callbacks keep their order.
func orderRecipe(w *world) recipe {
	act := func(ctx context.Context, a *actor) {
		for turn := 1; ctx.Err() == nil; turn++ {
			last := w.isCalm()
			if w.writeInOrder(ctx, a, fmt.Sprintf("/order/%s-%d", a.process.name, turn), last) && last {
				return
			}
			a.pause(ctx, w.calm, 3*time.Second)
		}
	}
	return recipe{name: "order", mayHaveClient: true, actors: []role{{"writes in order", act}}}
}

// writeInOrder is a round. It returns false if there was none.
func (w *world) writeInOrder(ctx context.Context, a *actor, path string, last bool) bool {
	writes := make([]*orderedWrite, 2+a.random.IntN(12))
	for i := range writes {
		writes[i] = &orderedWrite{data: fmt.Sprintf("%s/%d", path, i), background: a.random.IntN(4) > 0}
		err := w.retryOutage(func(ctx context.Context) error {
			_, err := w.operator.Create().CreatingParentsIfNeeded().OrSetData().ForPath(ctx, writes[i].data, nil)
			return err
		})
		if err != nil {
			return false
		}
	}
	client := a.client
	if a.random.IntN(3) == 0 {
		hold, err := locks.NewInterProcessMutex(a.client, path+"/lock").Acquire(ctx)
		if err != nil {
			w.history.note("%s: %v", a.name, err)
			return false
		}
		defer a.letGo(ctx, &holding{release: hold.Release})
		client = hold.Client()
		w.report.count(fencedRounds)
	}
	before, inHangUp := w.hungUp.Load(), w.hangingUp.Load() > 0
	if !submitInOrder(ctx, client, a.random, writes, last) {
		return false
	}
	if inHangUp || w.hungUp.Load() != before { // a write at which many connections have ended loses its place
		return true
	}
	w.history.note("%s: %d writes below %s have ended", a.name, len(writes), path)
	for _, x := range writes {
		if last && x.err != nil && !errors.Is(x.err, framework.ErrConnectionLoss) {
			w.violate("%s: a write fails though all is well: %v", a.name, x.err)
		}
	}
	w.judgeOrder(a.name, writes)
	return true
}

// submitInOrder submits writes and waits for their ends. It returns false if ctx ends first.
func submitInOrder(
	ctx context.Context, client *framework.Client, random *rand.Rand, writes []*orderedWrite, last bool,
) bool {
	var mu sync.Mutex
	var ended sync.WaitGroup
	position := 0
	for _, x := range writes {
		set := client.SetData()
		if !x.background {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			if !last && random.IntN(4) == 0 {
				ctx, cancel = context.WithTimeout(ctx, within(random, 5*time.Second))
			}
			_, x.err = set.ForPath(ctx, x.data, []byte(x.data))
			cancel()
			continue
		}
		ended.Add(1)
		err := set.InBackground(func(_ context.Context, ev callbacks.Event) {
			mu.Lock()
			defer mu.Unlock()
			defer ended.Done()
			position++
			x.err, x.position = ev.Err, position
		}).ForPath(ctx, x.data, []byte(x.data))
		if err != nil { // it was not accepted
			x.err, x.background = err, false
			ended.Done()
		}
		if random.IntN(3) == 0 {
			wait(ctx, within(random, 300*time.Millisecond))
		}
	}
	all := make(chan struct{})
	go func() {
		defer close(all)
		ended.Wait()
	}()
	select {
	case <-all:
		return ctx.Err() == nil
	case <-ctx.Done(): // the client of a process that has crashed is closed later
		return false
	}
}

// judgeOrder compares writes that have ended with the servers.
func (w *world) judgeOrder(name string, writes []*orderedWrite) {
	for w.ctx.Err() == nil {
		leader, err := w.cluster.Leader()
		if err != nil { // no server has a quorum
			wait(w.ctx, 100*time.Millisecond)
			continue
		}
		for _, x := range writes {
			if node, ok := leader.Node(x.data); ok && string(node.Data) == x.data {
				x.zxid = node.Stat.Mzxid
			}
			if x.err == nil {
				w.report.count(orderedWrites)
			}
		}
		if what := orderViolation(writes); what != "" {
			w.violate("%s: %s", name, what)
		}
		return
	}
}
