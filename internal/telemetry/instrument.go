package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
)

// The buckets that the conventions want; nobody sets them for us. Those of times that people own go further.
var (
	databaseBuckets  = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10}
	messagingBuckets = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
	outageBuckets    = []float64{.1, .5, 1, 5, 15, 30, 60, 300}
	waitBuckets      = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	holdBuckets      = []float64{.01, .1, 1, 10, 60, 600, 3600}
	ageBuckets       = []float64{.001, .01, .1, 1, 10, 60, 600, 3600, 86400}
)

// instruments are all metrics of a client.
type instruments struct {
	operationDuration metric.Float64Histogram
	retries           metric.Int64Counter
	queueDuration     metric.Float64Histogram
	unhandledErrors   metric.Int64Counter

	stateChanges   metric.Int64Counter
	outageDuration metric.Float64Histogram
	expirations    metric.Int64Counter
	watchEvents    metric.Int64Counter

	acquireDuration metric.Float64Histogram
	holdDuration    metric.Float64Histogram
	held            metric.Int64UpDownCounter
	lockWaiting     metric.Int64UpDownCounter

	leaderActive     metric.Int64UpDownCounter
	leaderCandidates metric.Int64UpDownCounter
	leaderChanges    metric.Int64Counter
	termDuration     metric.Float64Histogram

	sentMessages      metric.Int64Counter
	consumedMessages  metric.Int64Counter
	messagingDuration metric.Float64Histogram
	processDuration   metric.Float64Histogram
	itemAge           metric.Float64Histogram
	requeues          metric.Int64Counter
	deadLetters       metric.Int64Counter
	lostClaims        metric.Int64Counter

	barrierDuration metric.Float64Histogram

	cache cacheInstruments

	gauges metric.Registration // nil if there are none
}

// newInstruments returns the instruments of a meter. Those that it refuses do nothing; the error says which.
func newInstruments(m metric.Meter) (*instruments, error) {
	d := declarer{meter: m}
	in := &instruments{
		operationDuration: d.histogram("db.client.operation.duration", "Duration of operations, retries included.",
			databaseBuckets),
		retries: d.counter("curator.client.retries", "{retry}",
			"Failed attempts that the retry policy was asked about."),
		queueDuration: d.histogram("curator.background.queue.duration",
			"Time from the submission of a background operation to its first request.", databaseBuckets),
		unhandledErrors: d.counter("curator.unhandled_errors", "{error}", "Errors that no caller and no callback has got."),

		stateChanges:   d.counter("curator.connection.state_changes", "{change}", "Changes of the connection state."),
		outageDuration: d.histogram("curator.connection.outage.duration", "Time without a connection.", outageBuckets),
		expirations:    d.counter("curator.session.expirations", "{session}", "Sessions that were lost."),
		watchEvents:    d.counter("curator.watch.events", "{event}", "Events of watches."),

		acquireDuration: d.histogram("curator.lock.acquire.duration", "Time that a lock or a lease was waited for.",
			waitBuckets),
		holdDuration: d.histogram("curator.lock.hold.duration", "Time that a lock or a lease was held.", holdBuckets),
		held:         d.upDown("curator.lock.held", "{lock}", "Locks and leases that are held."),
		lockWaiting:  d.upDown("curator.lock.waiting", "{waiter}", "Calls that wait for a lock or a lease."),

		leaderActive: d.upDown("curator.leader.active", "{leader}", "Leaders in this process."),
		leaderCandidates: d.upDown("curator.leader.candidates", "{candidate}",
			"Participants in this process that wait for leadership."),
		leaderChanges: d.counter("curator.leader.changes", "{change}", "Beginnings and ends of leadership in this process."),
		termDuration:  d.histogram("curator.leader.term.duration", "Time of leadership.", holdBuckets),

		sentMessages:     d.counter("messaging.client.sent.messages", "{message}", "Items that were put."),
		consumedMessages: d.counter("messaging.client.consumed.messages", "{message}", "Items that were handed over."),
		messagingDuration: d.histogram("messaging.client.operation.duration", "Duration of puts, receives and settlements.",
			messagingBuckets),
		processDuration: d.histogram("messaging.process.duration", "Duration of the consumer's work on an item.",
			messagingBuckets),
		itemAge: d.histogram("curator.queue.item.age",
			"Time from the first put of an item, by the server's clock, to its handing over, by ours.", ageBuckets),
		requeues:    d.counter("curator.queue.requeues", "{message}", "Nodes that were put back."),
		deadLetters: d.counter("curator.queue.dead_letters", "{message}", "Nodes that were moved to the dead letters."),
		lostClaims: d.counter("curator.queue.claims.lost", "{claim}",
			"Items that another consumer took first, or whose lock was lost while they were consumed."),

		barrierDuration: d.histogram("curator.barrier.wait.duration", "Time that was waited at a barrier.", waitBuckets),

		cache: newCacheInstruments(&d),
	}
	return in, errors.Join(d.errs...)
}

// declarer makes instruments.
type declarer struct {
	meter metric.Meter
	errs  []error
}

// histogram is one of times, in seconds.
func (d *declarer) histogram(name, description string, buckets []float64) metric.Float64Histogram {
	h, err := d.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(buckets...))
	if d.failed(err) {
		return noopmetric.Float64Histogram{}
	}
	return h
}

func (d *declarer) counter(name, unit, description string) metric.Int64Counter {
	c, err := d.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	if d.failed(err) {
		return noopmetric.Int64Counter{}
	}
	return c
}

func (d *declarer) upDown(name, unit, description string) metric.Int64UpDownCounter {
	c, err := d.meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	if d.failed(err) {
		return noopmetric.Int64UpDownCounter{}
	}
	return c
}

func (d *declarer) failed(err error) bool {
	if err != nil {
		d.errs = append(d.errs, err)
	}
	return err != nil
}

// add counts n of what has these attributes.
func (t *Telemetry) add(ctx context.Context, c metric.Int64Counter, n int, attributes measurement) {
	defer t.caught(inMetrics)
	if c.Enabled(ctx) {
		c.Add(ctx, int64(n), attributes.add...)
	}
}

func (t *Telemetry) addUpDown(ctx context.Context, c metric.Int64UpDownCounter, n int, attributes measurement) {
	defer t.caught(inMetrics)
	if c.Enabled(ctx) {
		c.Add(ctx, int64(n), attributes.add...)
	}
}

func (t *Telemetry) record(ctx context.Context, h metric.Float64Histogram, seconds float64, attributes measurement) {
	defer t.caught(inMetrics)
	if h.Enabled(ctx) {
		h.Record(ctx, seconds, attributes.record...)
	}
}
