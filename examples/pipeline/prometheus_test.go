package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// prometheusMeters is the code of docs/tracing.md. A program gives the provider to its clients and serves the handler.
func prometheusMeters() (*sdkmetric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	// OpenMetrics is the format that has exemplars.
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	return meters, handler, nil
}

func TestMetricsReachPrometheus(t *testing.T) {
	meters, handler, err := prometheusMeters()
	if err != nil {
		t.Fatal(err)
	}
	ctx := testenv.Context(t)
	defer func() {
		if err := meters.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}()
	tracers := sdktrace.NewTracerProvider()
	client, err := framework.New(testenv.ConnectString(t), framework.WithName("orders"),
		framework.WithMeterProvider(meters), framework.WithTracerProvider(tracers))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := client.Create().ForPath(ctx, "/n", nil); err != nil {
		t.Fatal(err)
	}

	// As Prometheus scrapes: a server that stores exemplars accepts OpenMetrics.
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", http.NoBody)
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	body, err := io.ReadAll(answer.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`curator_client_connected\{.*curator_client_name="orders".*\} 1`,
		`curator_connection_state_changes_total\{.*\} 1`,
		`db_client_operation_duration_seconds_bucket\{.*db_operation_name="create".*\} 1.* # \{.*trace_id="[0-9a-f]{32}"`,
	} {
		if !regexp.MustCompile(want).Match(body) {
			t.Errorf("no %s in:\n%s", want, body)
		}
	}
	if strings.Contains(string(body), "zookeeper_path") {
		t.Error("a metric has a path")
	}
}
