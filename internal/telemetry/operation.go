package telemetry

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/usercode"
)

// Operation describes a client operation.
type Operation struct {
	// Name is ZooKeeper's name of the operation: "create", "getData", "multi".
	Name string
	// Namespace is the namespace of the client, with the chroot in front if there is one.
	Namespace string
	// Path is the path as the caller gave it.
	Path string
	// Mode is the create mode, "" for other operations.
	Mode string
	// Batch is the number of operations of a transaction, 0 for other operations.
	Batch int
	// Cleanup is true for the search for a protected node that a failed create may have left.
	Cleanup bool
}

// notSent is the outcome of an operation that was not sent.
const notSent = "not_sent"

// Facts describe the end of an operation.
type Facts struct {
	Err          error
	Sent         time.Time // when the first request of a background operation was sent; zero if none was
	Unsent       bool      // no request was sent, and the caller begins again: Err is no failure
	RequestSize  int       // bytes
	ResponseSize int       // bytes
	Children     int       // number of listed children; -1 for other operations
	Watch        bool      // the operation has set a watch
	Stat         *zk.Stat  // nil for an operation without one
	Session      int64     // 0 if no request was sent
	Server       string    // host and port
	Waits        []ConnectionWait
}

// Record records one operation from its beginning to its end. All methods of a nil Record do nothing. The caller of
// Begin provides its memory, so that a Record costs no allocation.
type Record struct {
	t          *Telemetry
	op         *opMetrics
	what       Operation
	background bool
	expected   bool         // the caller handles answers about nodes: see [Telemetry.ExpectingErrors]
	cause      caused       // the context of the callback
	span       trace.Span   // nil if it is not recorded
	metrics    *instruments // nil if metrics are off
	start      time.Time

	mu       sync.Mutex // guards the fields below, which the reader goroutine writes
	attempt  time.Time  // start of the last attempt
	tries    []try      // the first retried attempts, at most maxRetryEvents
	retries  int
	requests []request
	ended    bool // End was called: later notes are ignored
}

// maxRetryEvents is the number of retries for which a span has events.
const maxRetryEvents = 8

// try is a failed attempt that is retried.
type try struct {
	at    time.Time
	err   error
	pause time.Duration
}

// request is a request of an operation.
type request struct {
	name       string
	start, end time.Time
	err        error
}

// Begin returns the record of an operation that began at a time, or nil if telemetry is off. It uses the memory of r,
// which is zero. For a foreground operation it is called while the request is under way, so that telemetry adds nothing
// to the wait. The record of a background operation ignores the end of ctx.
func (t *Telemetry) Begin(
	ctx context.Context, r *Record, what Operation, background bool, at time.Time,
) *Record {
	if !t.On() {
		return nil
	}
	settings := opContextOf(ctx)
	r.t, r.op, r.what, r.background = t, t.opMetricsOf(what.Name, what.Namespace), what, background
	r.expected, r.metrics, r.start, r.attempt = settings.expected, t.instruments(), at, at
	if background && ctx.Done() != nil {
		ctx = r.cause.detach(ctx)
	}
	r.cause.Context = ctx
	if t.scope.Traces() && settings.traces(ctx) {
		settings.start(ctx, r)
	}
	if background && r.metrics != nil {
		t.gauges.background.Add(1)
	}
	if settings.ending != nil && !background { // a background operation may begin on a goroutine that must not block
		settings.ending()
	}
	return r
}

// Context returns the context of the callback: that of the call, in the span of the operation.
func (r *Record) Context() context.Context {
	if r.cause.under != nil {
		return &r.cause
	}
	return r.cause.Context
}

// Request notes a request, from its write to its answer, if requests have spans.
func (r *Record) Request(name string, start, end time.Time, err error) {
	if r == nil || r.span == nil || !r.t.cfg.RequestSpans || start.IsZero() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.requests = append(r.requests, request{name, start, end, err})
	}
}

// Retry notes a failed attempt, and the pause before the next one.
func (r *Record) Retry(err error, pause time.Duration) {
	if r == nil {
		return
	}
	now := time.Now()
	r.mu.Lock()
	if r.ended { // the caller has given up
		r.mu.Unlock()
		return
	}
	r.retries++
	if len(r.tries) < maxRetryEvents {
		r.tries = append(r.tries, try{now, err, pause})
	}
	began := r.attempt
	r.attempt = now.Add(pause)
	r.mu.Unlock()
	r.decided(err, true)
	if r.background { // Java has one trace for each attempt
		r.t.driver.attempt(r, err, now.Sub(began))
	}
	r.logRetry(err, pause)
}

// GivenUp notes a failed attempt after which the retry policy allows no other.
func (r *Record) GivenUp(err error) {
	if r != nil {
		r.decided(err, false)
	}
}

func (r *Record) decided(err error, retry bool) {
	by := r.op.givenUp
	if retry {
		by = r.op.retries
	}
	r.t.driver.retry(retry)
	if r.metrics != nil {
		r.metrics.retries.Add(r.cause.Context, 1, by.Get(ErrorType(err)))
	}
}

// levelRetry is low, because a lost connection causes a retry of each operation.
const levelRetry = slog.LevelDebug

func (r *Record) logRetry(err error, pause time.Duration) {
	l := r.t.cfg.Logger
	if l == nil || !l.Enabled(r.cause.Context, levelRetry) {
		return
	}
	attributes := append(LogAttrs(r.cause.Context), slog.String("operation", r.what.Name))
	if path := r.t.FormatPath(r.what.Path); path != "" {
		attributes = append(attributes, slog.String("path", path))
	}
	attributes = append(attributes, slog.Any("error", err), slog.Duration("pause", pause))
	l.LogAttrs(r.cause.Context, levelRetry, "retry", attributes...)
}

