package wire

import (
	"net"
	"testing"
)

// endless is a connection on which everything succeeds.
type endless struct{ net.Conn }

func (endless) Read(p []byte) (int, error)  { return len(p), nil }
func (endless) Write(p []byte) (int, error) { return len(p), nil }

func TestAttemptDoesNotAllocateWithoutAnError(t *testing.T) {
	a, p := &attempt{Conn: endless{}}, make([]byte, 8)
	allocations := testing.AllocsPerRun(100, func() {
		_, _ = a.Read(p)
		_, _ = a.Write(p)
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}
