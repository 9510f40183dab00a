package cache_test

import (
	"testing"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/cache"
)

func TestClosedCacheHasItsErrorType(t *testing.T) {
	if got := telemetry.ErrorType(cache.ErrClosed); got != "CLOSED" {
		t.Errorf("error.type %q", got)
	}
}
