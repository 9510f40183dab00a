package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// The instruments of a recipe are made when a provider listens.
func TestRecipesCostNothingWhileNobodyListens(t *testing.T) {
	for name, tel := range off() {
		t.Run(name, func(t *testing.T) {
			var lock telemetry.Lock
			var election telemetry.Election
			var barrier telemetry.Barrier
			var queue telemetry.Queue
			allocations := testing.AllocsPerRun(100, func() {
				lock = tel.NewLock("mutex", "orders", "/lock")
				election = tel.NewElection("leader_latch", "orders", "", "/leader")
				barrier = tel.NewBarrier("barrier", "orders", "/barrier")
				queue = tel.NewQueue("queue", "orders", "/queue")
			})
			if allocations != 0 {
				t.Errorf("%v allocations", allocations)
			}
			_, w := lock.Acquire(t.Context())
			lock.Hold(w).End(telemetry.Released)
			_, w = election.Elect(t.Context())
			w.End(telemetry.Elected, nil)
			_, w = barrier.Wait(t.Context(), "wait", 0)
			w.End(telemetry.Passed, nil)
			_, x := queue.Send(t.Context(), 1)
			x.End("", nil)
		})
	}
}

// Names are the program's, which may make them up: metrics have the first hundred, spans all.
func TestNamesHaveABoundInMetricsAlone(t *testing.T) {
	const names = 130
	o := observe.New(t)
	tel := newTelemetry(o)
	for i := range names {
		name := fmt.Sprintf("name%d", i)
		run(t.Context(), tel, telemetry.Operation{Name: "create", Namespace: name}, false, nil)
		lock := tel.NewLock("mutex", name, "/lock")
		_, w := lock.Acquire(t.Context())
		w.End(telemetry.Acquired, nil)
		queue := tel.NewQueue("queue", name, "/queue")
		_, x := queue.Send(t.Context(), 1)
		x.End("", nil)
	}
	for _, metric := range []string{
		"db.client.operation.duration", "curator.lock.acquire.duration", "messaging.client.sent.messages",
	} {
		if got := len(observe.Points(o.Metrics(t)[metric])); got != 101 {
			t.Errorf("%s has %d series", metric, got)
		}
	}
	last := fmt.Sprintf("name%d", names-1)
	if got := observe.Attribute(o.Named("create " + last)[0], "db.namespace").AsString(); got != last {
		t.Errorf("the span is of namespace %q", got)
	}
	locks := o.Named("lock acquire")
	if got := observe.Attribute(locks[len(locks)-1], "curator.resource.name").AsString(); got != last {
		t.Errorf("the span is of lock %q", got)
	}
	if got := len(o.Named("send " + last)); got != 1 {
		t.Errorf("%d spans of the last queue", got)
	}
}

// An orderly end is no error.
func TestWaitThatAClosedClientEndsIsClosed(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	lock := tel.NewLock("mutex", "", "/lock")
	_, w := lock.Acquire(t.Context())
	err := fmt.Errorf("acquire: %w", telemetry.Closed("client is closed"))
	w.End(telemetry.Outcome(err, telemetry.Acquired), err)
	span := o.Spans()[0]
	if got := observe.Attribute(span, "curator.outcome").AsString(); got != "closed" || span.Status().Code != codes.Unset {
		t.Errorf("outcome %q, status %v", got, span.Status())
	}
	_, w = lock.Acquire(t.Context())
	w.End(telemetry.Failed, errors.New("no"))
	if got := o.Spans()[1].Status(); got.Code != codes.Error || got.Description != "" {
		t.Errorf("status %v", got)
	}
}

// What an operation handles is no error of its requests.
func TestRequestWhoseAnswerTheOperationHandlesIsNoError(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o, func(c *telemetry.Config) { c.RequestSpans = true })
	r := begin(t.Context(), tel, telemetry.Operation{Name: "create"}, false)
	now := time.Now()
	r.Request("create2", now, now, zk.ErrNoNode)
	r.Request("sync", now, now, zk.ErrBadVersion)
	r.End(time.Now(), telemetry.Facts{Err: zk.ErrBadVersion, Children: -1})
	for name, want := range map[string]codes.Code{"create2": codes.Unset, "sync": codes.Error} {
		if got := o.Named(name)[0].Status().Code; got != want {
			t.Errorf("%s: status %v, want %v", name, got, want)
		}
	}
}

func TestSpanOfAWatcherThatPanicsIsAnError(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	func() {
		defer func() {
			if p := recover(); p != "no" {
				t.Errorf("panic %v", p)
			}
		}()
		event := zk.Event{Type: zk.EventNodeCreated}
		tel.Watched(t.Context(), event, trace.SpanContext{}, func(context.Context) { panic("no") })
	}()
	if got := o.Tree(); !strings.HasPrefix(got, "watch node_created error=panic") {
		t.Errorf("spans %s", got)
	}
}

func TestEveryMetricHasTheNameOfTheClient(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o, func(c *telemetry.Config) { c.Name = "reader" })
	defer tel.Observe(func() telemetry.Load { return telemetry.Load{} })()
	measureAll(t.Context(), tel)
	for name, m := range o.Metrics(t) {
		for _, p := range observe.Points(m) {
			if v, _ := p.Attributes.Value("curator.client.name"); v.AsString() != "reader" {
				t.Errorf("%s is of client %q", name, v.AsString())
			}
		}
	}
	for _, s := range o.Named("create orders") {
		if got := observe.Attribute(s, "curator.client.name").AsString(); got != "reader" {
			t.Errorf("the span is of client %q", got)
		}
	}
}
