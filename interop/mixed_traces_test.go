package interop_test

import (
	"bytes"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/queue"
)

// tracedMeeting is a meeting of Java and a Go client that propagates the trace context in its items.
type tracedMeeting struct {
	*meeting
	*observe.Observer
	ours golang
	java *peer
}

func meetTraced(t *testing.T) *tracedMeeting {
	t.Helper()
	t.Parallel()
	testenv.RequireReal(t)
	m := &tracedMeeting{meeting: meet(t, 0), Observer: observe.New(t)}
	connect := testenv.Addr(t) + m.root
	m.java = startJava(t)
	m.java.start("", connect)
	m.ours = golang{startGo(t, connect, framework.WithTracerProvider(m.Tracers), framework.WithMeterProvider(m.Meters),
		framework.WithPropagator(propagation.TraceContext{}))}
	if err := m.ours.BlockUntilConnected(m.ctx); err != nil {
		t.Fatal(err)
	}
	m.sides = []side{m.ours, m.java}
	return m
}

// trailerMark precedes the trace context, behind the bytes that Java reads.
var trailerMark = []byte("\x02\x00CTC\x01{\"traceparent\":")

// processed waits until so many items have been worked on by Go.
func (m *tracedMeeting) processed(n int) []sdktrace.ReadOnlySpan {
	m.t.Helper()
	testenv.Eventually(m.t, func() bool { return len(m.Named("process")) >= n }, "the items are worked on")
	return m.Named("process")
}

// TestJavaConsumesWhatGoHasPutWithItsTrace has each kind of queue, with items that are empty or put together.
func TestJavaConsumesWhatGoHasPutWithItsTrace(t *testing.T) {
	m := meetTraced(t)
	for _, kind := range queueKinds {
		for _, locked := range []bool{false, true} {
			at := newSpot(locked)
			m.put(m.openQueue(m.ours, queueUse{kind: kind, at: at}),
				put{Items: []string{"a"}, ItemID: "1", EpochMs: 1}, put{Items: []string{"b", "", "c"}, ItemID: "2", EpochMs: 2})
			for _, n := range m.nodes(at.items) {
				if !bytes.Contains(n.data, trailerMark) {
					t.Errorf("%s: %s holds no trace: %q", kind.theirs, n.path, n.data)
				}
			}
			taker := m.openQueue(m.java, queueUse{kind: kind, at: at, consumes: true})
			for i, want := range []string{"a", "b", "", "c"} {
				if got := m.reports(taker, "item", 1)[0]; got != want {
					t.Errorf("%s: item %d is %q, not %q", kind.theirs, i, got, want)
				}
			}
			m.awaitConsumed(at)
		}
	}
}

// TestTraceOfAPutOutlivesARequeueByJava has Java refuse an item, and put it back, before Go consumes it.
func TestTraceOfAPutOutlivesARequeueByJava(t *testing.T) {
	m := meetTraced(t)
	at := newSpot(true)
	ctx, request := m.Start(m.ctx, "request")
	end := m.openQueue(m.ours, queueUse{kind: plainQueue, at: at}).(*ourEnd)
	if err := end.put(ctx, put{Items: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	request.End()
	before := m.nodes(at.items)
	theirs := m.java.newObject("queue", "queueStart", interop.Args{
		"path": at.items, "lockPath": at.locks, "consume": true, "failures": 1_000_000, "errorMode": "REQUEUE",
	})
	m.reports(theirEnd{theirs}, "refused", 3)
	theirs.do("Close", nil, nil)
	m.expire(m.java) // Close may leave the lock of what it interrupts
	var after []node
	testenv.Eventually(t, func() bool { // what it was at is put back in the background
		after = m.nodes(at.items)
		return len(after) == 1 && len(m.nodes(at.locks)) == 0
	}, "it is put back")
	if len(before) != 1 || before[0].path == after[0].path || !bytes.Equal(before[0].data, after[0].data) {
		t.Errorf("before it was put back %+v, after %+v", before, after)
	}
	taker := m.openQueue(m.ours, queueUse{kind: plainQueue, at: at, consumes: true})
	m.reports(taker, "item", 1)
	process := m.processed(1)[0]
	send := m.Named("send")[0]
	if process.SpanContext().TraceID() != request.SpanContext().TraceID() {
		t.Errorf("the work is in another trace than the put:\n%s", m.Tree())
	}
	if links := process.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != send.SpanContext().SpanID() {
		t.Errorf("the work is linked to %v", links)
	}
	m.awaitConsumed(at)
}

// TestWorkOnWhatJavaHasPutIsATraceOfItsOwn checks that work on an item of Java has no link.
func TestWorkOnWhatJavaHasPutIsATraceOfItsOwn(t *testing.T) {
	m := meetTraced(t)
	for _, kind := range queueKinds {
		at := newSpot(true)
		m.put(m.openQueue(m.java, queueUse{kind: kind, at: at}), put{Items: []string{"a"}, ItemID: "1", EpochMs: 1})
		m.reports(m.openQueue(m.ours, queueUse{kind: kind, at: at, consumes: true}), "item", 1)
		m.awaitConsumed(at)
	}
	for _, process := range m.processed(len(queueKinds)) {
		if process.Parent().IsValid() || len(process.Links()) != 0 {
			t.Errorf("the work is caused by %v and %v", process.Parent(), process.Links())
		}
	}
}

// TestJavaTakesElementsThatATracedGoHasOffered has a queue of bytes, to which nothing is added.
func TestJavaTakesElementsThatATracedGoHasOffered(t *testing.T) {
	m := meetTraced(t)
	at := newSpot(false)
	ctx, request := m.Start(m.ctx, "request")
	defer request.End()
	theirs := m.java.newObject("simpleQueue", "simpleQueueNew", interop.Args{"path": at.items})
	for _, want := range []string{"a", "", "\x00CTC\x01"} {
		if err := queue.NewSimpleDistributedQueue(m.ours.Client, at.items).Offer(ctx, []byte(want)); err != nil {
			t.Fatal(err)
		}
		var got interop.Bytes
		theirs.do("Take", interop.Args{"timeoutMs": 10_000}, &got)
		if string(got) != want {
			t.Errorf("Java takes %q, not %q", got, want)
		}
	}
}
