//go:build race

package builders_test

// underRace says that the race detector is on, with which a sync.Pool drops a part of what it gets.
const underRace = true
