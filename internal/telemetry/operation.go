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
)

// Operation says what an operation of the framework is.
type Operation struct {
	// Name is that of ZooKeeper: "create", "getData", "multi".
	Name string
	// Namespace is that of the client, behind the chroot if there is one.
	Namespace string
	// Path is the path as it was given.
	Path string
	// Mode is how a node is created, "" if none is.
	Mode string
	// Batch is the number of operations of a transaction.
	Batch int
	// Java is the name of its trace in Java, if it does not follow from the others.
	Java string
}

// notSent is the outcome of an operation that was not sent.
const notSent = "not_sent"

// Facts are what is known of an operation when it has ended.
type Facts struct {
	Err          error
	Sent         time.Time // when the first request of a background operation was written, zero if none was
	Unsent       bool      // nothing was sent, and the caller begins again: Err is no failure
	RequestSize  int       // bytes
	ResponseSize int
	Children     int      // how many were listed; -1 if none were
	Watch        bool     // a watch was set
	Stat         *zk.Stat // nil if there is none
	Session      int64
	Server       string // host and port
	Waits        []ConnectionWait
}

// Record is the telemetry of one operation, from its beginning to its end. All methods of a nil one do nothing. It is
// large, so its memory is a part of what its owner allocates.
type Record struct {
	t          *Telemetry
	op         *opMetrics
	what       Operation
	background bool
	expected   bool       // the caller handles answers about nodes: see [Telemetry.ExpectingErrors]
	cause      caused     // the context of what the operation causes
	span       trace.Span // nil if it is not recorded
	metrics    *instruments
	start      time.Time

	mu       sync.Mutex // of what the goroutine that reads the connection notes
	attempt  time.Time  // when the last began
	tries    []try
	retries  int
	requests []request
	ended    bool // nothing is noted any more
}

// maxRetryEvents is the number of retries of an operation that are events of their own.
const maxRetryEvents = 8

// try is a failed attempt after which there was another.
type try struct {
	at    time.Time
	err   error
	pause time.Duration
}

// request is one of those that an operation consists of.
type request struct {
	name       string
	start, end time.Time
	err        error
}

// Begin begins the record of an operation that began at a time, in the memory of r, which is zero. It returns nil if
// telemetry is off. For a foreground operation it is called while the request is under way, so that telemetry adds
// nothing to the wait. A background operation outlives ctx.
func (t *Telemetry) Begin(
	ctx context.Context, r *Record, what Operation, background bool, at time.Time,
) *Record {
	if !t.On() {
		return nil
	}
	settings := opContextOf(ctx)
	r.t, r.op, r.what, r.background = t, t.opMetricsOf(what.Name, what.Namespace), what, background
	r.expected, r.metrics, r.start, r.attempt = settings.expected, t.meter(), at, at
	if background && ctx.Done() != nil {
		ctx = r.cause.detach(ctx)
	}
	r.cause.Context = ctx
	if t.tracer() != nil && settings.traces(ctx) {
		settings.start(ctx, r)
	}
	if background && r.metrics != nil {
		t.background.Add(1)
	}
	if settings.ending != nil && !background { // which may begin on a goroutine that must not block
		settings.ending()
	}
	return r
}

// Context returns the context of what the operation causes.
func (r *Record) Context() context.Context {
	if r.cause.under != nil {
		return &r.cause
	}
	return r.cause.Context
}

// Request notes a request from when it was written to its answer, if anybody wants to see each.
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

// Retry notes that an attempt has failed and another follows after a pause.
func (r *Record) Retry(err error, pause time.Duration) {
	if r == nil {
		return
	}
	now := time.Now()
	r.mu.Lock()
	if r.ended { // its caller has given up meanwhile
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

// GivenUp notes that the retry policy does not allow another attempt.
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
		r.t.add(r.cause.Context, r.metrics.retries, 1, by.get(ErrorType(err)))
	}
}

// levelRetry is that of records of single retries: after a lost connection there is one for each operation.
const levelRetry = slog.LevelDebug

