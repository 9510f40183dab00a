package telemetry_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
)

// counting is a driver that one goroutine calls.
type counting struct {
	operations []telemetry.DriverOperation
	events     []telemetry.Event
	sessions   []int64
}

func (c *counting) Operation(o telemetry.DriverOperation) {
	c.operations = append(c.operations, o)
}

func (c *counting) Event(e telemetry.Event, session int64) {
	c.events, c.sessions = append(c.events, e), append(c.sessions, session)
}

func TestDriverGetsEventsOfTheSession(t *testing.T) {
	driver := &counting{}
	tel := telemetry.New(telemetry.Config{Driver: driver})
	for _, state := range []zk.State{
		zk.StateHasSession, zk.StateDisconnected, zk.StateConnectedReadOnly, zk.StateExpired, zk.StateAuthFailed,
		zk.StateConnecting,
	} {
		tel.SessionEvent(state, 7)
	}
	tel.ConnectStringChanged(7)
	tel.Unhandled(t.Context(), "background", jute.ErrConnectionLoss)
	want := []telemetry.Event{
		telemetry.Connected, telemetry.Disconnected, telemetry.ConnectedReadOnly, telemetry.SessionExpired,
		telemetry.AuthFailed, telemetry.ServersChanged, telemetry.ErrorUnhandled,
	}
	if diff := cmp.Diff(want, driver.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	tel.Connected(time.Second)
	tel.Notified(time.Second)
	for i, name := range []string{telemetry.WaitForConnection, telemetry.CallListeners} {
		if got := driver.operations[i]; got.Name != name || got.Latency != time.Second {
			t.Errorf("operation %s took %v", got.Name, got.Latency)
		}
	}
}

// A failed attempt has no answer.
func TestDriverGetsEachAttempt(t *testing.T) {
	driver := &counting{}
	tel := telemetry.New(telemetry.Config{Driver: driver})
	what := telemetry.Operation{Name: "getChildren", Path: "/a"}
	r := begin(t.Context(), tel, what, true)
	r.Retry(jute.ErrConnectionLoss, 0)
	stat := &zk.Stat{Version: 3}
	facts := telemetry.Facts{RequestSize: 20, ResponseSize: 30, Children: 2, Watch: true, Session: 7, Stat: stat}
	r.End(time.Now(), facts)
	tel.SessionEvent(zk.StateHasSession, 9)
	want := []telemetry.DriverOperation{
		{Operation: what, Background: true, Facts: telemetry.Facts{Err: jute.ErrConnectionLoss, Children: -1}},
		{Operation: what, Background: true, Facts: facts},
	}
	for i := range driver.operations {
		if driver.operations[i].Latency < 0 {
			t.Errorf("latency %v", driver.operations[i].Latency)
		}
		driver.operations[i].Latency = 0
	}
	same := cmp.Comparer(func(a, b error) bool { return a == b })
	if diff := cmp.Diff(want, driver.operations, same); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{0, 9}, driver.sessions); diff != "" {
		t.Errorf("sessions of the events (-want +got):\n%s", diff)
	}
}
