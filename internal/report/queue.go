package report

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/usercode"
)

const requeues = attribute.Key("curator.queue.requeues")

// messagingBuckets are the buckets of the conventions for messaging.
var messagingBuckets = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

type queueInstruments struct {
	sentMessages      instrument.Counter
	consumedMessages  instrument.Counter
	operationDuration instrument.Histogram
	processDuration   instrument.Histogram
	itemAge           instrument.Histogram
	requeues          instrument.Counter
	deadLetters       instrument.Counter
	lostClaims        instrument.Counter
}

var queueKit = instrument.NewKit(func(d *instrument.Declarer) *queueInstruments {
	declareDepths(d)
	return &queueInstruments{
		sentMessages:     d.Counter("messaging.client.sent.messages", "{message}", "Items that were put."),
		consumedMessages: d.Counter("messaging.client.consumed.messages", "{message}", "Items that were handed over."),
		operationDuration: d.Histogram("messaging.client.operation.duration", "Duration of puts, receives and settlements.",
			messagingBuckets),
		processDuration: d.Histogram("messaging.process.duration", "Duration of the consumer's work on an item.",
			messagingBuckets),
		itemAge: d.Histogram("curator.queue.item.age",
			"Time from the first put of an item, by the server's clock, to its handing over, by ours.", ageBuckets),
		requeues:    d.Counter("curator.queue.requeues", "{message}", "Nodes that were put back."),
		deadLetters: d.Counter("curator.queue.dead_letters", "{message}", "Nodes that were moved to the dead letters."),
		lostClaims: d.Counter("curator.queue.claims.lost", "{claim}",
			"Items that another consumer took first, or whose lock was lost while they were consumed."),
	}
})

// Queue records what a queue does. Its series are made at the first use while telemetry is on.
type Queue struct {
	t                  *telemetry.Telemetry
	recipe, name, path string
	made               atomic.Pointer[messages]
}

// messages are the operations of a queue, and its series.
type messages struct {
	send, receive, process, settle *messaging
	s                              *queueSeries
}

// NewQueue returns the report of a queue. name is the name that the user gives it, or "".
func NewQueue(t *telemetry.Telemetry, recipe, name, path string) Queue {
	return Queue{t: t, recipe: recipe, name: name, path: path}
}

func (q *Queue) on() bool                       { return q.t.On() }
func (q *Queue) instruments() *queueInstruments { return queueKit.Of(q.t.Scope()) }

// messages returns the series of q. It is called while telemetry is on.
func (q *Queue) messages() *messages {
	if m := q.made.Load(); m != nil {
		return m
	}
	s := queueSeriesOf(q.t, q.name)
	m := &messages{
		send:    q.messaging("send", trace.SpanKindProducer, s.send),
		receive: q.messaging("receive", trace.SpanKindClient, s.receive),
		process: q.messaging("process", trace.SpanKindConsumer, s.process),
		settle:  q.messaging("settle", trace.SpanKindClient, s.settle),
		s:       s,
	}
	m.settle.inner = true
	q.made.Store(m)
	return m
}

// messagingBase returns the attributes of an operation of a queue on spans and metrics. Its name is also its type.
func messagingBase(t *telemetry.Telemetry, name string) []attribute.KeyValue {
	return append(t.Endpoint(), instrument.MessagingSystem.String(telemetry.System),
		instrument.MessagingName.String(name), instrument.MessagingType.String(name))
}

// messaging is an operation of a queue: "send", "receive", "process" or "settle".
type messaging struct {
	q        *Queue
	name     string
	spanName string
	inner    bool                     // it has no span if the span of its context was dropped
	start    []trace.SpanStartOption  // options of the spans
	measured *instrument.Sets[string] // attributes of measurements, by error type
}

func (q *Queue) messaging(name string, kind trace.SpanKind, measured *instrument.Sets[string]) *messaging {
	attributes := q.t.WithPath(append(messagingBase(q.t, name), recipeKey.String(q.recipe)), q.path)
	span, to := name, q.t.FormatPath(q.path)
	if q.name != "" {
		span, to = name+" "+q.name, q.name
	}
	if to != "" {
		attributes = append(attributes, instrument.Destination.String(to))
	}
	return &messaging{
		q: q, name: name, spanName: span, measured: measured,
		start: []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(attributes...)},
	}
}

// Message is one operation of a queue, from its beginning to its end: a put, the consumer's work on an item, its
// removal or its receipt. All methods of a nil Message do nothing.
type Message struct {
	of    *messaging
	ctx   context.Context
	span  trace.Span // nil if it is not recorded
	begun time.Time
	count int // number of items

	isBatched bool // Batched was called

	once sync.Once // only the first end is recorded
}

func (m *messaging) begin(
	ctx context.Context, count int, options ...trace.SpanStartOption,
) (context.Context, *Message) {
	x := &Message{of: m, begun: time.Now(), count: count}
	if !(m.inner && instrument.IsDropped(ctx)) {
		ctx, x.span = m.q.t.Scope().StartSpan(ctx, m.spanName, append(slices.Clip(m.start), options...)...)
	}
	if x.span != nil && count > 1 {
		x.span.SetAttributes(instrument.MessageCount.Int(count))
	}
	x.ctx = ctx
	return ctx, x
}

// Started begins the counters of the queue with 0, so that a rate over them includes the first item.
func (q *Queue) Started(ctx context.Context) {
	in := q.instruments()
	if in == nil {
		return
	}
	m := q.messages()
	in.sentMessages.Add(ctx, 0, m.s.send.Get(""))
	in.consumedMessages.Add(ctx, 0, m.s.receive.Get(""))
	in.requeues.Add(ctx, 0, m.s.age)
	in.deadLetters.Add(ctx, 0, m.s.age)
	for _, outcome := range []string{Taken, Lost} {
		in.lostClaims.Add(ctx, 0, m.s.claims.Get(outcome))
	}
}

