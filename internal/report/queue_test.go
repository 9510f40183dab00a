package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// The conventions name a span after its operation, and have the server on spans and metrics.
func TestMessagesFollowTheConventions(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o, func(c *telemetry.Config) { c.Server = "zk1:2181" })
	for name, destination := range map[string]string{"orders": "orders", "": "/queue"} {
		q := report.NewQueue(tel, "queue", name, "/queue")
		_, m := q.Send(t.Context(), 1)
		m.End("", nil)
		_, m = q.Process(t.Context(), nil)
		m.End("", nil)
		_, m = q.Settle(t.Context())
		m.End("", nil)
		q.Received(t.Context(), q.Clock(), 1, nil)
		q.HandedOver(t.Context(), q.Clock(), 1)
		for _, operation := range []string{"send", "process", "settle", "receive"} {
			span := operation
			if name != "" {
				span += " " + name
			}
			spans := o.Named(span)
			if len(spans) != 1 {
				t.Fatalf("%d spans %s", len(spans), span)
			}
			for key, want := range map[string]string{
				"messaging.operation.name": operation, "messaging.operation.type": operation,
				"messaging.destination.name": destination, "server.address": "zk1", "server.port": "2181",
			} {
				for _, a := range spans[0].Attributes() {
					if string(a.Key) == key && a.Value.String() != want {
						t.Errorf("%s of %s is %q", key, span, a.Value.String())
					}
				}
				if !observe.Has(spans[0], key) {
					t.Errorf("%s has no %s", span, key)
				}
			}
		}
	}
	for metric, of := range map[string]string{
		"messaging.client.sent.messages":     "send",
		"messaging.client.consumed.messages": "receive",
		"messaging.process.duration":         "process",
	} {
		rest := "messaging.operation.name=" + of + ",messaging.operation.type=" + of +
			",messaging.system=zookeeper,server.address=zk1,server.port=2181 1\n"
		if diff := cmp.Diff("messaging.destination.name=orders,"+rest+rest, o.Values(t, metric)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", metric, diff)
		}
	}
	if n := len(observe.Points(o.Metrics(t)["messaging.client.operation.duration"])); n != 6 {
		t.Errorf("%d series of send, receive and settle with a name and without", n)
	}
}

func TestDestinationOfAQueueWithoutANameIsAFormattedPath(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o, func(c *telemetry.Config) { c.FormatPath = func(string) string { return "" } })
	q := report.NewQueue(tel, "queue", "", "/secret")
	_, m := q.Send(t.Context(), 1)
	m.End("", nil)
	if observe.Has(o.Spans()[0], "messaging.destination.name") {
		t.Error("the span has a path that is not to be shown")
	}
}
