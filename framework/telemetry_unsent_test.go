package framework_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/retry"
)

// A recipe sends in one flight and begins again after a loss: what was never sent is no failed request.
func TestTelemetryPipelinedUnsentIsNoFailure(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(tb testing.TB, c *framework.Client) error{
		"foreground": func(tb testing.TB, c *framework.Client) error {
			tb.Helper()
			_, err := c.GetData().ForPath(builders.Pipelined(testenv.Context(tb)), "/")
			return err
		},
		"submitted": func(tb testing.TB, c *framework.Client) error {
			tb.Helper()
			_, err := c.GetData().Submit(builders.Pipelined(testenv.Context(tb)), "/").Wait(testenv.Context(tb))
			return err
		},
		"background": func(tb testing.TB, c *framework.Client) error {
			tb.Helper()
			return wait(tb, func(cb callbacks.BackgroundCallback) error {
				return c.GetData().InBackground(cb).ForPath(builders.Pipelined(testenv.Context(tb)), "/")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observe.New(t)
			client := startClient(t, "127.0.0.1:1", observed(o)...)
			wantErr(t, name, read(t, client), framework.ErrNotSent)
			awaitSpans(t, o, "getData", 1)
			span := o.Named("getData")[0]
			if got := observe.Attribute(span, "curator.outcome").AsString(); got != "not_sent" {
				t.Errorf("outcome %q", got)
			}
			errorType := observe.Attribute(span, "error.type").AsString()
			if span.Status().Code != codes.Unset || errorType != "" {
				t.Errorf("status %v, error.type %q", span.Status(), errorType)
			}
			wantValues(t, o, "db.client.operation.duration", "")
			wantValues(t, o, "curator.background.queue.duration", "")
			for _, p := range observe.Points(o.Metrics(t)["curator.background.queue.size"]) {
				if p.Value != 0 {
					t.Errorf("%d operations are in the queue", p.Value)
				}
			}
		})
	}
}

// The caller of an operation outside a flight gets its error, sent or not.
func TestTelemetryUnsentInTimeIsFailure(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	client := startClient(t, "127.0.0.1:1", observed(o, framework.WithConnectionTimeout(time.Millisecond),
		framework.WithRetryPolicy(retry.NTimes(0, 0)))...)
	_, err := client.GetData().ForPath(testenv.Context(t), "/")
	wantErr(t, "getData", err, framework.ErrNotSent)
	wantTree(t, o, "getData CLIENT error=CONNECTIONLOSS\n")
	wantValues(t, o, "db.client.operation.duration",
		"db.operation.name=getData,error.type=CONNECTIONLOSS,server.address=127.0.0.1,server.port=1 1\n")
}
