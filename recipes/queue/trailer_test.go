package queue

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// traced returns a queue without a client that propagates everything, and a context to put in.
func traced(tb testing.TB) (*queue[string], context.Context) {
	tb.Helper()
	o := observe.New(tb)
	t := telemetry.New(telemetry.Config{TracerProvider: o.Tracers, Propagator: propagation.TraceContext{}})
	ctx, span := o.Start(tb.Context(), "request")
	span.End()
	return &queue[string]{codec: codec.Text{}, obs: report.NewQueue(t, "queue", "", "/queue")}, ctx
}

// read returns the items of a node, its trailer, and the span that the work on them begins in.
func (q *queue[T]) read(tb testing.TB, data []byte) (items []T, trailer []byte, work trace.SpanContext) {
	tb.Helper()
	got, err := q.decode(data)
	if err != nil {
		tb.Fatalf("%q: %v", data, err)
	}
	c := got.(*contents[T])
	items, trailer = c.items, c.trailer
	ctx := q.obs.In(tb.Context(), q.obs.Extract(node.TraceContextOf(trailer)))
	return items, trailer, trace.SpanContextFromContext(ctx)
}

func TestTrailerGivesTheSpanOfThePutBack(t *testing.T) {
	q, ctx := traced(t)
	for _, want := range [][]string{{"hello"}, {""}, {"one", "", "three"}} {
		data, err := q.encodeItems(ctx, want)
		if err != nil {
			t.Fatal(err)
		}
		items, _, work := q.read(t, data)
		if diff := cmp.Diff(want, items); diff != "" {
			t.Errorf("items (-want +got):\n%s", diff)
		}
		put := trace.SpanContextFromContext(ctx)
		if work.TraceID() != put.TraceID() || work.SpanID() != put.SpanID() || !work.IsRemote() {
			t.Errorf("work in %v, not %v", work, put)
		}
	}
}

// TestWorkKeepsTheBaggageOfAPutThatNobodyTraced has a trace of its own, with what has travelled.
func TestWorkKeepsTheBaggageOfAPutThatNobodyTraced(t *testing.T) {
	o := observe.New(t)
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	traced := telemetry.New(telemetry.Config{TracerProvider: o.Tracers, Propagator: both})
	obs := report.NewQueue(traced, "queue", "", "/queue")
	ctx, processing := obs.Process(t.Context(), obs.Extract([]byte(`{"baggage":"customer=7"}`)))
	processing.End("", nil)
	if got := baggage.FromContext(ctx).String(); got != "customer=7" {
		t.Errorf("the baggage is %q", got)
	}
	if span := o.Named("process")[0]; span.Parent().IsValid() || len(span.Links()) != 0 {
		t.Errorf("the work is caused by %v and %v", span.Parent(), span.Links())
	}
}

func TestTruncatedTrailerHarmsNoItem(t *testing.T) {
	q, ctx := traced(t)
	whole, err := q.encodeItems(ctx, []string{"hello"})
	if err != nil {
		t.Fatal(err)
	}
	bare, err := node.Encode(nil, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	for n := len(bare); n < len(whole); n++ {
		items, trailer, work := q.read(t, whole[:n])
		if len(items) != 1 || items[0] != "hello" || !bytes.Equal(trailer, whole[len(bare):n]) {
			t.Errorf("%d bytes: items %q, trailer %q", n, items, trailer)
		}
		if work.IsValid() {
			t.Errorf("%d bytes: work in %v", n, work)
		}
	}
}

// foreignTrailers are those that give no span, each of them somebody's mistake or worse.
func foreignTrailers() map[string]string {
	const mark = "\x00CTC\x01"
	const good = `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`
	return map[string]string{
		"one byte":            "\x00",
		"text":                "behind the end",
		"another item":        "\x01\x00\x00\x00\x05hello\x02",
		"mark alone":          mark,
		"another version":     "\x00CTC\x02" + good,
		"mark further back":   "x" + mark + good,
		"no JSON":             mark + "traceparent",
		"JSON and more":       mark + good + good,
		"null":                mark + "null",
		"a list":              mark + "[]",
		"a number":            mark + `{"traceparent":1}`,
		"nothing":             mark + "{}",
		"nested":              mark + strings.Repeat("[", 4000),
		"other headers":       mark + `{"x":"y"}`,
		"empty traceparent":   mark + `{"traceparent":""}`,
		"no hex":              mark + `{"traceparent":"00-0af7651916cd43dd8448eb211c80319z-b7ad6b7169203331-01"}`,
		"zeroes":              mark + `{"traceparent":"00-00000000000000000000000000000000-0000000000000000-01"}`,
		"forbidden version":   mark + strings.Replace(good, `"00-`, `"ff-`, 1),
		"long traceparent":    mark + strings.Replace(good, "-01", "-01-"+strings.Repeat("0", 1000), 1),
		"100 KB":              mark + strings.Replace(good, "{", `{"x":"`+strings.Repeat("x", 100<<10)+`",`, 1),
		"100 KB of nothing":   strings.Repeat("\x00", 100<<10),
		"100 KB of the mark":  strings.Repeat(mark, 20<<10),
		"broken string":       mark + good[:len(good)-2],
		"byte order mark":     mark + "\ufeff" + good,
		"not in UTF-8":        mark + "{\"traceparent\":\"\xff\xfe\"}",
		"traceparent in list": mark + `{"traceparent":["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]}`,
	}
}

func TestForeignTrailerHarmsNoItemAndIsKept(t *testing.T) {
	q, _ := traced(t)
	for name, foreign := range foreignTrailers() {
		data, err := node.Encode([]byte(foreign), []byte("one"), []byte("two"))
		if err != nil {
			t.Fatal(err)
		}
		items, trailer, work := q.read(t, data)
		if diff := cmp.Diff([]string{"one", "two"}, items); diff != "" {
			t.Errorf("%s: items (-want +got):\n%s", name, diff)
		}
		if string(trailer) != foreign {
			t.Errorf("%s: %d bytes are kept of %d", name, len(trailer), len(foreign))
		}
		if work.IsValid() {
			t.Errorf("%s: work in %v", name, work)
		}
	}
}

func TestTraceContextThatIsTooLongIsNotPut(t *testing.T) {
	q, ctx := traced(t)
	member := strings.Repeat("v", 200)
	var state trace.TraceState
	for _, vendor := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		var err error
		if state, err = state.Insert(vendor, member); err != nil {
			t.Fatal(err)
		}
	}
	long := trace.ContextWithSpanContext(ctx, trace.SpanContextFromContext(ctx).WithTraceState(state))
	data, err := q.encodeItems(long, []string{"hello"})
	if err != nil {
		t.Fatal(err)
	}
	if _, trailer, _ := q.read(t, data); len(trailer) != 0 {
		t.Errorf("a trailer of %d bytes", len(trailer))
	}
}

func TestHistoryIsInFrontOfTheTraceContext(t *testing.T) {
	trace := string(node.TrailerMark) + `{"traceparent":"x"}`
	const first, second = "\x00CDC\x02\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07",
		"\x00CDC\x02\x00\x00\x01\x02\x00\x00\x01\x03\x00\x00\x00\x00\x00\x00\x03\xe8"
	want := node.History{Failures: 258, Requeues: 259, Put: time.UnixMilli(1000)}
	for name, tt := range map[string]struct {
		trailer, want string
	}{
		"nothing":       {"", second},
		"a trace":       {trace, second + trace},
		"a history":     {first, second},
		"both":          {first + trace, second + trace},
		"somebody else": {"x" + trace, "x" + trace},
		"truncated":     {first[:len(first)-1], first[:len(first)-1]},
	} {
		got := node.WithHistory([]byte(tt.trailer), want)
		if string(got) != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
		if before, after := node.TraceContextOf([]byte(tt.trailer)), node.TraceContextOf(got); !bytes.Equal(before, after) {
			t.Errorf("%s: the trace context is %q, was %q", name, after, before)
		}
		if h, _ := node.HistoryOf(got); h != want && tt.trailer != tt.want {
			t.Errorf("%s: history %v", name, h)
		}
	}
}

// What others may have written does not make an item older or younger than it can be.
func TestFirstPutIsNotAfterTheLast(t *testing.T) {
	created := time.UnixMilli(1000)
	for want, h := range map[int64]node.History{
		1000: {Put: time.UnixMilli(7)}, // it was never put back
		7:    {Requeues: 1, Put: time.UnixMilli(7)},
		999:  {Requeues: 1, Put: time.UnixMilli(999)},
	} {
		if got := h.FirstPut(created).UnixMilli(); got != want {
			t.Errorf("%v: put first at %d", h, got)
		}
	}
	if got := (node.History{Requeues: 1, Put: time.UnixMilli(1001)}).FirstPut(created); got != created {
		t.Errorf("put first at %v, behind the last", got)
	}
}

// FuzzTrailer has any bytes behind the items of a node.
func FuzzTrailer(f *testing.F) {
	q, ctx := traced(f)
	own, err := q.encodeItems(ctx, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own[5:])
	for _, foreign := range foreignTrailers() {
		if len(foreign) < 10<<10 {
			f.Add([]byte(foreign))
		}
	}
	f.Fuzz(func(t *testing.T, behind []byte) {
		data, err := node.Encode(behind, []byte("one"), nil)
		if err != nil {
			t.Fatal(err)
		}
		items, trailer, _ := q.read(t, data)
		if len(items) != 2 || items[0] != "one" || items[1] != "" || !bytes.Equal(trailer, behind) {
			t.Errorf("items %q, trailer %q", items, trailer)
		}
		again, err := node.Encode(trailer, []byte("one"), nil)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("put back is %q, %v", again, err)
		}
	})
}
