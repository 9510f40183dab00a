package telemetry

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Queue records what a queue does. Its instruments are made at the first use while telemetry is on.
type Queue struct {
	t                  *Telemetry
	recipe, name, path string
	made               atomic.Pointer[messages]
}

// messages are the things that are done with messages.
type messages struct {
	send, receive, process, settle *messaging
	s                              *series
}

// NewQueue returns the telemetry of a queue. name is the name that the user gives it, or "".
func (t *Telemetry) NewQueue(recipe, name, path string) Queue {
	return Queue{t: t, recipe: recipe, name: name, path: path}
}

// messages returns the instruments of q. It is called while telemetry is on.
func (q *Queue) messages() *messages {
	if m := q.made.Load(); m != nil {
		return m
	}
	s := q.t.seriesOf(q.recipe, q.name)
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

// messagingBase returns the attributes that an operation has on spans and metrics. Its name is that of its type.
func (t *Telemetry) messagingBase(name string) []attribute.KeyValue {
	return slices.Concat(t.client, t.server, []attribute.KeyValue{
		messagingSystem.String(system), messagingName.String(name), messagingType.String(name),
	})
}

// messaging is one of the things that are done with messages.
type messaging struct {
	q        *Queue
	name     string
	span     string
	inner    bool // in the span of what it is a part of
	start    []trace.SpanStartOption
	measured *measurements // by error type
}

func (q *Queue) messaging(name string, kind trace.SpanKind, measured *measurements) *messaging {
	attributes := q.t.withPath(append(q.t.messagingBase(name), recipeKey.String(q.recipe)), q.path)
	span, to := name, q.t.formatted(q.path)
	if q.name != "" {
		span, to = name+" "+q.name, q.name
	}
	if to != "" {
		attributes = append(attributes, destination.String(to))
	}
	return &messaging{
		q: q, name: name, span: span, measured: measured,
		start: []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(attributes...)},
	}
}

// Message is something that is done with messages, from its beginning to its end. A nil one takes everything and does
// nothing.
type Message struct {
	of    *messaging
	ctx   context.Context
	span  trace.Span // nil if it is not recorded
	begun time.Time
	count int

	isBatched bool

	once sync.Once
}

func (m *messaging) begin(
	ctx context.Context, count int, options ...trace.SpanStartOption,
) (context.Context, *Message) {
	x := &Message{of: m, begun: time.Now(), count: count}
	if !(m.inner && isDropped(ctx)) {
		ctx, x.span = m.q.t.startSpan(ctx, m.span, append(slices.Clip(m.start), options...)...)
	}
	if x.span != nil && count > 1 {
		x.span.SetAttributes(messageCount.Int(count))
	}
	x.ctx = ctx
	return ctx, x
}

func (q *Queue) on() bool { return q.t.On() }

// Send begins a put of that many items. Its context is the one to put into the node.
func (q *Queue) Send(ctx context.Context, count int) (context.Context, *Message) {
	if !q.on() {
		return ctx, nil
	}
	return q.messages().send.begin(ctx, count)
}

// Process begins the work on an item that was put in the context origin, or nil if that is not known. ctx bounds the
// work.
func (q *Queue) Process(ctx context.Context, origin *Origin) (context.Context, *Message) {
	ctx = q.In(ctx, origin)
	if !q.on() {
		return ctx, nil
	}
	put := origin.spanContext()
	goesOn := put.IsValid() && !q.t.cfg.DetachedConsumers
	var options []trace.SpanStartOption
	if put.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: put}))
	}
	if !goesOn && trace.SpanContextFromContext(ctx).IsValid() {
		options = append(options, trace.WithNewRoot())
	}
	return q.messages().process.begin(ctx, 1, options...)
}

// Settle begins the removal of an item after its processing; ctx is that of the processing.
func (q *Queue) Settle(ctx context.Context) (context.Context, *Message) {
	if !q.on() {
		return ctx, nil
	}
	return q.messages().settle.begin(ctx, 1)
}

