package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// forest is all traces.
type forest struct {
	roots    []sdktrace.ReadOnlySpan // in the order of their beginnings
	byID     map[trace.SpanID]sdktrace.ReadOnlySpan
	children map[trace.SpanID][]sdktrace.ReadOnlySpan
	linked   map[trace.SpanID][]sdktrace.ReadOnlySpan // what is linked to a span
}

func newForest(spans []sdktrace.ReadOnlySpan) *forest {
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	f := &forest{
		byID:     make(map[trace.SpanID]sdktrace.ReadOnlySpan),
		children: make(map[trace.SpanID][]sdktrace.ReadOnlySpan),
		linked:   make(map[trace.SpanID][]sdktrace.ReadOnlySpan),
	}
	for _, s := range spans {
		f.byID[s.SpanContext().SpanID()] = s
		if parent := s.Parent(); parent.IsValid() {
			f.children[parent.SpanID()] = append(f.children[parent.SpanID()], s)
		} else {
			f.roots = append(f.roots, s)
		}
		for _, l := range s.Links() {
			f.linked[l.SpanContext.SpanID()] = append(f.linked[l.SpanContext.SpanID()], s)
		}
	}
	return f
}

// showTraces shows the first traces of jobs, those of the transactions that their puts went in, and that of the first
// leader.
func showTraces(out io.Writer, spans []sdktrace.ReadOnlySpan, jobs int) {
	f := newForest(spans)
	shown := f.first("submit job", jobs)
	shown = append(shown, f.linkedTo(shown)...)
	if leaders := f.first("leader elect", len(f.roots)); len(leaders) > 0 {
		shown = append(shown,
			slices.MinFunc(leaders, func(a, b sdktrace.ReadOnlySpan) int { return a.EndTime().Compare(b.EndTime()) }))
	}
	fmt.Fprintf(out, "\n%9s %9s  span [attributes] → linked to ← linked from\n", "begins", "takes")
	for _, root := range shown {
		fmt.Fprintf(out, "\ntrace %s\n", root.SpanContext().TraceID())
		t := tree{forest: f, out: out, root: root}
		t.show(root, "", "")
	}
	more := make(map[string]int)
	for _, root := range f.roots {
		more[root.Name()]++
	}
	for _, root := range shown {
		more[root.Name()]--
	}
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if more[name] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", more[name], name))
		}
	}
	if len(counts) > 0 {
		fmt.Fprintf(out, "\n%d more traces: %s\n", len(f.roots)-len(shown), strings.Join(counts, ", "))
	}
}

// first returns the first n roots of a name.
func (f *forest) first(name string, n int) (roots []sdktrace.ReadOnlySpan) {
	for _, root := range f.roots {
		if root.Name() == name && len(roots) < n {
			roots = append(roots, root)
		}
	}
	return roots
}

// linkedTo returns the roots that are linked to a span of the traces of others.
func (f *forest) linkedTo(others []sdktrace.ReadOnlySpan) (roots []sdktrace.ReadOnlySpan) {
	traces := make(map[trace.TraceID]bool)
	for _, other := range others {
		traces[other.SpanContext().TraceID()] = true
	}
	for _, root := range f.roots {
		if slices.ContainsFunc(root.Links(), func(l sdktrace.Link) bool { return traces[l.SpanContext.TraceID()] }) {
			roots = append(roots, root)
		}
	}
	return roots
}
