package telemetry

import (
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// Driver is a Java-style tracer driver. Package tracing makes it of one of the program.
type Driver interface {
	Operation(o DriverOperation)
	Event(name string, session int64)
}

// DriverOperation is an operation, or something else that takes time, under Java's name.
type DriverOperation struct {
	Name         string
	Latency      time.Duration
	Path         string
	Transactions int // operations of a transaction, 0 if it is none
	Facts
}

// Option returns a framework.Option that changes the configuration of a client's telemetry. Package framework sets it.
var Option func(change func(c *Config)) any

// driver calls a Java-style driver, if there is one.
type driver struct {
	to   Driver       // nil if there is none
	last atomic.Int32 // the last state that the driver got
	t    *Telemetry
}

func (d *driver) on() bool { return d.to != nil }

// javaNames are the classes after which Java names its traces.
var javaNames = map[string]string{
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

// javaName returns Java's name of an operation.
func javaName(what *Operation, background bool) string {
	name, ok := javaNames[what.Name]
	switch {
	case what.Java != "":
		return what.Java
	case what.Batch > 0:
		name = "CuratorMultiTransactionImpl"
	case what.Name == "getConfig" && background: // Java's slip
		name = "GetDataBuilderImpl"
	case !ok:
		return what.Name
	}
	if background {
		return name + "-Background"
	}
	return name + "-Foreground"
}

// later runs a call of the driver where it may block: what happens may do so on the goroutine that reads the
// connection, or under a lock.
func (d *driver) later(call func()) {
	d.t.Later(func() {
		defer d.t.caught(inDriver)
		call()
	})
}

// attempt reports a failed attempt of an operation that is tried again.
func (d *driver) attempt(r *Record, err error, took time.Duration) {
	if d.on() {
		d.later(func() { d.operation(r, &Facts{Err: err, Children: -1}, took) }) // it has no answer
	}
}

// operation reports an operation that has ended. It runs on the caller's goroutine, or on that of the callback.
func (d *driver) operation(r *Record, f *Facts, took time.Duration) {
	if !d.on() {
		return
	}
	defer d.t.caught(inDriver)
	d.to.Operation(DriverOperation{
		Name: javaName(&r.what, r.background), Latency: took, Path: r.what.Path, Transactions: r.what.Batch, Facts: *f,
	})
}

// took reports the duration of something that is no operation.
func (d *driver) took(name string, took time.Duration) {
	if !d.on() {
		return
	}
	defer d.t.caught(inDriver)
	d.to.Operation(DriverOperation{Name: name, Latency: took, Facts: Facts{Children: -1}})
}

func (d *driver) count(name string, session int64) {
	if d.on() {
		d.later(func() { d.to.Event(name, session) })
	}
}

func (d *driver) retry(allowed bool) {
	if allowed {
		d.count("retries-allowed", 0)
		return
	}
	d.count("retries-disallowed", 0)
}

// SessionEvent reports a state of go-zookeeper's connection to a Java-style driver, under Java's name.
func (t *Telemetry) SessionEvent(state zk.State, session int64) {
	if t == nil || !t.driver.on() || t.driver.last.Swap(int32(state)) == int32(state) && state == zk.StateDisconnected {
		return // as Java, which reports a lost connection once
	}
	switch state {
	case zk.StateHasSession:
		t.driver.count("SyncConnected", session)
	case zk.StateConnectedReadOnly:
		t.driver.count("ConnectedReadOnly", session)
	case zk.StateDisconnected:
		t.driver.count("Disconnected", session)
	case zk.StateExpired:
		t.driver.count("session-expired", session)
	case zk.StateAuthFailed:
		t.driver.count("AuthFailed", session)
	}
}

// ConnectStringChanged notes that the client was given other servers.
func (t *Telemetry) ConnectStringChanged(session int64) {
	if t != nil {
		t.driver.count("connection-string-changed", session)
	}
}

// Connected reports the time of a wait for a connection to a Java-style driver.
func (t *Telemetry) Connected(took time.Duration) {
	if t != nil {
		t.driver.took("blockUntilConnectedOrTimedOut", took)
	}
}

// Notified reports the time that the listeners of the client took for an event to a Java-style driver.
func (t *Telemetry) Notified(took time.Duration) {
	if t != nil {
		t.driver.took("EventListener", took)
	}
}

// HasDriver reports whether there is a Java-style driver.
func (t *Telemetry) HasDriver() bool { return t != nil && t.driver.on() }
