package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// TestAgeOfAnItemIsThatOfItsFirstPut has two consumers fail, one after the other.
func TestAgeOfAnItemIsThatOfItsFirstPut(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, o := testenv.Context(t), observe.New(t)
		client := clientAt(t, place, chroot, framework.WithMeterProvider(o.Meters), framework.WithTracerProvider(o.Tracers))
		consume := func(failures int) {
			t.Helper()
			calls, last := 0, make(chan struct{})
			b := builder(t, client, func(context.Context, string) error {
				if calls++; calls == failures {
					close(last)
				}
				if calls > failures {
					return nil
				}
				return errors.New("broken")
			}).LockPath(lockPath).Name("orders").OnError(func(context.Context, error) {})
			q := built(b.BuildQueue())
			must(t, q.Start())
			if failures > 0 {
				select {
				case <-last:
				case <-ctx.Done():
					t.Fatal("the consumer is not called")
				}
			} else {
				awaitEmpty(t, client)
			}
			must(t, q.Close())
		}
		q := start(t, built(builder(t, client, nil).LockPath(lockPath).BuildQueue()))
		must(t, q.Put(ctx, "a"))
		must(t, q.FlushPuts(ctx))
		consume(3)
		consume(3)
		consume(0)
		ages := o.Metrics(t)["curator.queue.item.age"].Data.(metricdata.Histogram[float64]).DataPoints
		if oldest, _ := ages[0].Max.Value(); len(ages) != 1 || oldest < .06 {
			t.Errorf("the oldest item is %v s old", oldest)
		}
		var requeues []int64
		for _, span := range o.Named("process orders") {
			requeues = append(requeues, observe.Attribute(span, "curator.queue.requeues").AsInt64())
		}
		if diff := cmp.Diff([]int64{0, 1, 2, 3, 4, 5, 6}, requeues); diff != "" {
			t.Errorf("requeues (-want +got):\n%s", diff)
		}
	})
}

// TestAgeOfAnItemThatIsPutBackGoesOn looks at it in the queue.
func TestAgeOfAnItemThatIsPutBackGoesOn(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{"with locks": lockPath, "without locks": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, o := testenv.Context(t), observe.New(t)
				client := clientAt(t, place, chroot, framework.WithMeterProvider(o.Meters))
				q := start(t, built(builder(t, client, nil).LockPath(lock).Name("orders").MeasureDepth().BuildQueue()))
				must(t, q.Put(ctx, "a"))
				must(t, q.FlushPuts(ctx))
				for range 2 {
					<-time.After(1200 * time.Millisecond)
					for item, err := range q.Items(ctx) {
						must(t, err)
						must(t, item.Requeue(ctx))
						break
					}
				}
				wantDepth(t, o, "messaging.destination.name=orders 1\n", "messaging.destination.name=orders 2\n")
			})
		})
	}
}

// TestAgeOfAnItemThatIsNotWantedGoesOn has it pulled, and not yielded: without locks it is put into the queue again.
func TestAgeOfAnItemThatIsNotWantedGoesOn(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, o := testenv.Context(t), observe.New(t)
		client := clientAt(t, place, chroot, framework.WithMeterProvider(o.Meters))
		q := start(t, built(builder(t, client, nil).Name("orders").MeasureDepth().BuildQueue()))
		must(t, q.PutMulti(ctx, "a", "b"))
		must(t, q.FlushPuts(ctx))
		<-time.After(2500 * time.Millisecond)
		for item, err := range q.Items(ctx) {
			must(t, err)
			must(t, item.Done(ctx))
			break // b goes back
		}
		testenv.Eventually(t, func() bool {
			return o.Values(t, "curator.queue.requeues") == "messaging.destination.name=orders 1\n"
		}, "the requeue")
		wantDepth(t, o, "messaging.destination.name=orders 1\n", "messaging.destination.name=orders 2\n")
	})
}
