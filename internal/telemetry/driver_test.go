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
	operations, events []string
	traces             []telemetry.DriverOperation
	ids                []int64
}

func (c *counting) Operation(o telemetry.DriverOperation) {
	c.operations, c.traces = append(c.operations, o.Name), append(c.traces, o)
}

func (c *counting) Event(name string, session int64) {
	c.events, c.ids = append(c.events, name), append(c.ids, session)
}

func TestDriverIsToldJavasNames(t *testing.T) {
	tests := []struct {
		what                   telemetry.Operation
		foreground, background string
	}{
		{telemetry.Operation{Name: "create"}, "CreateBuilderImpl-Foreground", "CreateBuilderImpl-Background"},
		{telemetry.Operation{Name: "delete"}, "DeleteBuilderImpl-Foreground", "DeleteBuilderImpl-Background"},
		{telemetry.Operation{Name: "exists"}, "ExistsBuilderImpl-Foreground", "ExistsBuilderImpl-Background"},
		{telemetry.Operation{Name: "getData"}, "GetDataBuilderImpl-Foreground", "GetDataBuilderImpl-Background"},
		{telemetry.Operation{Name: "setData"}, "SetDataBuilderImpl-Foreground", "SetDataBuilderImpl-Background"},
		{telemetry.Operation{Name: "getChildren"}, "GetChildrenBuilderImpl-Foreground", "GetChildrenBuilderImpl-Background"},
		{telemetry.Operation{Name: "getACL"}, "GetACLBuilderImpl-Foreground", "GetACLBuilderImpl-Background"},
		{telemetry.Operation{Name: "setACL"}, "SetACLBuilderImpl-Foreground", "SetACLBuilderImpl-Background"},
		{telemetry.Operation{Name: "sync"}, "SyncBuilderImpl-Foreground", "SyncBuilderImpl-Background"},
		{
			telemetry.Operation{Name: "multi", Batch: 2},
			"CuratorMultiTransactionImpl-Foreground",
			"CuratorMultiTransactionImpl-Background",
		},
		{
			telemetry.Operation{Name: "multi create", Batch: 1},
			"CuratorMultiTransactionImpl-Foreground",
			"CuratorMultiTransactionImpl-Background",
		},
		{telemetry.Operation{Name: "getConfig"}, "GetConfigBuilderImpl-Foreground", "GetDataBuilderImpl-Background"},
		{telemetry.Operation{Name: "reconfig"}, "ReconfigBuilderImpl-Foreground", "ReconfigBuilderImpl-Background"},
		{telemetry.Operation{Name: "addWatch"}, "AddWatchBuilderImpl-Foreground", "AddWatchBuilderImpl-Background"},
		{telemetry.Operation{Name: "removeWatches"}, "RemoteWatches-Foreground", "RemoteWatches-Background"},
		{
			telemetry.Operation{Name: "delete", Java: "FindAndDeleteProtectedNodeInBackground"},
			"FindAndDeleteProtectedNodeInBackground", "FindAndDeleteProtectedNodeInBackground",
		},
	}
	for _, tt := range tests {
		driver := &counting{}
		tel := telemetry.New(telemetry.Config{Driver: driver})
		run(t.Context(), tel, tt.what, false, nil)
		run(t.Context(), tel, tt.what, true, nil)
		if diff := cmp.Diff([]string{tt.foreground, tt.background}, driver.operations); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.what.Name, diff)
		}
	}
}

func TestDriverIsToldOfTheSession(t *testing.T) {
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
	want := []string{
		"SyncConnected", "Disconnected", "ConnectedReadOnly", "session-expired", "AuthFailed", "connection-string-changed",
		"background-exceptions",
	}
	if diff := cmp.Diff(want, driver.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	tel.Connected(time.Second)
	tel.Notified(time.Second)
	if diff := cmp.Diff([]string{"blockUntilConnectedOrTimedOut", "EventListener"}, driver.operations); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

// An attempt that failed has no answer to tell of.
func TestDriverIsToldOfEachAttempt(t *testing.T) {
	driver := &counting{}
	tel := telemetry.New(telemetry.Config{Driver: driver})
	r := begin(t.Context(), tel, telemetry.Operation{Name: "getChildren", Path: "/a"}, true)
	r.Retry(jute.ErrConnectionLoss, 0)
	stat := &zk.Stat{Version: 3}
	facts := telemetry.Facts{RequestSize: 20, ResponseSize: 30, Children: 2, Watch: true, Session: 7, Stat: stat}
	r.End(time.Now(), facts)
	tel.SessionEvent(zk.StateHasSession, 9)
	want := []telemetry.DriverOperation{
		{
			Name: "GetChildrenBuilderImpl-Background", Path: "/a",
			Facts: telemetry.Facts{Err: jute.ErrConnectionLoss, Children: -1},
		},
		{Name: "GetChildrenBuilderImpl-Background", Path: "/a", Facts: facts},
	}
	for i := range driver.traces {
		if driver.traces[i].Latency < 0 {
			t.Errorf("latency %v", driver.traces[i].Latency)
		}
		driver.traces[i].Latency = 0
	}
	same := cmp.Comparer(func(a, b error) bool { return a == b })
	if diff := cmp.Diff(want, driver.traces, same); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{0, 9}, driver.ids); diff != "" {
		t.Errorf("sessions of the events (-want +got):\n%s", diff)
	}
}
