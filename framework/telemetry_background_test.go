package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/retry"
)

// The request may be over when the answer comes: neither its end nor that of its span takes anything from the callback.
func TestTelemetryCallbackContinuesEndedTrace(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	o := observe.New(t)
	client := connectClient(t, connect, observed(o)...)
	held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldReply})
	type key struct{}
	ctx, request := o.Start(context.WithValue(testenv.Context(t), key{}, "value"), "request")
	ctx, cancel := context.WithCancel(ctx)
	called := make(chan context.Context, 1)
	err := client.GetData().InBackground(func(ctx context.Context, ev callbacks.Event) {
		_, work := o.Start(ctx, "work")
		work.End()
		called <- ctx
	}).ForPath(ctx, "/")
	if err != nil {
		t.Fatal(err)
	}
	must(t, held.Wait(testenv.Context(t)))
	cancel()
	request.End()
	held.Release()
	in := receive(t, called)
	if in.Err() != nil || in.Value(key{}) != "value" {
		t.Errorf("the context of the callback has %v and %v", in.Err(), in.Value(key{}))
	}
	wantTree(t, o, `
request
  getData CLIENT
    work
`)
	if got := trace.SpanContextFromContext(in).TraceID(); got != request.SpanContext().TraceID() {
		t.Errorf("trace %v, want %v", got, request.SpanContext().TraceID())
	}
	// What the callback does is no part of the operation.
	if span, work := o.Named("getData")[0], o.Named("work")[0]; work.StartTime().Before(span.EndTime()) {
		t.Errorf("the operation ends at %v, behind the beginning of the callback, %v", span.EndTime(), work.StartTime())
	}
}

// The beginning of the operation and the time of its request are by two clocks, which were set one after the other. On
// a busy machine they differ: only in a bubble of testing/synctest do they agree.
func TestTelemetryQueueTimeIncludesWaitForConnection(t *testing.T) {
	t.Parallel()
	const lasts, answer = 20 * time.Millisecond, 70 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		delay := curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.DelayReply, Delay: answer}
		must(t, server.Faults().Add(delay).Err())
		o := observe.New(t)
		client, recorded := connectRecorded(t, server.ConnectString(),
			observed(o, framework.WithDialer(server.DialContext))...)
		done := newEvents()
		must(t, client.Sync().InBackground(done.callback).ForPath(t.Context(), "/"))
		must(t, receive(t, done).Err)
		restore := outage(server)
		recorded.want(t, suspended)
		before := time.Now()
		must(t, client.GetData().InBackground(done.callback).ForPath(t.Context(), "/"))
		time.Sleep(lasts)
		restore()
		must(t, receive(t, done).Err)
		all := time.Since(before)
		span := o.Named("getData")[0]
		got := observe.Attribute(span, "curator.background.queue_time").AsFloat64()
		if want := all - answer; want < lasts || got != want.Seconds() {
			t.Errorf("queued for %v s, want %v", got, want)
		}
		if got := span.EndTime().Sub(span.StartTime()); got != all {
			t.Errorf("the operation takes %v, want %v", got, all)
		}
		wantValues(t, o, "curator.background.queue.duration",
			"db.operation.name=getData 1\ndb.operation.name=sync 1\n")
	})
}

// The server answers the handshake at a known time.
func TestTelemetryQueueTimeEndsWithFirstRequest(t *testing.T) {
	t.Parallel()
	const early, wait, answer = 30 * time.Millisecond, 200 * time.Millisecond, 70 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		for op, delay := range map[string]time.Duration{"connect": early + wait, "getData": answer} {
			must(t, server.Faults().Add(curatortest.Rule{Ops: []string{op}, Action: curatortest.DelayReply, Delay: delay}).Err())
		}
		o := observe.New(t)
		client := startClient(t, server.ConnectString(), observed(o, framework.WithDialer(server.DialContext))...)
		time.Sleep(early)
		done := newEvents()
		must(t, client.GetData().InBackground(done.callback).ForPath(t.Context(), "/"))
		must(t, receive(t, done).Err)
		span := o.Named("getData")[0]
		if got := observe.Attribute(span, "curator.background.queue_time").AsFloat64(); got != wait.Seconds() {
			t.Errorf("queued for %v s, want %v", got, wait)
		}
		if got := span.EndTime().Sub(span.StartTime()); got != wait+answer {
			t.Errorf("the operation takes %v, want %v", got, wait+answer)
		}
	})
}

func TestTelemetryQueueSizeReturnsToZero(t *testing.T) {
	t.Parallel()
	const size = "curator.background.queue.size"
	proxy, connect := newProxy(t)
	o := observe.New(t)
	client := newClient(t, connect, observed(o, framework.WithRetryPolicy(retry.OneTime(time.Millisecond)))...)
	recorded := record(client)
	start(t, client)
	recorded.want(t, connected)
	ctx := testenv.Context(t)
	done := newEvents()
	held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldReply})
	for range 3 {
		must(t, client.GetData().InBackground(done.callback).ForPath(ctx, "/"))
	}
	must(t, held.Wait(ctx))
	wantValues(t, o, size, " 3\n")
	held.Remove()
	for range 3 {
		must(t, receive(t, done).Err)
	}
	wantValues(t, o, size, " 0\n")

	restore := outage(proxy)
	t.Cleanup(restore)
	recorded.want(t, suspended)
	for range 3 {
		must(t, client.Sync().InBackground(done.callback).ForPath(ctx, "/"))
	}
	wantValues(t, o, size, " 3\n")
	closeClient(t, client)
	for range 3 {
		wantErr(t, "sync", receive(t, done).Err, framework.ErrClosed)
	}
	wantErr(t, "submit", client.Sync().InBackground(done.callback).ForPath(ctx, "/"), framework.ErrClosed)
	wantValues(t, o, size, "") // a closed client has no gauges
	for _, span := range o.Named("sync") {
		if got := observe.Attribute(span, "error.type").AsString(); got != "CLOSED" {
			t.Errorf("error %q", got)
		}
	}
	if n := len(o.Named("sync")); n != 4 {
		t.Errorf("%d spans of 4 operations", n)
	}
}
