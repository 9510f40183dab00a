//go:build !race

package framework_test

const underRace = false
