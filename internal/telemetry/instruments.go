package telemetry

import "github.com/gocurator/curator/internal/instrument"

// The buckets of the conventions for databases, and those of outages.
var (
	databaseBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10}
	outageBuckets   = []float64{.1, .5, 1, 5, 15, 30, 60, 300}
)

// instruments are the metrics of operations and connections.
type instruments struct {
	operationDuration instrument.Histogram
	retries           instrument.Counter
	queueDuration     instrument.Histogram
	unhandledErrors   instrument.Counter

	stateChanges   instrument.Counter
	outageDuration instrument.Histogram
	expirations    instrument.Counter
	watchEvents    instrument.Counter
}

var kit = instrument.NewKit(func(d *instrument.Declarer) *instruments {
	declareGauges(d)
	return &instruments{
		operationDuration: d.Histogram("db.client.operation.duration", "Duration of operations, retries included.",
			databaseBuckets),
		retries: d.Counter("curator.client.retries", "{retry}",
			"Failed attempts that the retry policy was asked about."),
		queueDuration: d.Histogram("curator.background.queue.duration",
			"Time from the submission of a background operation to its first request.", databaseBuckets),
		unhandledErrors: d.Counter("curator.unhandled_errors", "{error}", "Errors that no caller and no callback has got."),

		stateChanges:   d.Counter("curator.connection.state_changes", "{change}", "Changes of the connection state."),
		outageDuration: d.Histogram("curator.connection.outage.duration", "Time without a connection.", outageBuckets),
		expirations:    d.Counter("curator.session.expirations", "{session}", "Sessions that were lost."),
		watchEvents:    d.Counter("curator.watch.events", "{event}", "Events of watches."),
	}
})
