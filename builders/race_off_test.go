//go:build !race

package builders_test

const underRace = false
