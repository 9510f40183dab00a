package builders_test

import (
	"context"
	"testing"

	noopmetric "go.opentelemetry.io/otel/metric/noop"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// Telemetry without a receiver costs no allocation: with no provider, where the global ones may still come, an
// operation allocates what it does with those that are off for good.
func TestTelemetryThatIsOffAllocatesNothing(t *testing.T) {
	testenv.RequireReal(t) // it counts what this process allocates: a server has to be in another
	silent := []framework.Option{
		framework.WithTracerProvider(nooptrace.NewTracerProvider()),
		framework.WithMeterProvider(noopmetric.NewMeterProvider()),
	}
	ctx := testenv.Context(t)
	done := make(chan error, 1)
	callback := func(_ context.Context, ev callbacks.Event) { done <- ev.Err }
	for _, tt := range []struct {
		name string
		run  func(c *framework.Client) error
	}{
		{"foreground", func(c *framework.Client) error { _, err := c.CheckExists().ForPath(ctx, "/"); return err }},
		{"background", func(c *framework.Client) error {
			if err := c.CheckExists().InBackground(callback).ForPath(ctx, "/"); err != nil {
				return err
			}
			return <-done
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var counts []float64
			for _, opts := range [][]framework.Option{nil, silent} {
				client, _ := setUp(t, opts...)
				least := -1.0
				for range 5 { // a ping or the garbage collector may add to one
					n := testing.AllocsPerRun(100, func() {
						if err := tt.run(client); err != nil {
							t.Fatal(err)
						}
					})
					if least < 0 || n < least {
						least = n
					}
				}
				counts = append(counts, least)
			}
			if counts[0] != counts[1] || counts[0] > 8 {
				t.Errorf("%v allocations with no provider, %v with no-op providers", counts[0], counts[1])
			}
		})
	}
}
