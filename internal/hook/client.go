package hook

import "time"

// Package framework sets these. What they return is a framework.Option.
var (
	// WallClock sets the wall clock by which a client notices that its machine was suspended.
	WallClock func(now func() time.Time) any
	// Jitter sets the random part of the pauses between attempts to connect, so that a seed can decide it.
	Jitter func(of func(most time.Duration) time.Duration) any
	// Refuse makes a client that refuses every operation with an error.
	Refuse func(err error) any
)
