package instrument

import (
	"testing"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func TestPlaceholdersAreTheGlobalProvidersUntilTheyAreSet(t *testing.T) {
	if tracerPlaceholder == nil || tracerPlaceholder != otel.GetTracerProvider() {
		t.Error("the global tracer provider is taken for one of the program")
	}
	if meterPlaceholder == nil || meterPlaceholder != otel.GetMeterProvider() {
		t.Error("the global meter provider is taken for one of the program")
	}
}

// An init function of another package may run first and set the providers.
func TestProvidersOfAnInitFunctionAreNoPlaceholders(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	if tracersIfUnset(tracers) != nil || metersIfUnset(meters) != nil {
		t.Error("a provider of the program is taken for a placeholder")
	}
	if n := len(spans.Started()); n != 0 {
		t.Errorf("the program sees %d spans", n)
	}
}

// panicking is a provider that panics.
type panicking struct{ trace.TracerProvider }

func TestProviderThatPanicsIsNoPlaceholder(t *testing.T) {
	if tracersIfUnset(panicking{}) != nil {
		t.Error("it is taken for a placeholder")
	}
}
