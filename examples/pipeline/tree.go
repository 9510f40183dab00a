package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// showTraces shows the first traces of jobs, and one of a leader.
func showTraces(out io.Writer, spans []sdktrace.ReadOnlySpan, jobs int) {
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	left := map[string]int{"submit job": jobs, "leader elect reporter": 1, "leader elect": 1}
	for _, s := range spans {
		if s.Parent().IsValid() || left[s.Name()] == 0 {
			continue
		}
		left[s.Name()]--
		fmt.Fprintf(out, "\ntrace %s\n", s.SpanContext().TraceID())
		t := tree{out: out, start: s.StartTime(), children: childrenOf(spans)}
		t.show(s, "", "")
	}
}

func childrenOf(spans []sdktrace.ReadOnlySpan) map[trace.SpanID][]sdktrace.ReadOnlySpan {
	children := make(map[trace.SpanID][]sdktrace.ReadOnlySpan)
	for _, s := range spans {
		if s.Parent().IsValid() {
			children[s.Parent().SpanID()] = append(children[s.Parent().SpanID()], s)
		}
	}
	return children
}

// tree shows one trace: when each span began, how long it took, and what it was.
type tree struct {
	out      io.Writer
	start    time.Time
	children map[trace.SpanID][]sdktrace.ReadOnlySpan
}

// show shows a span behind the branches that lead to it, and those below it behind rest.
func (t *tree) show(s sdktrace.ReadOnlySpan, branch, rest string) {
	fmt.Fprintf(t.out, "%9s %9s  %s%s%s\n", millis(s.StartTime().Sub(t.start)), millis(s.EndTime().Sub(s.StartTime())),
		branch, s.Name(), details(s))
	below := t.children[s.SpanContext().SpanID()]
	for i, child := range below {
		if i == len(below)-1 {
			t.show(child, rest+"└─ ", rest+"   ")
			continue
		}
		t.show(child, rest+"├─ ", rest+"│  ")
	}
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2fms", d.Seconds()*1000) }

// shownAttributes are what tells the spans of one name apart.
var shownAttributes = []attribute.Key{
	"zookeeper.path", "curator.recipe", "curator.resource.name", "curator.outcome", "curator.retry.count", "error.type",
}

func details(s sdktrace.ReadOnlySpan) string {
	var parts []string
	if s.SpanKind() != trace.SpanKindInternal {
		parts = append(parts, s.SpanKind().String())
	}
	for _, key := range shownAttributes {
		for _, a := range s.Attributes() {
			if a.Key == key {
				parts = append(parts, a.Value.String())
			}
		}
	}
	if s.Status().Code == codes.Error {
		parts = append(parts, "failed")
	}
	if len(parts) == 0 {
		return ""
	}
	return "  [" + strings.Join(parts, " ") + "]"
}
