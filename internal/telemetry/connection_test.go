package telemetry_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

func TestOutagesFollowTheStates(t *testing.T) {
	const (
		connected, suspended, reconnected = telemetry.StateConnected, telemetry.StateSuspended, telemetry.StateReconnected
		lost, readOnly                    = telemetry.StateLost, telemetry.StateReadOnly
	)
	const connect = "curator.connect\n"
	outage := func(outcome string) string { return "curator.connection.outage curator.outcome=" + outcome + "\n" }
	tests := []struct {
		name   string
		states []string
		want   string
	}{
		{"not connected yet", nil, ""},
		{"connected", []string{connected}, connect},
		{"to a read-only server", []string{readOnly, connected}, connect},
		{"connected late", []string{suspended, lost, connected}, connect},
		{"back in time", []string{connected, suspended, reconnected}, connect + outage("reconnected")},
		{"back at a read-only server", []string{connected, suspended, readOnly, reconnected}, connect +
			outage("reconnected")},
		{"twice", []string{connected, suspended, reconnected, suspended, reconnected}, connect + outage("reconnected") +
			outage("reconnected")},
		{"too late", []string{connected, suspended, lost, reconnected}, connect + outage("lost")},
		{"given up without an outage", []string{connected, lost, reconnected}, connect},
		{"lasting", []string{connected, suspended}, connect},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := observe.New(t)
			tel := newTelemetry(o, func(c *telemetry.Config) { c.Server = "zk1:2181" })
			tel.Started()
			for _, state := range tt.states {
				tel.StateNoted(state)
				tel.StateChanged(state, time.Now())
			}
			if diff := cmp.Diff(tt.want, o.Tree("curator.outcome")); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
		})
	}
}

// A client that flaps must not fill the spans that last.
func TestSpanShowsTheLastSixteenChanges(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	tel.StateNoted(telemetry.StateConnected)
	tel.StateChanged(telemetry.StateConnected, time.Now())
	r := begin(t.Context(), tel, telemetry.Operation{Name: "sync"}, false)
	for range 50 {
		tel.StateNoted(telemetry.StateSuspended)
		tel.StateChanged(telemetry.StateSuspended, time.Now())
		tel.StateNoted(telemetry.StateReconnected)
		tel.StateChanged(telemetry.StateReconnected, time.Now())
	}
	answered := time.Now()
	tel.StateNoted(telemetry.StateSuspended)
	tel.StateChanged(telemetry.StateSuspended, time.Now()) // behind its end
	r.End(answered, telemetry.Facts{Children: -1})
	events := observe.Events(o.Named("sync")[0], "curator.connection.state")
	if len(events) != 15 { // of the 16 last, of which one came behind its end
		t.Fatalf("%d events", len(events))
	}
	for i, want := range []string{telemetry.StateReconnected, telemetry.StateSuspended} {
		if got := events[i]; got != "curator.connection.state="+want {
			t.Errorf("event %d is %s, want %s", i, got, want)
		}
	}
}
