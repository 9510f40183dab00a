package testenv

import "os"

// sizeVariable names the environment variable that chooses how much the tests with random faults do, and longSize is
// its value for all that they are meant to do, which takes minutes: make chaos sets it.
const (
	sizeVariable = "CURATOR_TEST_SIZE"
	longSize     = "long"
)

// Long reports whether the tests with random faults run at full length.
func Long() bool { return os.Getenv(sizeVariable) == longSize }

// Size is how much of something a test with random faults has: little where every change waits for it, on the server in
// memory and on Apache ZooKeeper, and long at full length.
func Size[T any](memory, real, long T) T {
	switch {
	case Long():
		return long
	case Real():
		return real
	}
	return memory
}
