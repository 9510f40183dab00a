package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// The picture in the tree has the panels that the dashboard has now.
func TestPictureHasThePanelsOfTheDashboard(t *testing.T) {
	data, err := os.ReadFile("../grafana/curator.json")
	if err != nil {
		t.Fatal(err)
	}
	panels, err := shownPanels(data)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile("../grafana/dashboard.svg")
	if err != nil {
		t.Fatal(err)
	}
	titles := texts(t, string(picture))
	for _, p := range panels {
		if !slices.Contains(titles, p.Title) {
			t.Errorf("the picture has no panel %q: go run ./docs/pictures dashboard", p.Title)
		}
		for _, target := range p.Targets {
			if query := filled(target.Expr); strings.Contains(query, "$") {
				t.Errorf("%s: a variable is left in %s", p.Title, query)
			}
		}
	}
	if _, err := shownPanels([]byte(`{"panels": [{"type": "row", "title": "Operations"}]}`)); err == nil {
		t.Error("a row is taken for a panel")
	}
}

func TestMetricsHaveTheNamesOfPrometheus(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	attributes := metric.WithAttributes(attribute.String("error.type", `a "b"`))
	changes, err := meter.Int64Counter("curator.changes")
	if err != nil {
		t.Fatal(err)
	}
	changes.Add(t.Context(), 3, attributes)
	held, err := meter.Int64UpDownCounter("curator.held")
	if err != nil {
		t.Fatal(err)
	}
	held.Add(t.Context(), 2)
	_, err = meter.Float64ObservableGauge("curator.age", metric.WithUnit("s"), metric.WithFloat64Callback(
		func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(1.5)
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	wait, err := meter.Float64Histogram("curator.wait", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(0.1, 1))
	if err != nil {
		t.Fatal(err)
	}
	wait.Record(t.Context(), 0.5, attributes)
	wait.Record(t.Context(), 2, attributes)
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := writeMetrics(&out, data); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`curator_age_seconds{} 1.5`,
		`curator_changes_total{error_type="a \"b\""} 3`,
		`curator_held{} 2`,
		`curator_wait_seconds_bucket{error_type="a \"b\"",le="+Inf"} 2`,
		`curator_wait_seconds_bucket{error_type="a \"b\"",le="0.1"} 0`,
		`curator_wait_seconds_bucket{error_type="a \"b\"",le="1"} 1`,
		`curator_wait_seconds_count{error_type="a \"b\""} 2`,
		`curator_wait_seconds_sum{error_type="a \"b\""} 2.5`,
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChartHasLinesAndLegend(t *testing.T) {
	series := func(name string, values ...float64) line {
		l := line{name: name}
		for i, v := range values {
			l.points = append(l.points, point{at: 2 * float64(i), value: v})
		}
		return l
	}
	for _, test := range []struct {
		name    string
		chart   chart
		want    []string
		without []string
	}{
		{
			name:    "lines",
			chart:   chart{title: "A & B", unit: "s", lines: []line{series("create", 0.01, 0.02), series("never", 0, 0)}},
			want:    []string{"A & B", "create", "0 s", "20 ms", "0:00", "1:00", "1"},
			without: []string{"never", "No data"},
		},
		{
			name:  "stacked",
			chart: chart{title: "C", unit: "ops", stacked: true, lines: []line{series("a", 2, 2), series("b", 3, 4)}},
			want:  []string{"a", "b", "6/s"},
		},
		{
			name:  "zero",
			chart: chart{title: "D", unit: "short", lines: []line{series("ok", 0, 0)}},
			want:  []string{"ok", "0", "1"},
		},
		{name: "none", chart: chart{title: "E"}, want: []string{"No data"}},
		{
			name:  "many",
			chart: chart{title: "F", lines: slices.Repeat([]line{series(strings.Repeat("long ", 10), 1)}, 7)},
			want:  []string{"+5"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.chart.took, test.chart.events = 2*time.Minute, []event{{time.Minute, "1"}}
			var svg strings.Builder
			drawCharts(&svg, []chart{test.chart})
			got := texts(t, svg.String())
			for _, want := range test.want {
				if !slices.Contains(got, want) {
					t.Errorf("no text %q in %q", want, got)
				}
			}
			for _, text := range test.without {
				if slices.Contains(got, text) {
					t.Errorf("%q in %q", text, got)
				}
			}
		})
	}
}

func TestChartLeavesGapsOfLines(t *testing.T) {
	at := func(seconds ...float64) (points []point) {
		for _, s := range seconds {
			points = append(points, point{at: s})
		}
		return points
	}
	var got [][]float64
	for part := range parts(at(0, 2, 4, 10, 20, 22)) {
		var seconds []float64
		for _, p := range part {
			seconds = append(seconds, p.at)
		}
		got = append(got, seconds)
	}
	if diff := cmp.Diff([][]float64{{0, 2, 4}, {10}, {20, 22}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
