package queue_test

import (
	"context"
	"iter"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// An exemplar leads from a high age in the metrics to the trace of such an item.
func TestItemAgeHasTheTraceOfTheItem(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		span string
		take func(r *relay)
	}{
		"consumed": {"process orders", func(r *relay) {
			r.put("a")
			r.consumer(func(context.Context, string) error { return nil })
		}},
		"pulled": {"receive orders", func(r *relay) {
			r.put("a")
			q := start(r.t, built(builder(r.t, r.takes, nil).LockPath(lockPath).Name("orders").BuildQueue()))
			next, stop := iter.Pull2(q.Items(testenv.Context(r.t)))
			defer stop()
			item, err, _ := next()
			must(r.t, err)
			must(r.t, item.Done(testenv.Context(r.t)))
		}},
		"of a simple queue": {"receive orders", func(r *relay) {
			q := queue.NewSimpleDistributedQueue(r.takes, queuePath, queue.WithName("orders"))
			must(r.t, q.Offer(r.ctx, []byte("a")))
			_, err := q.Take(testenv.Context(r.t))
			must(r.t, err)
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t)
			tt.take(r)
			want := r.awaitSpans(tt.span, 1)[0].SpanContext().TraceID()
			var got []trace.TraceID
			testenv.Eventually(t, func() bool {
				got = r.Exemplars(t, "curator.queue.item.age")
				return len(got) > 0 || len(r.Values(t, "curator.queue.item.age")) > 0
			}, "an age")
			if len(got) != 1 || got[0] != want {
				t.Errorf("exemplars of the traces %v, want %v", got, want)
			}
		})
	}
}
