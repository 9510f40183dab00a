package framework

import "time"

// WithWallClock sets the wall clock by which a suspension of the machine is noticed.
func WithWallClock(now func() time.Time) Option { return option(func(c *config) { c.wall = now }) }
