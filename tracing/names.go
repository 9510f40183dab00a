package tracing

import "github.com/gocurator/curator/internal/telemetry"

// operationNames are the classes after which Java names its traces, by ZooKeeper's names of the operations.
var operationNames = map[string]string{
	"create":        "CreateBuilderImpl",
	"delete":        "DeleteBuilderImpl",
	"exists":        "ExistsBuilderImpl",
	"getData":       "GetDataBuilderImpl",
	"setData":       "SetDataBuilderImpl",
	"getChildren":   "GetChildrenBuilderImpl",
	"getACL":        "GetACLBuilderImpl",
	"setACL":        "SetACLBuilderImpl",
	"sync":          "SyncBuilderImpl",
	"getConfig":     "GetConfigBuilderImpl",
	"reconfig":      "ReconfigBuilderImpl",
	"addWatch":      "AddWatchBuilderImpl",
	"removeWatches": "RemoteWatches", // Java's spelling
}

// operationName returns Java's name of an operation.
func operationName(o *telemetry.DriverOperation) string {
	name, ok := operationNames[o.Name]
	switch {
	case o.Cleanup:
		return "FindAndDeleteProtectedNodeInBackground"
	case o.Name == telemetry.WaitForConnection:
		return "blockUntilConnectedOrTimedOut"
	case o.Name == telemetry.CallListeners:
		return "EventListener"
	case o.Batch > 0:
		name = "CuratorMultiTransactionImpl"
	case o.Name == "getConfig" && o.Background: // Java's slip
		name = "GetDataBuilderImpl"
	case !ok:
		return o.Name
	}
	if o.Background {
		return name + "-Background"
	}
	return name + "-Foreground"
}

// eventNames are Java's names of events.
var eventNames = map[telemetry.Event]string{
	telemetry.RetryAllowed:      "retries-allowed",
	telemetry.RetryRefused:      "retries-disallowed",
	telemetry.ErrorUnhandled:    "background-exceptions",
	telemetry.Connected:         "SyncConnected",
	telemetry.ConnectedReadOnly: "ConnectedReadOnly",
	telemetry.Disconnected:      "Disconnected",
	telemetry.SessionExpired:    "session-expired",
	telemetry.AuthFailed:        "AuthFailed",
	telemetry.ServersChanged:    "connection-string-changed",
}
