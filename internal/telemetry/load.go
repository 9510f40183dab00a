package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gocurator/curator/internal/instrument"
)

// Load is the load of a client at one moment.
type Load struct {
	Connected   bool
	SessionLeft time.Duration // time until the client declares the session lost; 0 without a session
	InFlight    int           // requests without an answer
	Queued      int           // requests that the connection has accepted and not sent
	Pending     int           // operations that are not done
	Parked      int           // operations that wait for a connection
	Retrying    int           // operations in the pause before a retry
	Watches     int           // watches that are set
	Callbacks   int           // results and events in the queue of the dispatcher
	CallbackAge time.Duration // time for which the first of them has waited or has been running
	AnswerAge   time.Duration // time since the last answered request was sent; 0 without a session
}

// gauges has the values of the gauges of a client.
type gauges struct {
	load       atomic.Pointer[func() Load]
	background atomic.Int64 // number of background operations whose callback has not begun
}

// Observe makes the gauges show the results of load, until stop is called.
func (t *Telemetry) Observe(load func() Load) (stop func()) {
	if t == nil {
		return func() {}
	}
	t.gauges.load.Store(&load)
	t.scope.Measures() // declares the gauges before the first operation
	return func() {
		t.gauges.load.Store(nil)
		t.scope.StopGauges()
	}
}

// declareGauges declares the gauges of a client. Sums of several clients with the same meter provider are added up.
func declareGauges(d *instrument.Declarer) {
	g := d.Gauges()
	connected := g.Sum("curator.client.connected", "{client}", "Clients that are connected.")
	sessionLeft := g.Age("curator.session.remaining",
		"Time after which the session is taken for lost if no answer comes; 0 without a session.")
	inFlight := g.Sum("curator.client.requests.in_flight", "{request}", "Requests that were sent and are not answered.")
	queued := g.Sum("curator.client.requests.queued", "{request}", "Requests that wait to be sent on the connection.")
	pending := g.Sum("curator.client.operations.pending", "{operation}",
		"Operations that are not done, callbacks included.")
	parked := g.Sum("curator.client.operations.parked", "{operation}", "Operations that wait for a connection.")
	retrying := g.Sum("curator.client.operations.retrying", "{operation}",
		"Operations that wait for the pause before a retry.")
	watches := g.Sum("curator.client.watches", "{watch}", "Watches that are set.")
	callbacks := g.Sum("curator.client.callbacks.queued", "{callback}",
		"Results and events that wait for the dispatcher.")
	callbackAge := g.Age("curator.client.callbacks.age", "Time that the first of them has waited, or runs.")
	answerAge := g.Age("curator.client.answer.age", "Time since the request was sent that the server has answered last.")
	background := g.Sum("curator.background.queue.size", "{operation}",
		"Background operations that were submitted and whose callback has not begun.")
	values := instrument.Shared[gauges](d.Scope())
	with := metric.WithAttributeSet(attribute.NewSet(d.Scope().Base()...))
	g.Observe(func(_ context.Context, o metric.Observer) {
		o.ObserveInt64(background, values.background.Load(), with)
		load := values.load.Load()
		if load == nil {
			return
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
	})
}
