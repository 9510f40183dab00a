package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Pace is the least and the most time between two faults.
type Pace struct{ Least, Most time.Duration }

func (p Pace) pause(random *rand.Rand) time.Duration {
	return p.Least + time.Duration(random.Int64N(int64(p.Most-p.Least)+1))
}

// Fault injects a fault and returns its description, or "" if it found nothing to disturb.
type Fault func(d *Disturbance) string

// Disturbance is the environment of a [Fault].
type Disturbance struct {
	Context context.Context
	Random  *rand.Rand
	test    *Test
	undoing sync.WaitGroup
}

// After undoes a fault after a pause, or when the disturbance ends.
func (d *Disturbance) After(pause time.Duration, what string, undo func()) {
	d.undoing.Go(func() {
		d.Wait(pause)
		undo()
		d.test.Note("%s", what)
	})
}

// Wait waits for a pause, or until the end of the disturbance.
func (d *Disturbance) Wait(pause time.Duration) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-d.Context.Done():
	}
}

// Disturb injects one fault after the other, each kind as often as the others, until enough returns true for the number
// of faults so far, or ctx ends. It returns that number when all faults are undone.
func (s *Test) Disturb(ctx context.Context, pace Pace, enough func(n int) bool, faults ...Fault) (n int) {
	ctx, cancel := context.WithCancel(ctx)
	d := &Disturbance{Context: ctx, Random: s.Random(-1), test: s}
	defer d.undoing.Wait()
	defer cancel()
	var deck []int
	for !enough(n) {
		if d.Wait(pace.pause(d.Random)); ctx.Err() != nil {
			break
		}
		if len(deck) == 0 {
			deck = d.Random.Perm(len(faults))
		}
		what := faults[deck[0]](d)
		deck = deck[1:]
		if what != "" {
			n++
			s.Note("%s", what)
		}
	}
	return n
}
