package telemetry

import (
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/usercode"
)

// Driver gets the operations and the events of a client, beside OpenTelemetry. Package tracing makes one from a
// Java-style tracer driver of the program.
type Driver interface {
	Operation(o DriverOperation)
	Event(e Event, session int64)
}

// DriverOperation describes an operation that has ended, or a failed attempt of one.
type DriverOperation struct {
	Operation

	Background bool
	Latency    time.Duration
	Facts
}

// The names of durations that a driver gets beside those of operations.
const (
	WaitForConnection = "wait for connection"
	CallListeners     = "call listeners"
)

// Event is something that has happened.
type Event int

// The events of a client.
const (
	RetryAllowed Event = iota
	RetryRefused
	ErrorUnhandled
	Connected
	ConnectedReadOnly
	Disconnected
	SessionExpired
	AuthFailed
	ServersChanged
)

// driver calls the Driver of a client, if there is one.
type driver struct {
	to   Driver       // nil without one
	last atomic.Int32 // the last zk.State of SessionEvent
	t    *Telemetry
}

// inDriver names the driver in the report of a panic.
const inDriver = "tracer driver"

func (d *driver) on() bool { return d.to != nil }

// later calls the driver on a goroutine on which it may block. The caller may be the goroutine that reads the
// connection, or hold a lock.
func (d *driver) later(call func()) {
	d.t.Later(func() {
		defer usercode.Report(inDriver, d.t.cfg.Panicked)
		call()
	})
}

// attempt reports a failed attempt of an operation that is retried.
func (d *driver) attempt(r *Record, err error, took time.Duration) {
	if d.on() {
		d.later(func() { d.operation(r, &Facts{Err: err, Children: -1}, took) }) // an attempt without an answer
	}
}

// operation reports an operation that has ended. It runs on the caller's goroutine, or on that of the callback.
func (d *driver) operation(r *Record, f *Facts, took time.Duration) {
	if !d.on() {
		return
	}
	defer usercode.Report(inDriver, d.t.cfg.Panicked)
	d.to.Operation(DriverOperation{Operation: r.what, Background: r.background, Latency: took, Facts: *f})
}

// took reports a duration that is none of an operation.
func (d *driver) took(name string, took time.Duration) {
	if !d.on() {
		return
	}
	defer usercode.Report(inDriver, d.t.cfg.Panicked)
	d.to.Operation(DriverOperation{Operation: Operation{Name: name}, Latency: took, Facts: Facts{Children: -1}})
}

func (d *driver) event(e Event, session int64) {
	if d.on() {
		d.later(func() { d.to.Event(e, session) })
	}
}

func (d *driver) retry(allowed bool) {
	if allowed {
		d.event(RetryAllowed, 0)
		return
	}
	d.event(RetryRefused, 0)
}

// sessionEvents maps the states of go-zookeeper's connection to events.
var sessionEvents = map[zk.State]Event{
	zk.StateHasSession:        Connected,
	zk.StateConnectedReadOnly: ConnectedReadOnly,
	zk.StateDisconnected:      Disconnected,
	zk.StateExpired:           SessionExpired,
	zk.StateAuthFailed:        AuthFailed,
}

// SessionEvent reports a state of go-zookeeper's connection to the driver.
func (t *Telemetry) SessionEvent(state zk.State, session int64) {
	if t == nil || !t.driver.on() || t.driver.last.Swap(int32(state)) == int32(state) && state == zk.StateDisconnected {
		return // as in Java, a driver gets a lost connection once
	}
	if e, ok := sessionEvents[state]; ok {
		t.driver.event(e, session)
	}
}

// ConnectStringChanged reports a change of the client's servers to the driver.
func (t *Telemetry) ConnectStringChanged(session int64) {
	if t != nil {
		t.driver.event(ServersChanged, session)
	}
}

// Connected reports to the driver how long a wait for a connection took.
func (t *Telemetry) Connected(took time.Duration) {
	if t != nil {
		t.driver.took(WaitForConnection, took)
	}
}

// Notified reports to the driver how long the listeners of the client took for an event.
func (t *Telemetry) Notified(took time.Duration) {
	if t != nil {
		t.driver.took(CallListeners, took)
	}
}

// HasDriver reports whether the client has a driver.
func (t *Telemetry) HasDriver() bool { return t != nil && t.driver.on() }
