package report_test

import (
	"testing"
	"time"

	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
)

func TestCacheWithoutProvidersAllocatesNothing(t *testing.T) {
	c := report.NewCache(telemetry.New(telemetry.Config{}), "curator_cache", "orders", "/config")
	ctx, mtime := t.Context(), time.Now().UnixMilli()
	allocations := testing.AllocsPerRun(100, func() {
		c.Created(ctx)
		c.Changed(ctx)
		c.Deleted(ctx)
		c.Entries(ctx, 5)
		c.Reloaded(ctx)
		c.Notified(ctx, mtime)
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}
