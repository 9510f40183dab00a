package chaos

import (
	"sync"
	"time"
)

// Pulse measures for how long this process did not run because the machine was busy. Nothing happens in time then, and
// that is no fault of the code under test.
type Pulse struct {
	stop func()

	mu   sync.Mutex
	gaps []gap
	last time.Time
}

type gap struct{ from, to time.Time }

const beat = 5 * time.Millisecond

// Grain is the longest stop of the process that a [Pulse] does not notice.
const Grain = 2 * beat

// NewPulse starts to measure, until Stop.
func NewPulse() *Pulse {
	p := &Pulse{last: time.Now()}
	ticker, done := time.NewTicker(beat), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ticker.C:
				p.beat(time.Now())
			case <-done:
				return
			}
		}
	})
	p.stop = sync.OnceFunc(func() {
		ticker.Stop()
		close(done)
		wg.Wait()
	})
	return p
}

// Stop ends measuring. A second Stop does nothing.
func (p *Pulse) Stop() { p.stop() }

func (p *Pulse) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.last) > Grain {
		p.gaps = append(p.gaps, gap{p.last, now})
	}
	p.last = now
}

// Missed returns for how long the process did not run between two moments.
func (p *Pulse) Missed(from, to time.Time) (missed time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := gap{p.last, time.Now()}
	for _, g := range append(p.gaps[:len(p.gaps):len(p.gaps)], now) {
		begin, end := g.from, g.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		if end.After(begin) {
			missed += end.Sub(begin)
		}
	}
	return missed
}
