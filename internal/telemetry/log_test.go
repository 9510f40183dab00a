package telemetry_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// records keeps what is logged.
type records struct {
	mu  sync.Mutex
	all []slog.Record
}

func (l *records) logger() *slog.Logger { return slog.New(l) }

func (l *records) Enabled(context.Context, slog.Level) bool { return true }

func (l *records) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
	return nil
}

func (l *records) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *records) WithGroup(string) slog.Handler      { return l }

// messages returns the messages of a level.
func (l *records) messages(level string) (messages []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.all {
		if r.Level.String() == level {
			messages = append(messages, r.Message)
		}
	}
	return messages
}

// attributes returns those of the only record.
func (l *records) attributes(tb testing.TB) map[string]string {
	tb.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) != 1 {
		tb.Fatalf("%d records, want one", len(l.all))
	}
	attributes := make(map[string]string)
	l.all[0].Attrs(func(a slog.Attr) bool {
		attributes[a.Key] = a.Value.String()
		return true
	})
	return attributes
}

func TestRetriesAreLogged(t *testing.T) {
	what := telemetry.Operation{Name: "getData", Path: "/a/secret"}
	tests := []struct {
		name   string
		format func(string) string
		path   string
	}{
		{"as they are", nil, "/a/secret"},
		{"as they are to be shown", func(string) string { return "/a/*" }, "/a/*"},
		{"without a path", func(string) string { return "" }, ""},
		{"without a path that cannot be shown", func(string) string { panic("no") }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log, o := &records{}, observe.New(t)
			tel := newTelemetry(o, func(c *telemetry.Config) { c.Logger, c.FormatPath = log.logger(), tt.format })
			r := begin(t.Context(), tel, what, false)
			r.Retry(jute.ErrConnectionLoss, time.Second)
			r.End(time.Now(), telemetry.Facts{Children: -1})
			span := o.Spans()[0].SpanContext()
			want := map[string]string{
				"operation": "getData", "error": jute.ErrConnectionLoss.Error(), "pause": "1s",
				"trace_id": span.TraceID().String(), "span_id": span.SpanID().String(),
			}
			if tt.path != "" {
				want["path"] = tt.path
			}
			if diff := cmp.Diff(want, log.attributes(t)); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			if log.messages("DEBUG")[0] != "retry" {
				t.Errorf("logged %q", log.messages("DEBUG"))
			}
		})
	}
}

func TestRecordsWithoutASpanHaveNoIDs(t *testing.T) {
	log, o := &records{}, observe.New(t)
	tel := newTelemetry(o, func(c *telemetry.Config) { c.Logger = log.logger() })
	r := begin(telemetry.Untraced(t.Context()), tel, telemetry.Operation{Name: "sync", Path: "/"}, false)
	r.Retry(jute.ErrConnectionLoss, 0)
	r.End(time.Now(), telemetry.Facts{Children: -1})
	for key := range log.attributes(t) {
		if key == "trace_id" || key == "span_id" {
			t.Errorf("has %s", key)
		}
	}
}
