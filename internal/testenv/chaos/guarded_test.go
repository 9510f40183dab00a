package chaos_test

import (
	"testing"

	"github.com/gocurator/curator/internal/testenv/chaos"
)

func TestGuardedRefusesLateWriter(t *testing.T) {
	var g chaos.Guarded
	first, ok := g.Read(1)
	if !ok || !g.Write(1, first+1) {
		t.Error("the first is refused")
	}
	second, ok := g.Read(2)
	if !ok || second != 1 {
		t.Errorf("the second reads %d, ok %t", second, ok)
	}
	if g.Write(1, first+1) {
		t.Error("a late write is accepted")
	}
	if _, ok := g.Read(1); ok {
		t.Error("a late read is accepted")
	}
	if !g.Write(2, second+1) {
		t.Error("the second is refused")
	}
	if value, accepted, refused := g.Counts(); value != 2 || accepted != 2 || refused != 2 {
		t.Errorf("value %d, %d accepted, %d refused", value, accepted, refused)
	}
}
