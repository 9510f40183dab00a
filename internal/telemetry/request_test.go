package telemetry_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// The protocol of an operation handles answers to its requests, such as a missing parent.
func TestRequestWithHandledAnswerIsNoError(t *testing.T) {
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