// Received records that items were handed over which were asked for at a time. It returns the context of that.
func (q *Queue) Received(ctx context.Context, asked time.Time, count int, origin *Origin) context.Context {
	if !q.on() || count == 0 {
		return ctx
	}
	ctx, x := q.messages().receive.begin(ctx, count, trace.WithTimestamp(asked),
		trace.WithLinks(appendLink(nil, origin.spanContext())...))
	x.begun = asked
	x.End("", nil)
	return ctx
}

// Clock returns the time, if anybody wants to know how long something takes.
func (q *Queue) Clock() (now time.Time) {
	if q.on() {
		now = time.Now()
	}
	return now
}

// HandedOver counts items, created at a time, that a consumer gets in the span of ctx.
func (q *Queue) HandedOver(ctx context.Context, created time.Time, count int) {
	m := q.t.meter()
	if m == nil {
		return
	}
	q.t.add(ctx, m.consumedMessages, count, q.messages().receive.measured.get(""))
	q.t.record(ctx, m.itemAge, max(time.Since(created).Seconds(), 0), q.messages().s.age)
}

// PutBack counts a node that was put back.
func (q *Queue) PutBack(ctx context.Context) {
	if m := q.t.meter(); m != nil {
		q.t.add(ctx, m.requeues, 1, q.messages().s.age)
	}
}

// DeadLettered counts a node that was moved to the dead letters.
func (q *Queue) DeadLettered(ctx context.Context) {
	if m := q.t.meter(); m != nil {
		q.t.add(ctx, m.deadLetters, 1, q.messages().s.age)
	}
}

// ClaimLost counts an item that another has [Taken], or whose lock was [Lost].
func (q *Queue) ClaimLost(ctx context.Context, outcome string) {
	if m := q.t.meter(); m != nil {
		q.t.add(ctx, m.lostClaims, 1, q.messages().s.claims.get(outcome))
	}
}

// End records the result. id is the name of the node.
func (x *Message) End(id string, err error) { x.end(id, err, "") }

// Batched records, the first time, that the wait of the message is over: it goes with others, so many in all.
func (x *Message) Batched(n int) {
	if x == nil || x.span == nil || x.isBatched {
		return
	}
	x.isBatched = true
	defer x.of.q.t.caught(inTracing)
	event(x.span, "curator.put.batched", time.Now(), batchSize.Int(n))
}

// Requeues records that the item was put back n times before.
func (x *Message) Requeues(n int) {
	if x != nil && x.span != nil && n > 0 {
		x.span.SetAttributes(requeues.Int(n))
	}
}

// Requeued records that the item was put back after err.
func (x *Message) Requeued(id string, err error) { x.end(id, err, "requeued") }

// Refused records that the message was not sent. The end of a wait by an orderly Close is no error.
func (x *Message) Refused(err error) {
	outcome := ""
	if ErrorType(err) == errorClosed {
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
		name = ErrorType(err)
	}
	if m := q.t.meter(); m != nil {
		seconds, attributes := time.Since(x.begun).Seconds(), x.of.measured.get(name)
		switch x.of.name {
		case "process":
			q.t.record(x.ctx, m.processDuration, seconds, attributes)
		case "send":
			q.t.add(x.ctx, m.sentMessages, x.count, attributes)
			fallthrough
		default:
			q.t.record(x.ctx, m.messagingDuration, seconds, attributes)
		}
	}
	q.t.endSpan(x.span, func() {
		if id != "" {
			x.span.SetAttributes(messageID.String(id))
		}
		if outcome != "" {
			x.span.SetAttributes(outcomeKey.String(outcome))
		}
		if err != nil && outcome != EndedClosed {
			x.span.SetAttributes(errorType.String(name))
			x.span.SetStatus(codes.Error, "")
		}
	})
}
