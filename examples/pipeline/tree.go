package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// tree shows one trace: when each span began, how long it took, what it was, and what it is linked with.
type tree struct {
	*forest
	out  io.Writer
	root sdktrace.ReadOnlySpan
}

// How much is shown of what may be much.
const (
	mostChildren = 12 // of a span
	mostLinks    = 3
)

// show shows a span behind the branches that lead to it, and those below it behind rest.
func (t *tree) show(s sdktrace.ReadOnlySpan, branch, rest string) {
	fmt.Fprintf(t.out, "%9s %9s  %s%s%s%s\n", millis(s.StartTime().Sub(t.root.StartTime())),
		millis(s.EndTime().Sub(s.StartTime())),
		branch, s.Name(), details(s), t.links(s))
	below := t.children[s.SpanContext().SpanID()]
	for i, child := range below {
		switch {
		case i == mostChildren:
			fmt.Fprintf(t.out, "%19s  %s└─ … %d more\n", "", rest, len(below)-i)
			return
		case i == len(below)-1:
			t.show(child, rest+"└─ ", rest+"   ")
		default:
			t.show(child, rest+"├─ ", rest+"│  ")
		}
	}
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2fms", d.Seconds()*1000) }

// links shows what a span is linked to, →, unless that is its parent, and what of other traces is linked to it, ←.
func (t *tree) links(s sdktrace.ReadOnlySpan) string {
	var to, from []string
	for _, l := range s.Links() {
		if other := t.byID[l.SpanContext.SpanID()]; other != nil && l.SpanContext.SpanID() != s.Parent().SpanID() {
			to = append(to, t.named(other))
		}
	}
	for _, other := range t.linked[s.SpanContext().SpanID()] {
		if !t.has(other) {
			from = append(from, t.named(other))
		}
	}
	return listed("  → ", to) + listed("  ← ", from)
}

func listed(arrow string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	if n := len(names); n > mostLinks {
		names = append(names[:mostLinks:mostLinks], fmt.Sprintf("%d more", n-mostLinks))
	}
	return arrow + strings.Join(names, ", ")
}

func (t *tree) has(s sdktrace.ReadOnlySpan) bool {
	return s.SpanContext().TraceID() == t.root.SpanContext().TraceID()
}

// named is the name of a span, with the beginning of its trace if that is another.
func (t *tree) named(s sdktrace.ReadOnlySpan) string {
	if t.has(s) {
		return s.Name()
	}
	return fmt.Sprintf("%s (trace %.8s…)", s.Name(), s.SpanContext().TraceID())
}

// shownAttributes distinguish the spans of one name.
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
