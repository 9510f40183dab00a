package testenv

import "os"

// sizeVariable names the environment variable with the size of the tests with random faults. longSize is its value for
// full length, which takes minutes: make chaos sets it.
const (
	sizeVariable = "CURATOR_TEST_SIZE"
	longSize     = "long"
)

// Long reports whether the tests with random faults run at full length.
func Long() bool { return os.Getenv(sizeVariable) == longSize }

// Size returns a size of a test with random faults: small in memory and on Apache ZooKeeper, because every change waits
// for the tests, and long at full length.
func Size[T any](memory, real, long T) T {
	switch {
	case Long():
		return long
	case Real():
		return real
	}
	return memory
}
