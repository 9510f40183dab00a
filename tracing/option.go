package tracing

import (
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/telemetry"
)

// WithDriver reports operations and events of a client to a Java-style driver, beside OpenTelemetry. In Java:
// CuratorZookeeperClient.setTracerDriver.
func WithDriver(d Driver) framework.Option {
	return option(func(c *telemetry.Config) {
		c.Driver = nil
		if d != nil {
			c.Driver = adapt(d)
		}
	})
}

// WithDriverFailures reports foreground operations that fail, too. Java does not.
func WithDriverFailures() framework.Option {
	return option(func(c *telemetry.Config) { c.DriverFailures = true })
}

func option(change func(c *telemetry.Config)) framework.Option {
	return hook.TelemetryOption(change).(framework.Option)
}

func adapt(d Driver) telemetry.Driver {
	if a, ok := d.(AdvancedDriver); ok {
		return advanced{a}
	}
	return simple{d}
}

type simple struct{ Driver }

func (s simple) Operation(o telemetry.DriverOperation) { s.AddTrace(operationName(&o), o.Latency) }
func (s simple) Event(e telemetry.Event, _ int64)      { s.AddCount(eventNames[e], 1) }

type advanced struct{ AdvancedDriver }

func (a advanced) Operation(o telemetry.DriverOperation) {
	a.AddOperation(OperationTrace{
		Name: operationName(&o), Latency: o.Latency, Err: o.Err, Path: o.Path, WithWatcher: o.Watch,
		RequestBytes: o.RequestSize, ResponseBytes: o.ResponseSize, ResponseChildren: o.Children,
		Transactions: o.Batch, SessionID: o.Session, Stat: o.Stat,
	})
}

func (a advanced) Event(e telemetry.Event, session int64) {
	a.AddEvent(EventTrace{Name: eventNames[e], SessionID: session})
}
