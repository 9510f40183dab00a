package curatortest

import "time"

// Timing derives the times of a test from one, so that a slow machine needs a change in one place. The zero value is
// [DefaultTiming]. In Java: Timing2.
type Timing struct{ base time.Duration }

// defaultBase is Java's default.
const defaultBase = 10 * time.Second

// DefaultTiming returns the timing whose base is 10 s.
func DefaultTiming() Timing { return Timing{} }

// NewTiming returns the timing with a base.
func NewTiming(base time.Duration) Timing { return Timing{base} }

// Multiple returns the timing whose base is a multiple of this one's. In Java: multiple.
func (t Timing) Multiple(factor float64) Timing { return Timing{scale(t.Base(), factor)} }

// Base returns the time that the others are multiples of. In Java: milliseconds, seconds.
func (t Timing) Base() time.Duration {
	if t.base == 0 {
		return defaultBase
	}
	return t.base
}

// Connection returns a connection timeout, the base. In Java: connection.
func (t Timing) Connection() time.Duration { return t.Base() }

// Session returns a session timeout, 1.5 times the base. In Java: session.
func (t Timing) Session() time.Duration { return scale(t.Base(), sessionFactor) }

// Waiting returns the limit of a wait for an event that must come, 5 times the base. In Java: forWaiting.
func (t Timing) Waiting() time.Duration { return scale(t.Base(), waitingFactor) }

// SessionSleep returns the time after which a session without a client has certainly ended, 1.75 times its timeout. In
// Java: forSessionSleep.
func (t Timing) SessionSleep() time.Duration { return scale(t.Session(), sleepFactor) }

const (
	sessionFactor = 1.5
	waitingFactor = 5
	sleepFactor   = 1.75
)

func scale(d time.Duration, factor float64) time.Duration { return time.Duration(float64(d) * factor) }