func (r *Record) logRetry(err error, pause time.Duration) {
	l := r.t.cfg.Logger
	if l == nil || !l.Enabled(r.cause.Context, levelRetry) {
		return
	}
	attributes := append(LogAttrs(r.cause.Context), slog.String("operation", r.what.Name))
	if path := r.t.formatted(r.what.Path); path != "" {
		attributes = append(attributes, slog.String("path", path))
	}
	attributes = append(attributes, slog.Any("error", err), slog.Duration("pause", pause))
	l.LogAttrs(r.cause.Context, levelRetry, "retry", attributes...)
}

// End reports what was recorded of an operation that has ended at a time. A second End does nothing: a result may be
// waited for twice. It is not called on the goroutine that reads the connection, because what takes the spans may
// block.
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

// close ends the recording, so that the result is reported without mu: a provider may block. It reports whether it is
// the first call.
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
		r.t.background.Add(-1)
	}
	if f.Unsent {
		return
	}
	ended := r.op.succeeded
	if f.Err != nil {
		ended = r.op.durations.get(endOf(f.Err, r.isHandled(f.Err)))
	}
	r.t.record(r.cause.Context, in.operationDuration, at.Sub(r.start).Seconds(), ended)
	if r.background {
		r.t.record(r.cause.Context, in.queueDuration, r.queueTime(at, f).Seconds(), r.op.queued)
	}
}

// queueTime is how long a background operation waited to be sent: to the end if it never was.
func (r *Record) queueTime(end time.Time, f *Facts) time.Duration {
	if f.Sent.IsZero() {
		return end.Sub(r.start)
	}
	return max(f.Sent.Sub(r.start), 0)
}

func (r *Record) endSpan(at time.Time, f *Facts) {
	defer r.t.caught(inTracing)
	r.span.SetAttributes(r.attributes(at, f)...)
	for i, try := range r.tries {
		event(r.span, "curator.retry", try.at, retryAttempt.Int(i+1),
			errorType.String(ErrorType(try.err)), retryDelay.Float64(try.pause.Seconds()))
	}
	r.eventWaits(f.Waits)
	for _, change := range r.t.history.Load().since(r.start, at) {
		event(r.span, "curator.connection.state", change.at, connectionState.String(change.state))
	}
	r.endRequests(f.Err)
	if f.Err != nil && !f.Unsent && !r.isHandled(f.Err) {
		r.span.SetStatus(codes.Error, description(f.Err))
	}
	r.span.End(trace.WithTimestamp(at))
}

func (r *Record) attributes(end time.Time, f *Facts) []attribute.KeyValue {
	a := r.t.withPath(make([]attribute.KeyValue, 0, 6), r.what.Path)
	if r.what.Mode != "" {
		a = append(a, createMode.String(r.what.Mode))
	}
	if r.what.Batch >= 2 {
		a = append(a, batchSize.Int(r.what.Batch))
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
	if f.Server != r.t.cfg.Server { // which is an attribute since the start
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
		return append(a, outcomeKey.String(notSent))
	}
	return append(a, endAttributes(endOf(f.Err, r.isHandled(f.Err)))...)
}

// minQueueTime is the shortest time in the queue that a span shows.
const minQueueTime = time.Millisecond

// appendPeer adds the server that answered.
func appendPeer(attributes []attribute.KeyValue, server string) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return attributes
	}
	attributes = append(attributes, peerAddress.String(host))
	if n, err := strconv.Atoi(port); err == nil {
		attributes = append(attributes, peerPort.Int(n))
	}
	return attributes
}

// endRequests makes a span of each request of an operation with this result.
func (r *Record) endRequests(result error) {
	for _, q := range r.requests {
		name, start := r.t.spans(r.t.opMetricsOf(q.name, r.what.Namespace), q.name, r.what.Namespace)
		_, span := r.t.startSpan(r.cause.Context, name, append(slices.Clip(start), trace.WithTimestamp(q.start))...)
		if span == nil {
			continue
		}
		if q.err != nil {
			handled := isState(q.err) && (ErrorType(q.err) != ErrorType(result) || r.expected)
			span.SetAttributes(endAttributes(endOf(q.err, handled))...)
			if !handled {
				span.SetStatus(codes.Error, description(q.err))
			}
		}
		span.End(trace.WithTimestamp(q.end))
	}
}

// event adds an event to a span: the one place that does.
func event(span trace.Span, name string, at time.Time, attributes ...attribute.KeyValue) {
	span.AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(attributes...))
}
