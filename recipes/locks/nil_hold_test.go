package locks_test

import (
	"errors"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// TestNilHoldWritesNothing has a program ask for the hold of a context that has none: a nil Hold is a released one.
func TestNilHoldWritesNothing(t *testing.T) {
	ctx := testenv.Context(t)
	for name, write := range map[string]func() error{
		"transaction": func() error { _, err := locks.HoldOf(ctx).Transaction(ctx); return err },
		"lease":       func() error { _, err := (*locks.Lease)(nil).Transaction(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v", p)
				}
			}()
			if err := write(); !errors.Is(err, locks.ErrReleased) {
				t.Errorf("error is %v", err)
			}
		})
	}
}
