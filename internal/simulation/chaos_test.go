package simulation_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// fault is something that goes wrong for a while.
type fault struct {
	name string
	// long is true for a fault that may outlive a session.
	long bool
	// counts is true for a fault that counts itself: it may hit nothing.
	counts bool
	// strike starts the fault and returns a description of its victim; "" if there is no victim. undo ends the fault; it
	// may be nil.
	strike func(w *world, random *rand.Rand) (what string, undo func())
}

// allFaults returns the faults of a simulation.
func allFaults() []fault {
	var all []fault
	for _, some := range [][]fault{
		serverFaults, networkFaults, holderFaults, answerFaults, sessionFaults, processFaults, operatorFaults, countFaults,
		providerFaults,
	} {
		all = append(all, some...)
	}
	if *queues {
		all = append(all, queueFaults...)
		all = append(all, nodeFaults...)
		all = append(all, libraryProviderFaults...)
	}
	return all
}

// chaos injects faults for a time, some at once, and returns when all have ended.
func (w *world) chaos(length time.Duration) {
	ctx, cancel := context.WithTimeout(w.ctx, length)
	defer cancel()
	faults, random := allFaults(), w.random("chaos")
	var undoing sync.WaitGroup
	defer undoing.Wait()
	for {
		// There are quiet times, in which leases and terms begin, and times in which everything breaks at once.
		pause := time.Duration(random.ExpFloat64() * float64(4*time.Second))
		if random.IntN(10) == 0 {
			pause += 4 * sessionTimeout
		}
		if !wait(ctx, pause) {
			return
		}
		f, own := faults[random.IntN(len(faults))], rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))
		undoing.Go(func() { w.strike(ctx, f, own) })
	}
}

// strike starts one fault, and ends it after a while.
func (w *world) strike(ctx context.Context, f fault, random *rand.Rand) {
	w.faults.Add(1)
	defer w.faults.Add(-1)
	what, undo := f.strike(w, random)
	if what == "" {
		return
	}
	defer func() { w.disturbed.Store(time.Now().UnixNano()) }()
	w.history.note("%s: %s", f.name, what)
	if !f.counts {
		w.report.hit(f.name)
	}
	if undo == nil {
		return
	}
	// Some are over at once, some outlive a session.
	length := time.Duration(random.ExpFloat64() * float64(time.Second))
	switch {
	case f.long:
		length = sessionTimeout + time.Duration(random.Int64N(int64(sessionTimeout)))
	case random.IntN(2) == 0:
		length = time.Duration(random.Int64N(int64(5 * sessionTimeout / 2)))
	}
	wait(ctx, length)
	undo()
	w.history.note("%s: no more: %s", f.name, what)
}

// wait waits. It returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pick returns one of several.
func pick[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }
