package framework_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/retry"
)

// allLogs is logs of every level.
type allLogs struct{ logs }

func (l *allLogs) Enabled(context.Context, slog.Level) bool { return true }
func (l *allLogs) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *allLogs) WithGroup(string) slog.Handler            { return l }

// named prints the records of a message, each as its level and its attributes.
func (l *logs) named(message string) (records []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if r.Message != message {
			continue
		}
		parts := []string{r.Level.String()}
		r.Attrs(func(a slog.Attr) bool {
			parts = append(parts, a.String())
			return true
		})
		slices.Sort(parts[1:])
		records = append(records, strings.Join(parts, " "))
	}
	return records
}

// ids prints those of a span as a record has them.
func ids(sc trace.SpanContext) string {
	return " span_id=" + sc.SpanID().String() + " trace_id=" + sc.TraceID().String()
}

func wantRecords(tb testing.TB, l *allLogs, message string, want ...string) {
	tb.Helper()
	if diff := cmp.Diff(want, l.named(message)); diff != "" {
		tb.Errorf("%q (-want +got):\n%s", message, diff)
	}
}

func TestLogHasRetriesAndUnhandledErrors(t *testing.T) {
	t.Parallel()
	for _, traced := range []bool{true, false} {
		proxy, connect := newProxy(t)
		o, log := observe.New(t), &allLogs{}
		opts := []framework.Option{
			framework.WithLogger(slog.New(log)), framework.WithRetryPolicy(retry.OneTime(7 * time.Millisecond)),
			framework.WithMeterProvider(o.Meters), framework.WithPathFormatter(func(string) string { return "/*" }),
		}
		if traced {
			opts = append(opts, framework.WithTracerProvider(o.Tracers))
		}
		client, recorded := connectRecorded(t, connect, opts...)
		unhandled := make(chan error, 1)
		client.AddUnhandledErrorListener(onUnhandled(unhandled))
		cut(t, proxy, curatortest.CutBefore, "getData", 2)
		done := newEvents()
		must(t, client.GetData().InBackground(done.callback).ForPath(testenv.Context(t), "/"))
		wantErr(t, "get data", receive(t, done).Err, framework.ErrConnectionLoss)
		err := receive(t, unhandled)
		in := ""
		if traced {
			in = ids(o.Named("getData")[0].SpanContext())
		}
		retries := log.named("retry")
		if len(retries) != 1 || !strings.HasPrefix(retries[0], "DEBUG error=") ||
			!strings.HasSuffix(retries[0], " operation=getData path=/* pause=7ms"+in) {
			t.Errorf("retries %q", retries)
		}
		// The callback got the error.
		wantRecords(t, log, "background operation given up", "DEBUG "+slog.Any("error", err).String()+in)
		recorded.want(t, suspended, reconnected)
		for _, state := range log.named("connection state") {
			if strings.Contains(state, "_id=") || !strings.HasPrefix(state, "INFO ") {
				t.Errorf("state %s", state)
			}
		}
	}
}

// The log has the request's own span also with a client that makes none.
func TestLogHasSpanOfCaller(t *testing.T) {
	t.Parallel()
	o, log := observe.New(t), &allLogs{}
	client := connectClient(t, testenv.ConnectString(t), framework.WithLogger(slog.New(log)))
	unhandled := make(chan error, 1)
	client.AddUnhandledErrorListener(onUnhandled(unhandled))
	ctx, request := o.Start(testenv.Context(t), "request")
	defer request.End()
	must(t, client.Sync().InBackground(func(context.Context, callbacks.Event) { panic("too much") }).ForPath(ctx, "/"))
	receive(t, unhandled)
	records := log.named("panic in background callback")
	if len(records) != 1 || !strings.HasSuffix(records[0], ids(request.SpanContext())) {
		t.Errorf("records %q", records)
	}
}
