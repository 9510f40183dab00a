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
	Unsent       bool // nothing was sent, and the caller begins again: Err is no failure
	RequestSize  int  // bytes
	ResponseSize int
	Children     int      // how many were listed; -1 if none were
	Watch        bool     // a watch was set
	Stat         *zk.Stat // nil if there is none
	Session      int64
	Server       string // host and port
	Waits        []ConnectionWait
}

// Record is the telemetry of one operation, from its beginning to its end. All methods of a nil one do nothing.
type Record struct {
	t          *Telemetry
	op         *opMetrics
	what       Operation
	background bool
	expected   bool // the caller handles answers about nodes: see [Telemetry.ExpectingErrors]
	ctx        context.Context
	cause      caused     // the context of a background operation with a span
	span       trace.Span // nil if it is not recorded
	metrics    *instruments
	start      time.Time

	mu       sync.Mutex // of what the goroutine that reads the connection notes
	attempt  time.Time  // when the last began
	sent     time.Time  // when the first request was written
	tries    []try
	retries  int
	requests []request
	end      time.Time
	facts    Facts
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

// Begin begins the record of an operation that began at a time. For a foreground operation it is called while the
// request is under way, so that telemetry adds nothing to the wait.
func (t *Telemetry) Begin(ctx context.Context, what Operation, background bool, at time.Time) *Record {
	if !t.On() {
		return nil
	}
	how := opContextOf(ctx)
	r := &Record{
		t: t, op: t.opMetricsOf(what.Name, what.Namespace), what: what, background: background, expected: how.expected,
		metrics: t.meter(), start: at, attempt: at, facts: Facts{Children: -1},
	}
	if t.tracer() != nil && how.traces(ctx) {
		ctx, r.span = how.start(ctx, r)
	}
	r.ctx = ctx
	if background && r.metrics != nil {
		t.background.Add(1)
	}
	if how.ending != nil && !background { // which may begin on a goroutine that must not block
		how.ending()
	}
	return r
}

// Context returns the context of what the operation causes.
func (r *Record) Context() context.Context { return r.ctx }

// Sent notes when the first request of a background operation was written.
func (r *Record) Sent(at time.Time) {
	if r == nil || !r.background {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent.IsZero() && !r.ended {
		r.sent = at
	}
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
		r.t.add(r.ctx, r.metrics.retries, 1, by.get(ErrorType(err)))
	}
}

// levelRetry is that of records of single retries: after a lost connection there is one for each operation.
const levelRetry = slog.LevelDebug

func (r *Record) logRetry(err error, pause time.Duration) {
	l := r.t.cfg.Logger
	if l == nil || !l.Enabled(r.ctx, levelRetry) {
		return
	}
	attributes := append(LogAttrs(r.ctx), slog.String("operation", r.what.Name))
	if path := r.t.formatted(r.what.Path); path != "" {
		attributes = append(attributes, slog.String("path", path))
	}
	l.LogAttrs(r.ctx, levelRetry, "retry", append(attributes, slog.Any("error", err), slog.Duration("pause", pause))...)
}

// End reports what was recorded of an operation that has ended at a time. A second End does nothing: a result may be
// waited for twice. It is not called on the goroutine that reads the connection, because what takes the spans may
// block.
func (r *Record) End(at time.Time, f Facts) {
	if r == nil || !r.close(at, f) {
		return
	}
	err := r.facts.Err
	r.measure(err)
	if !f.Unsent && (err == nil || r.background || r.t.cfg.DriverFailures) {
		began := r.start
		if r.background {
			began = r.attempt
		}
		r.t.driver.operation(r, r.facts, err, max(r.end.Sub(began), 0))
	}
	if r.span != nil {
		r.endSpan(err)
	}
}

// close ends the recording, so that the result is reported without mu: a provider may block. It reports whether it is
// the first call.
func (r *Record) close(at time.Time, f Facts) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.ended, r.end, r.facts = true, at, f
	return true
}

// isHandled reports whether err is an answer that the caller handles.
func (r *Record) isHandled(err error) bool { return r.expected && isState(err) }

func (r *Record) measure(err error) {
	m := r.metrics
	if m == nil {
		return
	}
	if r.background {
		r.t.background.Add(-1)
	}
	if r.facts.Unsent {
		return
	}
	ended := r.op.durations.get(endOf(err, r.isHandled(err)))
	r.t.record(r.ctx, m.operationDuration, r.end.Sub(r.start).Seconds(), ended)
	if !r.background {
		return
	}
	r.t.record(r.ctx, m.queueDuration, r.queueTime().Seconds(), r.op.queued)
}

// queueTime is how long a background operation waited to be sent: to the end if it never was.
func (r *Record) queueTime() time.Duration {
	if r.sent.IsZero() {
		return r.end.Sub(r.start)
	}
	return max(r.sent.Sub(r.start), 0)
}

func (r *Record) endSpan(err error) {
	defer r.t.caught(inTracing)
	r.span.SetAttributes(r.attributes(err)...)
	for i, try := range r.tries {
		event(r.span, "curator.retry", try.at, retryAttempt.Int(i+1),
			errorType.String(ErrorType(try.err)), retryDelay.Float64(try.pause.Seconds()))
	}
	r.eventWaits()
	for _, change := range r.t.history.Load().since(r.start, r.end) {
		event(r.span, "curator.connection.state", change.at, connectionState.String(change.state))
	}
	r.endRequests()
	if err != nil && !r.facts.Unsent && !r.isHandled(err) {
		r.span.SetStatus(codes.Error, description(err))
	}
	r.span.End(trace.WithTimestamp(r.end))
}

func (r *Record) attributes(err error) []attribute.KeyValue {
	f := &r.facts
	a := r.t.withPath(make([]attribute.KeyValue, 0, 16), r.what.Path)
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
	if host, port, err := net.SplitHostPort(f.Server); err == nil {
		a = append(a, peerAddress.String(host))
		if n, err := strconv.Atoi(port); err == nil {
			a = append(a, peerPort.Int(n))
		}
	}
	if r.background {
		a = append(a, background.Bool(true))
		if d := r.queueTime(); d > 0 {
			a = append(a, queueTime.Float64(d.Seconds()))
		}
	}
	if r.retries > 0 {
		a = append(a, retryCount.Int(r.retries))
	}
	if f.Unsent {
		return append(a, outcomeKey.String(notSent))
	}
	return append(a, endAttributes(endOf(err, r.isHandled(err)))...)
}

// endRequests makes a span of each request.
func (r *Record) endRequests() {
	for _, q := range r.requests {
		k := r.t.opMetricsOf(q.name, r.what.Namespace)
		name, start := r.t.spans(k, q.name, r.what.Namespace)
		_, span := r.t.startSpan(r.ctx, name, append(slices.Clip(start), trace.WithTimestamp(q.start))...)
		if span == nil {
			continue
		}
		if q.err != nil {
			handled := isState(q.err) && (ErrorType(q.err) != ErrorType(r.facts.Err) || r.expected)
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
