package framework

// WithWallClock sets the wall clock by which a suspension of the machine is noticed.
var WithWallClock = withWallClock
