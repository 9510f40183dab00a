package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Pace is how long it takes from one fault to the next.
type Pace struct{ Least, Most time.Duration }

func (p Pace) pause(random *rand.Rand) time.Duration {
	return p.Least + time.Duration(random.Int64N(int64(p.Most-p.Least)+1))
}

// Fault disturbs somebody, and says whom and how; nothing if there was nobody to disturb.
type Fault func(d *Disturbance) string

// Disturbance is what a [Fault] happens in.
type Disturbance struct {
	Context context.Context
	Random  *rand.Rand
	test    *Test
	undoing sync.WaitGroup
}

// After undoes what a fault has done, later or when the disturbance ends.
func (d *Disturbance) After(pause time.Duration, what string, undo func()) {
	d.undoing.Go(func() {
		d.Wait(pause)
		undo()
		d.test.Note("%s", what)
	})
}

// Wait waits, though not beyond the end of the disturbance.
func (d *Disturbance) Wait(pause time.Duration) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-d.Context.Done():
	}
}

// Disturb has one of the faults happen every now and then, each as often as the others, until enough, which is told how
// many there were, says so, or ctx ends. It returns when all are undone, with how many there were.
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
