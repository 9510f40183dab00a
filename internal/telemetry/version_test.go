package telemetry_test

import (
	"testing"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// In a workspace, as that of these tests, modules have no version.
func TestScopeHasAVersionInAWorkspace(t *testing.T) {
	o := observe.New(t)
	run(t.Context(), newTelemetry(o), telemetry.Operation{Name: "sync"}, false, nil)
	if got := o.Spans()[0].InstrumentationScope().Version; got == "" {
		t.Error("the scope has no version")
	}
}
