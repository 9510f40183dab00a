//go:build race

package framework_test

// underRace says that the race detector is on, with which a sync.Pool drops a part of what it gets.
const underRace = true
