package tracing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/telemetry"
)

// counting is a driver that keeps the names.
type counting struct{ names []string }

func (c *counting) AddTrace(name string, _ time.Duration) { c.names = append(c.names, name) }
func (c *counting) AddCount(name string, _ int)           { c.names = append(c.names, name) }

func TestOperationNamesAreJavas(t *testing.T) {
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
			telemetry.Operation{Name: "delete", Cleanup: true},
			"FindAndDeleteProtectedNodeInBackground", "FindAndDeleteProtectedNodeInBackground",
		},
		{
			telemetry.Operation{Name: telemetry.WaitForConnection},
			"blockUntilConnectedOrTimedOut", "blockUntilConnectedOrTimedOut",
		},
		{telemetry.Operation{Name: telemetry.CallListeners}, "EventListener", "EventListener"},
	}
	for _, tt := range tests {
		stats := &counting{}
		driver := adapt(stats)
		driver.Operation(telemetry.DriverOperation{Operation: tt.what})
		driver.Operation(telemetry.DriverOperation{Operation: tt.what, Background: true})
		if diff := cmp.Diff([]string{tt.foreground, tt.background}, stats.names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.what.Name, diff)
		}
	}
}

func TestEventNamesAreJavas(t *testing.T) {
	stats := &counting{}
	driver := adapt(stats)
	for e := telemetry.RetryAllowed; e <= telemetry.ServersChanged; e++ {
		driver.Event(e, 7)
	}
	want := []string{
		"retries-allowed", "retries-disallowed", "background-exceptions", "SyncConnected", "ConnectedReadOnly",
		"Disconnected", "session-expired", "AuthFailed", "connection-string-changed",
	}
	if diff := cmp.Diff(want, stats.names); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
