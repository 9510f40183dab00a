package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Load is the load of a client at a moment.
type Load struct {
	Connected   bool
	SessionLeft time.Duration // after which the session is taken for lost; 0 without one
	InFlight    int           // requests that were sent and are not answered
	Queued      int           // requests that the connection has accepted and not sent
	Pending     int           // operations that are not done
	Parked      int           // operations that wait for a connection
	Retrying    int           // operations that wait for the pause before a retry
	Watches     int           // watches that are set
	Callbacks   int           // results and events that wait for the dispatcher
	CallbackAge time.Duration
	AnswerAge   time.Duration // since the last sign of the server; 0 without a session
}

// Observe has the gauges show what load returns, until the returned function is called.
func (t *Telemetry) Observe(load func() Load) (stop func()) {
	if t == nil {
		return func() {}
	}
	t.load.Store(&load)
	t.meter() // there from the beginning, not from the first operation
	return func() {
		t.load.Store(nil)
		if in := t.meter(); in != nil && in.gauges != nil {
			_ = in.gauges.Unregister() // what is left observes nothing
		}
	}
}

// declareGauges makes the gauges of a client. The sums of several clients of a meter are their sum.
func (t *Telemetry) declareGauges(m metric.Meter) (metric.Registration, error) {
	var errs []error
	sum := func(name, unit, description string) metric.Int64ObservableUpDownCounter {
		g, err := m.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	age := func(name, description string) metric.Float64ObservableGauge {
		g, err := m.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	connected := sum("curator.client.connected", "{client}", "Clients that are connected.")
	sessionLeft := age("curator.session.remaining",
		"Time after which the session is taken for lost if no answer comes; 0 without a session.")
	inFlight := sum("curator.client.requests.in_flight", "{request}", "Requests that were sent and are not answered.")
	queued := sum("curator.client.requests.queued", "{request}", "Requests that wait to be sent on the connection.")
	background := sum("curator.background.queue.size", "{operation}",
		"Background operations that were submitted and whose callback has not begun.")
	pending := sum("curator.client.operations.pending", "{operation}", "Operations that are not done, callbacks included.")
	parked := sum("curator.client.operations.parked", "{operation}", "Operations that wait for a connection.")
	retrying := sum("curator.client.operations.retrying", "{operation}",
		"Operations that wait for the pause before a retry.")
	watches := sum("curator.client.watches", "{watch}", "Watches that are set.")
	callbacks := sum("curator.client.callbacks.queued", "{callback}", "Results and events that wait for the dispatcher.")
	callbackAge := age("curator.client.callbacks.age", "Time that the first of them has waited, or runs.")
	answerAge := age("curator.client.answer.age", "Time since the request was sent that the server has answered last.")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	with := metric.WithAttributeSet(attribute.NewSet(t.base()...))
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(background, t.background.Load(), with)
		load := t.load.Load()
		if load == nil {
			return nil
		}
		l := (*load)()
		isConnected := int64(0)
		if l.Connected {
			isConnected = 1
		}
		o.ObserveInt64(connected, isConnected, with)
		o.ObserveFloat64(sessionLeft, l.SessionLeft.Seconds(), with)
		o.ObserveInt64(inFlight, int64(l.InFlight), with)
		o.ObserveInt64(queued, int64(l.Queued), with)
		o.ObserveInt64(pending, int64(l.Pending), with)
		o.ObserveInt64(parked, int64(l.Parked), with)
		o.ObserveInt64(retrying, int64(l.Retrying), with)
		o.ObserveInt64(watches, int64(l.Watches), with)
		o.ObserveInt64(callbacks, int64(l.Callbacks), with)
		o.ObserveFloat64(callbackAge, l.CallbackAge.Seconds(), with)
		o.ObserveFloat64(answerAge, l.AnswerAge.Seconds(), with)
		return nil
	}, connected, sessionLeft, inFlight, queued, pending, parked, retrying, watches, callbacks, callbackAge, answerAge,
		background)
}
