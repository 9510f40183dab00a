//go:build !linux

package guard

import "time"

// Now returns the time of the wall clock, which is the one that processes have in common.
func Now() Time { return Time(time.Now().UnixNano()) }

// Timer is a timer.
type Timer struct {
	C     <-chan struct{}
	timer *time.Timer
}

// NewTimer returns a timer that is not set.
func NewTimer() (*Timer, error) {
	c := make(chan struct{}, 1)
	timer := time.AfterFunc(time.Hour, func() {
		select {
		case c <- struct{}{}:
		default:
		}
	})
	return &Timer{C: c, timer: timer}, nil
}

// Set lets the timer fire at a time, at once if that has passed. It replaces the time of before.
func (t *Timer) Set(at Time) { t.timer.Reset(max(at.Sub(Now()), 0)) }

// Stop ends the timer.
func (t *Timer) Stop() { t.timer.Stop() }
