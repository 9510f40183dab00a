package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// showMetrics shows each series in a line: of a counter its sum, of a histogram how many and their mean.
func showMetrics(out io.Writer, data metricdata.ResourceMetrics) {
	var rows []string
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			rows = append(rows, rowsOf(m)...)
		}
	}
	slices.Sort(rows)
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "metric\tcount\tmean\tattributes")
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // as every print here: what can a program do that cannot write?
}

func rowsOf(m metricdata.Metrics) (rows []string) {
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			rows = append(rows, fmt.Sprintf("%s\t%d\t\t%s", m.Name, p.Value, labels(p.Attributes)))
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			rows = append(rows,
				fmt.Sprintf("%s\t%d\t%.2fms\t%s", m.Name, p.Count, 1000*p.Sum/float64(p.Count), labels(p.Attributes)))
		}
	}
	return rows
}

// labels are the attributes that are not the same everywhere.
func labels(set attribute.Set) string {
	var parts []string
	for _, a := range set.ToSlice() {
		switch a.Key {
		case "db.system.name", "messaging.system", "server.address", "server.port":
		default:
			parts = append(parts, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
		}
	}
	return strings.Join(parts, " ")
}