// Send begins a put of count items. It returns the context for the node of the items.
func (q *Queue) Send(ctx context.Context, count int) (context.Context, *Message) {
	if !q.on() {
		return ctx, nil
	}
	return q.messages().send.begin(ctx, count)
}

// Process begins the consumer's work on an item. origin is the trace context of the put. ctx bounds the work.
func (q *Queue) Process(ctx context.Context, origin *Origin) (context.Context, *Message) {
	ctx = q.In(ctx, origin)
	if !q.on() {
		return ctx, nil
	}
	put := origin.spanContext()
	continues := put.IsValid() && !q.t.Config().DetachedConsumers
	var options []trace.SpanStartOption
	if put.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: put}))
	}
	if !continues && trace.SpanContextFromContext(ctx).IsValid() {
		options = append(options, trace.WithNewRoot())
	}
	return q.messages().process.begin(ctx, 1, options...)
}

// Settle begins the removal of a consumed item; ctx is the context of the work.
func (q *Queue) Settle(ctx context.Context) (context.Context, *Message) {
	if !q.on() {
		return ctx, nil
	}
	return q.messages().settle.begin(ctx, 1)
}

// Received records the receipt of count items that the program has requested at a time. It returns the context of the
// receipt.
func (q *Queue) Received(ctx context.Context, asked time.Time, count int, origin *Origin) context.Context {
	if !q.on() || count == 0 {
		return ctx
	}
	ctx, x := q.messages().receive.begin(ctx, count, trace.WithTimestamp(asked),
		trace.WithLinks(instrument.AppendLink(nil, origin.spanContext())...))
	x.begun = asked
	x.End("", nil)
	return ctx
}

// Clock returns the current time, or zero if telemetry is off.
func (q *Queue) Clock() (now time.Time) {
	if q.on() {
		now = time.Now()
	}
	return now
}

// HandedOver counts items, created at a time, that a consumer gets. ctx has the span of the work.
func (q *Queue) HandedOver(ctx context.Context, created time.Time, count int) {
	in := q.instruments()
	if in == nil {
		return
	}
	in.consumedMessages.Add(ctx, count, q.messages().receive.measured.Get(""))
	in.itemAge.Record(ctx, max(time.Since(created).Seconds(), 0), q.messages().s.age)
}

// PutBack counts a node that was put back.
func (q *Queue) PutBack(ctx context.Context) {
	if in := q.instruments(); in != nil {
		in.requeues.Add(ctx, 1, q.messages().s.age)
	}
}

// DeadLettered counts a node that was moved to the dead letters.
func (q *Queue) DeadLettered(ctx context.Context) {
	if in := q.instruments(); in != nil {
		in.deadLetters.Add(ctx, 1, q.messages().s.age)
	}
}

// ClaimLost counts an item that another consumer has [Taken], or whose lock was [Lost].
func (q *Queue) ClaimLost(ctx context.Context, outcome string) {
	if in := q.instruments(); in != nil {
		in.lostClaims.Add(ctx, 1, q.messages().s.claims.Get(outcome))
	}
}

// End records the result. id is the name of the node, or "".
func (x *Message) End(id string, err error) { x.end(id, err, "") }

// Batched records that the put goes to the server in a batch of n puts. Only the first call has an effect.
func (x *Message) Batched(n int) {
	if x == nil || x.span == nil || x.isBatched {
		return
	}
	x.isBatched = true
	defer usercode.Report(instrument.InTracing, x.of.q.t.Config().Panicked)
	instrument.Event(x.span, "curator.put.batched", time.Now(), instrument.BatchSize.Int(n))
}

// Requeues records the number of times that the item was put back before.
func (x *Message) Requeues(n int) {
	if x != nil && x.span != nil && n > 0 {
		x.span.SetAttributes(requeues.Int(n))
	}
}

// Requeued records that the item was put back after err.
func (x *Message) Requeued(id string, err error) { x.end(id, err, "requeued") }

// Refused records that the put was not sent. A put that an orderly Close ends is no error.
func (x *Message) Refused(err error) {
	outcome := ""
	if telemetry.ErrorType(err) == telemetry.Closed {
		outcome = EndedClosed
	}
	x.end("", err, outcome)
}

func (x *Message) end(id string, err error, outcome string) {
	if x == nil {
		return
	}
	x.once.Do(func() { x.record(id, err, outcome) })
}

func (x *Message) record(id string, err error, outcome string) {
	q := x.of.q
	name := ""
	if err != nil {
		name = telemetry.ErrorType(err)
	}
	if in := q.instruments(); in != nil {
		seconds, attributes := time.Since(x.begun).Seconds(), x.of.measured.Get(name)
		switch x.of.name {
		case "process":
			in.processDuration.Record(x.ctx, seconds, attributes)
		case "send":
			in.sentMessages.Add(x.ctx, x.count, attributes)
			fallthrough
		default:
			in.operationDuration.Record(x.ctx, seconds, attributes)
		}
	}
	q.t.Scope().EndSpan(x.span, func() {
		if id != "" {
			x.span.SetAttributes(instrument.MessageID.String(id))
		}
		if outcome != "" {
			x.span.SetAttributes(telemetry.OutcomeKey.String(outcome))
		}
		if err != nil && outcome != EndedClosed {
			x.span.SetAttributes(instrument.ErrorType.String(name))
			x.span.SetStatus(codes.Error, "")
		}
	})
}
