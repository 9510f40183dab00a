package telemetry_test

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

// run records an operation from its beginning to its end.
func run(ctx context.Context, t *telemetry.Telemetry, what telemetry.Operation, background bool, err error) {
	r := begin(ctx, t, what, background)
	r.End(time.Now(), telemetry.Facts{Err: err, Children: -1})
}

// begin begins the record of an operation.
func begin(
	ctx context.Context, t *telemetry.Telemetry, what telemetry.Operation, background bool,
) *telemetry.Record {
	return t.Begin(ctx, new(telemetry.Record), what, background, time.Now())
}
