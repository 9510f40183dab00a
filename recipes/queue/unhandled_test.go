package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/queue"
)

func TestConsumerErrorWithoutHandlerIsReportedInTraceOfItem(t *testing.T) {
	t.Parallel()
	type handler func(client *framework.Client, b queue.Builder[string], heard chan<- error) queue.Builder[string]
	for name, to := range map[string]handler{
		"the client": func(client *framework.Client, b queue.Builder[string], heard chan<- error) queue.Builder[string] {
			client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) { heard <- e.Err })
			return b.OnError(nil)
		},
		"which panics": func(
			client *framework.Client, b queue.Builder[string], heard chan<- error,
		) queue.Builder[string] {
			client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) { heard <- e.Err })
			return b.OnError(func(context.Context, error) { panic("not again") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			o, log := observe.New(t), &observe.Log{}
			client := newClient(t, testenv.ConnectString(t), framework.WithLogger(log.Logger()),
				framework.WithTracerProvider(o.Tracers), framework.WithMeterProvider(o.Meters))
			heard := make(chan error, 10)
			consumer := func(context.Context, string) error { return errors.New("on purpose") }
			q := start(t, built(to(client, builder(t, client, consumer), heard).BuildQueue()))
			must(t, q.Put(ctx, "a"))
			if err := <-heard; !strings.Contains(err.Error(), "on purpose") {
				t.Errorf("got %v", err)
			}
			process := o.Named("process")
			if len(process) != 1 {
				t.Fatalf("spans:\n%s", o.Tree())
			}
			in := process[0].SpanContext()
			ids := fmt.Sprintf("trace_id=%s span_id=%s", in.TraceID(), in.SpanID())
			if records := log.Records(""); len(records) != 1 || !strings.Contains(records[0], ids) {
				t.Errorf("logged %q, want %s", records, ids)
			}
			want := "curator.source=background,error.type=_OTHER 1\n"
			if diff := cmp.Diff(want, o.Values(t, "curator.unhandled_errors")); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPanicOfAPutListenerIsReportedAndEndsNothing(t *testing.T) {
	t.Parallel()
	client := newClient(t, testenv.ConnectString(t))
	heard := make(chan error, 10)
	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) { heard <- e.Err })
	q := start(t, built(builder(t, client, nil).BuildQueue()))
	q.AddPutListener(func(context.Context, queue.PutEvent[string]) { panic("on purpose") })
	for range 2 {
		must(t, q.Put(testenv.Context(t), "a"))
		if err := <-heard; !strings.Contains(err.Error(), "panic in a listener: on purpose") {
			t.Errorf("got %v", err)
		}
	}
}
