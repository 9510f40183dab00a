package report_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newTelemetry returns the telemetry of a client that o observes; change changes its configuration.
func newTelemetry(o *observe.Observer, change ...func(*telemetry.Config)) *telemetry.Telemetry {
	cfg := telemetry.Config{TracerProvider: o.Tracers, MeterProvider: o.Meters, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg)
	}
	return telemetry.New(cfg)
}

// run records a foreground operation from its beginning to its end.
func run(ctx context.Context, t *telemetry.Telemetry, what telemetry.Operation) {
	t.Begin(ctx, new(telemetry.Record), what, false, time.Now()).End(time.Now(), telemetry.Facts{Children: -1})
}
