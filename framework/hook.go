package framework

import (
	"time"

	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/telemetry"
)

func init() {
	telemetry.Option = func(change func(*telemetry.Config)) any {
		return option(func(c *config) { change(&c.telemetry) })
	}
	hook.WallClock = func(now func() time.Time) any { return withWallClock(now) }
	hook.Jitter = func(of func(most time.Duration) time.Duration) any { return withJitter(of) }
	telemetry.Of = telemetryOf
	hook.Refuse = func(err error) any { return withRefusal(err) }
}

// withWallClock sets the wall clock by which a suspension of the machine is noticed.
func withWallClock(now func() time.Time) Option { return option(func(c *config) { c.wall = now }) }

// withJitter sets the random part of the pauses between attempts to connect.
func withJitter(of func(most time.Duration) time.Duration) Option {
	return option(func(c *config) { c.jitter = of })
}

// withRefusal makes every operation of the client, and of all its views, fail with err.
func withRefusal(err error) Option { return option(func(c *config) { c.refusal = err }) }
