package wire

import (
	"sync"
	"sync/atomic"
	"time"
)

// clock measures the age of a session. It counts the time in which the whole machine is suspended, which the monotonic
// clock of the system leaves out: there the wall clock gets ahead of it. A wall clock that is set forward looks the
// same, so the age is then too high, never too low. One that is set back changes nothing.
type clock struct {
	epoch time.Time
	wall  func() time.Time // the wall clock; nil means the clock of the system

	ahead atomic.Int64 // how far the wall clock is ahead of the monotonic one, in ns
	slept atomic.Int64 // the sum of all advances of the wall clock, in ns: the time of suspensions

	mu sync.Mutex // held to change ahead and slept
}

// tolerance is the difference between the two clocks that needs no lock: the system slews them, and they are not read
// at the same time.
const tolerance = int64(time.Millisecond)

// now returns the time in ns since epoch.
func (k *clock) now() int64 {
	elapsed, ahead := k.read()
	if d := ahead - k.ahead.Load(); d > tolerance || d < -tolerance {
		elapsed = k.adjust()
	}
	return elapsed + k.slept.Load()
}

// adjust adds the time by which the wall clock has got ahead. It reads the clocks again: an old reading would count a
// suspension twice.
func (k *clock) adjust() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	elapsed, ahead := k.read()
	if d := ahead - k.ahead.Swap(ahead); d > 0 {
		k.slept.Add(d)
	}
	return elapsed
}

// read returns the monotonic time since epoch and how far the wall clock is ahead of it.
func (k *clock) read() (elapsed, ahead int64) {
	t := time.Now()
	elapsed = int64(t.Sub(k.epoch))
	if k.wall != nil {
		t = k.wall()
	}
	return elapsed, t.UnixNano() - k.epoch.UnixNano() - elapsed
}

// at converts a time that now returned to wall-clock time.
func (k *clock) at(ns int64) time.Time { return k.epoch.Add(time.Duration(ns)).Round(0) }