// End reports an operation that ended at a time. A second End does nothing. End must not be called on the goroutine
// that reads the connection, because a span processor may block.
func (r *Record) End(at time.Time, f Facts) {
	if r == nil || !r.close() {
		return
	}
	r.measure(at, &f)
	if !f.Unsent && (f.Err == nil || r.background || r.t.cfg.DriverFailures) {
		began := r.start
		if r.background {
			began = r.attempt
		}
		r.t.driver.operation(r, &f, max(at.Sub(began), 0))
	}
	if r.span != nil {
		r.endSpan(at, &f)
	}
}

// close makes the fields immutable, so that End reads them without mu: a provider may block. The first call returns
// true.
func (r *Record) close() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.ended
	r.ended = true
	return first
}

// isHandled reports whether err is an answer that the caller handles.
func (r *Record) isHandled(err error) bool { return r.expected && isState(err) }

func (r *Record) measure(at time.Time, f *Facts) {
	in := r.metrics
	if in == nil {
		return
	}
	if r.background {
		r.t.gauges.background.Add(-1)
	}
	if f.Unsent {
		return
	}
	ended := r.op.succeeded
	if f.Err != nil {
		ended = r.op.failed.Get(endOf(f.Err, r.isHandled(f.Err)))
	}
	in.operationDuration.Record(r.cause.Context, at.Sub(r.start).Seconds(), ended)
	if r.background {
		in.queueDuration.Record(r.cause.Context, r.queueTime(at, f).Seconds(), r.op.queued)
	}
}

// queueTime returns the time that a background operation waited to be sent, up to its end if it was never sent.
func (r *Record) queueTime(end time.Time, f *Facts) time.Duration {
	if f.Sent.IsZero() {
		return end.Sub(r.start)
	}
	return max(f.Sent.Sub(r.start), 0)
}

func (r *Record) endSpan(at time.Time, f *Facts) {
	defer usercode.Report(instrument.InTracing, r.t.cfg.Panicked)
	r.span.SetAttributes(r.attributes(at, f)...)
	for i, try := range r.tries {
		instrument.Event(r.span, "curator.retry", try.at, retryAttempt.Int(i+1),
			instrument.ErrorType.String(ErrorType(try.err)), retryDelay.Float64(try.pause.Seconds()))
	}
	r.eventWaits(f.Waits)
	for _, change := range r.t.history.Load().since(r.start, at) {
		instrument.Event(r.span, "curator.connection.state", change.at, connectionState.String(change.state))
	}
	r.endRequests(f.Err)
	if f.Err != nil && !f.Unsent && !r.isHandled(f.Err) {
		r.span.SetStatus(codes.Error, description(f.Err))
	}
	r.span.End(trace.WithTimestamp(at))
}

func (r *Record) attributes(end time.Time, f *Facts) []attribute.KeyValue {
	a := r.t.WithPath(make([]attribute.KeyValue, 0, 6), r.what.Path)
	if r.what.Mode != "" {
		a = append(a, createMode.String(r.what.Mode))
	}
	if r.what.Batch >= 2 {
		a = append(a, instrument.BatchSize.Int(r.what.Batch))
	}
	if f.Watch {
		a = append(a, watchKey.Bool(true))
	}
	if f.RequestSize > 0 {
		a = append(a, requestSize.Int(f.RequestSize))
	}
	if f.ResponseSize > 0 {
		a = append(a, responseSize.Int(f.ResponseSize))
	}
	if f.Children >= 0 {
		a = append(a, responseChildren.Int(f.Children))
	}
	if r.t.cfg.SessionIDs && f.Session != 0 {
		a = append(a, sessionID.String("0x"+strconv.FormatUint(uint64(f.Session), 16)))
	}
	if f.Server != r.t.cfg.Server { // the configured server is an attribute since the start
		a = appendPeer(a, f.Server)
	}
	if r.background {
		a = append(a, background.Bool(true))
		if d := r.queueTime(end, f); d >= minQueueTime {
			a = append(a, queueTime.Float64(d.Seconds()))
		}
	}
	if r.retries > 0 {
		a = append(a, retryCount.Int(r.retries))
	}
	if f.Unsent {
		return append(a, OutcomeKey.String(notSent))
	}
	return append(a, endOf(f.Err, r.isHandled(f.Err)).attributes()...)
}

// minQueueTime is the shortest time in the queue that a span shows.
const minQueueTime = time.Millisecond

// appendPeer adds the attributes of the server that answered.
func appendPeer(attributes []attribute.KeyValue, server string) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return attributes
	}
	attributes = append(attributes, instrument.PeerAddress.String(host))
	if n, err := strconv.Atoi(port); err == nil {
		attributes = append(attributes, instrument.PeerPort.Int(n))
	}
	return attributes
}

// endRequests writes a span for each request of the operation. result is the error of the operation.
func (r *Record) endRequests(result error) {
	for _, q := range r.requests {
		name, start := r.t.spans(r.t.opMetricsOf(q.name, r.what.Namespace), q.name, r.what.Namespace)
		_, span := r.t.scope.StartSpan(r.cause.Context, name, append(slices.Clip(start), trace.WithTimestamp(q.start))...)
		if span == nil {
			continue
		}
		if q.err != nil {
			handled := isState(q.err) && (ErrorType(q.err) != ErrorType(result) || r.expected)
			span.SetAttributes(endOf(q.err, handled).attributes()...)
			if !handled {
				span.SetStatus(codes.Error, description(q.err))
			}
		}
		span.End(trace.WithTimestamp(q.end))
	}
}
