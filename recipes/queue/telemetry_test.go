package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/queue"
)

// relay is a queue with one client that puts and another that consumes, both observed as if one looked at the traces of
// two processes.
type relay struct {
	*observe.Observer
	t       *testing.T
	ctx     context.Context
	direct  string
	proxy   *curatortest.Proxy // before the producer, and a consumer in another process
	puts    *framework.Client
	takes   *framework.Client
	request trace.Span // the cause of what is put
}

// newRelay returns a relay whose clients have these options. The spans of its connections are not counted.
func newRelay(t *testing.T, opts ...framework.Option) *relay {
	t.Helper()
	r := &relay{Observer: observe.New(t), t: t}
	chroot := testenv.Chroot(t)
	r.direct = testenv.Addr(t) + chroot
	proxy, connect := newProxy(t, chroot)
	r.proxy = proxy
	opts = append([]framework.Option{
		framework.WithSessionTimeout(30 * time.Second), // which outlasts what a busy machine does
		framework.WithTracerProvider(r.Tracers), framework.WithMeterProvider(r.Meters),
	}, opts...)
	r.puts, r.takes = newClient(t, connect, opts...), newClient(t, r.direct, opts...)
	for _, client := range []*framework.Client{r.puts, r.takes} {
		must(t, client.BlockUntilConnected(testenv.Context(t)))
	}
	r.awaitSpans("curator.connect", 2)
	r.ctx, r.request = r.Start(testenv.Context(t), "request")
	t.Cleanup(func() { r.request.End() })
	return r
}

// propagated has the trace context travel with the items.
var propagated = framework.WithPropagator(propagation.TraceContext{})

// awaitSpans waits until so many spans of a name have ended, and returns them.
func (r *relay) awaitSpans(name string, n int) []sdktrace.ReadOnlySpan {
	r.t.Helper()
	testenv.Eventually(r.t, func() bool { return len(r.Named(name)) >= n }, fmt.Sprintf("%d times %s", n, name))
	return r.Named(name)
}

// wantTree ends the request, waits for as many spans as there are lines, and compares them.
func (r *relay) wantTree(want string, keys ...attribute.Key) {
	r.t.Helper()
	r.request.End()
	want = strings.TrimLeft(want, "\n")
	ours := func() string { return strings.ReplaceAll(r.Tree(keys...), "curator.connect\n", "") }
	defer func() {
		if diff := cmp.Diff(want, ours()); diff != "" {
			r.t.Errorf("spans (-want +got):\n%s", diff)
		}
	}()
	testenv.Eventually(r.t, func() bool { return strings.Count(ours(), "\n") >= strings.Count(want, "\n") }, "all spans")
}

// wantValues compares the series of a metric.
func (r *relay) wantValues(name, want string) {
	r.t.Helper()
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), r.values(name)); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// values prints the series of a metric without the server, which has another port in each test, and without what all
// of them have.
func (r *relay) values(name string) string {
	r.t.Helper()
	return common.ReplaceAllString(r.Values(r.t, name), "")
}

var common = regexp.MustCompile(`,(server\.\w+|messaging\.system|messaging\.operation\.type)=[^, ]*`)

// wantOneTrace fails the test if a span that is not of a connection is of another trace than the request.
func (r *relay) wantOneTrace() {
	r.t.Helper()
	r.request.End()
	for _, span := range r.Spans() {
		own := strings.HasPrefix(span.Name(), "curator.conn")
		if !own && span.SpanContext().TraceID() != r.request.SpanContext().TraceID() {
			r.t.Errorf("%s is of another trace:\n%s", span.Name(), r.Tree())
		}
	}
}

// producer returns a started queue that puts, with locks.
func (r *relay) producer() *queue.DistributedQueue[string] {
	r.t.Helper()
	return start(r.t, built(builder(r.t, r.puts, nil).LockPath(lockPath).Name("orders").BuildQueue()))
}

// consumer starts a queue that consumes, with locks.
func (r *relay) consumer(consume queue.Consumer[string]) {
	r.t.Helper()
	b := builder(r.t, r.takes, consume).LockPath(lockPath).Name("orders")
	start(r.t, built(b.OnError(func(context.Context, error) {}).BuildQueue()))
}

// chain is a consumer that goes on in the background: it creates a node, in the callback of that it sets its data, and
// in the callback of that it reads them.
type chain struct {
	client *framework.Client
	ended  chan context.Context // of the last callback
}

func newChain(client *framework.Client) *chain { return &chain{client, make(chan context.Context, 10)} }

func (c *chain) consume(ctx context.Context, item string) error {
	path := "/work-" + item
	return c.client.Create().InBackground(func(ctx context.Context, _ callbacks.Event) {
		_ = c.client.SetData().InBackground(func(ctx context.Context, _ callbacks.Event) {
			_ = c.client.GetData().InBackground(func(ctx context.Context, _ callbacks.Event) {
				c.ended <- ctx
			}).ForPath(ctx, path)
		}).ForPath(ctx, path, nil)
	}).ForPath(ctx, path, nil)
}

// await waits for the last callback, and returns the trace that it is in.
func (c *chain) await(tb testing.TB) trace.TraceID {
	tb.Helper()
	select {
	case ctx := <-c.ended:
		return trace.SpanContextFromContext(ctx).TraceID()
	case <-testenv.Context(tb).Done():
		tb.Fatal("the last callback is not called")
		return trace.TraceID{}
	}
}

func (r *relay) put(items ...string) {
	r.t.Helper()
	q := r.producer()
	for _, item := range items {
		must(r.t, q.Put(r.ctx, item))
		must(r.t, q.FlushPuts(r.ctx))
	}
}

func TestTraceOfAPutGoesOnToTheLastCallbackOfItsConsumer(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	r.put("a")
	c := newChain(r.takes)
	r.consumer(c.consume)
	if got := c.await(t); got != r.request.SpanContext().TraceID() {
		t.Errorf("the last callback is in the trace %v", got)
	}
	r.wantTree(`
request
  send orders PRODUCER
    create CLIENT
    process orders CONSUMER -> send orders
      create CLIENT
        setData CLIENT
          getData CLIENT
      settle orders CLIENT
        multi delete CLIENT
`)
	r.wantOneTrace()
}

func TestTraceOfAPutGoesOnAfterARequeue(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	r.put("a")
	c := newChain(r.takes)
	var once sync.Once
	r.consumer(func(ctx context.Context, item string) (err error) {
		once.Do(func() { err = errors.New("not now") })
		if err != nil {
			return err
		}
		return c.consume(ctx, item)
	})
	c.await(t)
	r.wantTree(`
request
  send orders PRODUCER
    create CLIENT
    process orders CONSUMER curator.outcome=requeued error=_OTHER -> send orders
      settle orders CLIENT
        multi CLIENT
    process orders CONSUMER -> send orders
      create CLIENT
        setData CLIENT
          getData CLIENT
      settle orders CLIENT
        multi delete CLIENT
`, "curator.outcome")
	r.wantOneTrace()
}

// TestTraceOfAPutGoesOnAfterTheLossOfTheConsumersSession has the session end while the item is worked on: it is given
// to the consumer again.
func TestTraceOfAPutGoesOnAfterTheLossOfTheConsumersSession(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	r.put("a")
	c := newChain(r.takes)
	var once sync.Once
	r.consumer(func(ctx context.Context, item string) error {
		lost := false
		once.Do(func() {
			lost = true
			must(t, testenv.Server(t).ExpireSession(r.takes.SessionID()))
			<-ctx.Done()
		})
		if lost {
			return context.Cause(ctx)
		}
		return c.consume(ctx, item)
	})
	if got := c.await(t); got != r.request.SpanContext().TraceID() {
		t.Errorf("the last callback is in the trace %v", got)
	}
	r.awaitSpans("getData", 1)
	if n := len(r.awaitSpans("process orders", 2)); n != 2 {
		t.Errorf("processed %d times", n)
	}
	r.awaitSpans("settle orders", 2)
	r.wantOneTrace()
}

func TestTriesOfACreateAreChildrenOfItsSend(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	q := r.producer()
	must(t, q.Put(r.ctx, "first")) // which creates the queue
	must(t, q.FlushPuts(r.ctx))
	cut := r.proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"create2", "create"}, Count: 2,
		Action: curatortest.CutBefore,
	})
	must(t, q.Put(r.ctx, "a"))
	must(t, q.FlushPuts(r.ctx))
	if cut.Hits() != 2 {
		t.Errorf("%d creates were cut off: %v", cut.Hits(), cut.Err())
	}
	c := newChain(r.takes)
	r.consumer(c.consume)
	if got := c.await(t); got != r.request.SpanContext().TraceID() {
		t.Errorf("the last callback is in the trace %v", got)
	}
	c.await(t)
	r.awaitSpans("settle orders", 2)
	r.awaitSpans("getData", 2)
	r.wantOneTrace()
	send := r.Named("send orders")[1]
	var tries []string
	for _, create := range r.Named("create") {
		unsent := observe.Attribute(create, "curator.outcome").AsString() == "not_sent" // on a connection that is lost
		if create.Parent().SpanID() == send.SpanContext().SpanID() && !unsent {
			tries = append(tries, observe.Attribute(create, "error.type").AsString())
		}
	}
	if diff := cmp.Diff([]string{"CONNECTIONLOSS", "CONNECTIONLOSS", ""}, tries); diff != "" {
		t.Errorf("tries (-want +got):\n%s\n%s", diff, r.Tree())
	}
	if send.Status().Code != codes.Unset {
		t.Errorf("the send has the status %v", send.Status())
	}
}

func TestConsumerWithoutParentBeginsATraceLinkedToThePut(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated, framework.WithoutConsumerParent())
	r.put("a")
	c := newChain(r.takes)
	r.consumer(c.consume)
	if got := c.await(t); got == r.request.SpanContext().TraceID() {
		t.Error("the last callback is in the trace of the put")
	}
	r.wantTree(`
request
  send orders PRODUCER
    create CLIENT
process orders CONSUMER -> send orders
  create CLIENT
    setData CLIENT
      getData CLIENT
  settle orders CLIENT
    multi delete CLIENT
`)
}

// nodes returns what the nodes of the queue hold.
func (r *relay) nodes() (all [][]byte) {
	r.t.Helper()
	_, chroot, _ := strings.Cut(r.direct, "/")
	raw := testenv.Raw(r.t)
	for _, name := range children(r.t, r.direct, queuePath) {
		data, _, err := raw.Get("/" + chroot + queuePath + "/" + name)
		must(r.t, err)
		all = append(all, data)
	}
	return all
}

// javaHello is the node in which Java puts "hello".
const javaHello = "\x00\x01\x00\x01" + "\x01" + "\x00\x00\x00\x05hello" + "\x02"

func TestWithoutPropagatorNodesAreThoseOfJavaAndTracesEnd(t *testing.T) {
	t.Parallel()
	r := newRelay(t)
	r.put("hello")
	if nodes := r.nodes(); len(nodes) != 1 || string(nodes[0]) != javaHello {
		t.Errorf("nodes %x", nodes)
	}
	c := newChain(r.takes)
	r.consumer(c.consume)
	c.await(t)
	r.wantTree(`
request
  send orders PRODUCER
    create CLIENT
process orders CONSUMER
  create CLIENT
    setData CLIENT
      getData CLIENT
  settle orders CLIENT
    multi delete CLIENT
`)
}

func TestTrailerFollowsWhatJavaReads(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	r.put("hello")
	nodes := r.nodes()
	if len(nodes) != 1 {
		t.Fatalf("nodes %x", nodes)
	}
	rest, found := bytes.CutPrefix(nodes[0], []byte(javaHello+"\x00CTC\x01"))
	want := r.awaitSpans("send orders", 1)[0].SpanContext()
	traceparent := fmt.Sprintf(`{"traceparent":"00-%s-%s-01"}`, want.TraceID(), want.SpanID())
	if !found || string(rest) != traceparent {
		t.Errorf("the node holds %q, and not %s at the end", nodes[0], traceparent)
	}
}

// TestTrailerOfSomebodyElseIsKeptOnARequeue has a byte in front of what would be a trailer of ours.
func TestTrailerOfSomebodyElseIsKeptOnARequeue(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	want := javaHello + "x\x00CTC\x01" + `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`
	create := r.puts.Create().CreatingParentsIfNeeded().WithMode(builders.PersistentSequential)
	if _, err := create.ForPath(testenv.Context(t), queuePath+"/queue-", []byte(want)); err != nil {
		t.Fatal(err)
	}
	nodes := make(chan string, 2)
	r.consumer(func(ctx context.Context, item string) error {
		data, err := r.puts.GetData().ForPath(testenv.Context(t), queue.InfoOf(ctx).Path)
		nodes <- string(data)
		if len(nodes) == 1 {
			err = errors.New("not now")
		}
		return err
	})
	for _, process := range r.awaitSpans("process orders", 2) {
		if process.Parent().IsValid() || len(process.Links()) != 0 {
			t.Errorf("the work is caused by %v and %v", process.Parent(), process.Links())
		}
	}
	for len(nodes) > 0 {
		if got := <-nodes; got != want {
			t.Errorf("the node holds %q", got)
		}
	}
}

// TestPutThatNobodyTracesIsAsJavas has a propagator, and nothing to propagate.
func TestPutThatNobodyTracesIsAsJavas(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	client := newClient(t, connect, propagated)
	q := start(t, built(builder(t, client, nil).BuildQueue()))
	must(t, q.Put(testenv.Context(t), "hello"))
	must(t, q.FlushPuts(testenv.Context(t)))
	r := &relay{t: t, direct: connect}
	if nodes := r.nodes(); len(nodes) != 1 || string(nodes[0]) != javaHello {
		t.Errorf("nodes %x", nodes)
	}
}

func TestPriorityDelayAndIDKeepTheTraceAlsoOfARequeue(t *testing.T) {
	t.Parallel()
	type putter interface {
		life
		FlushPuts(ctx context.Context) error
	}
	tests := map[string]struct {
		build func(queue.Builder[string]) (putter, error)
		put   func(ctx context.Context, q putter) error
	}{
		"priority_queue": {
			func(b queue.Builder[string]) (putter, error) { return b.BuildPriorityQueue(0) },
			func(ctx context.Context, q putter) error {
				return q.(*queue.DistributedPriorityQueue[string]).Put(ctx, "a", -7)
			},
		},
		"delay_queue": {
			func(b queue.Builder[string]) (putter, error) { return b.BuildDelayQueue() },
			func(ctx context.Context, q putter) error {
				return q.(*queue.DistributedDelayQueue[string]).Put(ctx, "a", time.UnixMilli(1))
			},
		},
		"id_queue": {
			func(b queue.Builder[string]) (putter, error) { return b.BuildIDQueue() },
			func(ctx context.Context, q putter) error {
				return q.(*queue.DistributedIDQueue[string]).Put(ctx, "a", "id")
			},
		},
	}
	for recipe, tt := range tests {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t, propagated)
			producer := start(t, built(tt.build(builder(t, r.puts, nil).LockPath(lockPath))))
			must(t, tt.put(r.ctx, producer))
			must(t, producer.FlushPuts(r.ctx))
			var once sync.Once
			infos := make(chan queue.Info, 2)
			start(t, built(tt.build(builder(t, r.takes, func(ctx context.Context, _ string) (err error) {
				info := queue.InfoOf(ctx)
				infos <- info
				once.Do(func() { err = errors.New("not now") })
				return err
			}).LockPath(lockPath).OnError(func(context.Context, error) {}))))
			r.wantTree(fmt.Sprintf(`
request
  send PRODUCER curator.recipe=%[1]s
    create CLIENT
    process CONSUMER curator.recipe=%[1]s error=_OTHER -> send
      settle CLIENT curator.recipe=%[1]s
        multi CLIENT
    process CONSUMER curator.recipe=%[1]s -> send
      settle CLIENT curator.recipe=%[1]s
        multi delete CLIENT
`, recipe), "curator.recipe")
			first, again := <-infos, <-infos
			first.Path, again.Path = "", ""
			first.Put, again.Put = time.Time{}, time.Time{}
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("put back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestItemsThatArePutTogetherAreOneSendAndAProcessEach(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	must(t, r.producer().PutMulti(r.ctx, "a", "b", "c"))
	r.consumer(func(context.Context, string) error { return nil })
	const count = "messaging.batch.message_count"
	r.wantTree(`
request
  send orders PRODUCER messaging.batch.message_count=3
    create CLIENT
    process orders CONSUMER -> send orders
    process orders CONSUMER -> send orders
    process orders CONSUMER -> send orders
      settle orders CLIENT
        multi delete CLIENT
`, count)
	r.wantValues("messaging.client.sent.messages", `
messaging.destination.name=orders,messaging.operation.name=send 3
`)
	r.wantValues("messaging.client.consumed.messages", `
messaging.destination.name=orders,messaging.operation.name=receive 3
`)
}

// TestTransactionOfSeveralPutsIsLinkedToAllOfThem has the first put wait for its queue, and more come meanwhile.
func TestTransactionOfSeveralPutsIsLinkedToAllOfThem(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	held := r.proxy.Faults().Add(curatortest.Rule{Count: 1, Action: curatortest.HoldRequest})
	q := r.producer()
	must(t, q.Put(r.ctx, "a"))
	must(t, held.Wait(r.ctx))
	for _, item := range []string{"b", "c", "d"} {
		must(t, q.Put(r.ctx, item))
	}
	released := time.Now()
	held.Release()
	must(t, q.FlushPuts(r.ctx))
	r.wantTree(`
request
  send orders PRODUCER
    create CLIENT
  send orders PRODUCER
  send orders PRODUCER
  send orders PRODUCER
multi create CLIENT db.operation.batch.size=3 -> send orders -> send orders -> send orders
`, "db.operation.batch.size")
	if single := r.Named("send orders")[0]; len(single.Events()) != 0 {
		t.Errorf("the put that goes alone has the events %v", single.Events())
	}
	multi := r.Named("multi create")[0]
	for i, send := range r.Named("send orders")[1:] {
		if multi.Links()[i].SpanContext.SpanID() != send.SpanContext().SpanID() {
			t.Errorf("link %d is not that of put %d", i, i)
		}
		if diff := cmp.Diff([]string{"db.operation.batch.size=3"}, observe.Events(send, "curator.put.batched")); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
			continue
		}
		waited := send.Events()[0].Time
		if waited.Before(released) || waited.After(multi.EndTime()) {
			t.Errorf("waits until %v, want between %v and %v", waited, released, multi.EndTime())
		}
	}
}

func TestConsumerWithoutLocksSettlesNothing(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	q := start(t, built(builder(t, r.puts, nil).BuildQueue()))
	must(t, q.Put(r.ctx, "a"))
	consumer := start(t, built(builder(t, r.takes, func(context.Context, string) error { return nil }).BuildQueue()))
	r.awaitSpans("process", 1)
	must(t, consumer.Close()) // all that it does is done
	r.wantTree(`
request
  send PRODUCER
    create CLIENT
    process CONSUMER -> send
`)
}

func TestErrorOfTheConsumerIsTheStatusOfItsSpan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mode    queue.ErrorMode
		consume queue.Consumer[string]
		outcome string
	}{
		"deleted":  {queue.DeleteOnError, func(context.Context, string) error { return errors.New("/secret") }, ""},
		"panic":    {queue.DeleteOnError, func(context.Context, string) error { panic("/secret") }, ""},
		"put back": {queue.RequeueOnError, func(context.Context, string) error { return errors.New("/secret") }, "requeued"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t, propagated)
			r.put("a")
			var tries atomic.Int64
			b := builder(t, r.takes, func(ctx context.Context, item string) (err error) {
				if tries.Add(1) == 1 {
					return tt.consume(ctx, item)
				}
				return nil
			})
			b = b.LockPath(lockPath).ErrorMode(tt.mode).OnError(func(context.Context, error) {})
			start(t, built(b.BuildQueue()))
			span := r.awaitSpans("process", 1)[0]
			if got := observe.Attribute(span, "curator.outcome").AsString(); got != tt.outcome {
				t.Errorf("outcome %q", got)
			}
			if got := observe.Attribute(span, "error.type").AsString(); got != "_OTHER" || span.Status().Code != codes.Error {
				t.Errorf("error type %q, status %v", got, span.Status())
			}
			if strings.Contains(span.Status().Description, "secret") {
				t.Errorf("the status reports %q", span.Status().Description)
			}
			awaitNothing(t, r.direct)
		})
	}
}

func TestErrorOfAPutIsTheStatusOfItsSend(t *testing.T) {
	t.Parallel()
	r := newRelay(t)
	q := built(builder(t, r.puts, nil).Name("orders").BuildQueue())
	if err := q.Put(r.ctx, "a"); !errors.Is(err, queue.ErrNotStarted) {
		t.Fatalf("got %v", err)
	}
	span := r.awaitSpans("send orders", 1)[0]
	if got := observe.Attribute(span, "error.type").AsString(); got != "_OTHER" || span.Status().Code != codes.Error {
		t.Errorf("error type %q, status %v", got, span.Status())
	}
	r.wantValues("messaging.client.sent.messages", `
error.type=_OTHER,messaging.destination.name=orders,messaging.operation.name=send 1
`)
}

// TestPutThatWaitsWhenTheQueueIsClosedIsNoError has the second put wait for room.
func TestPutThatWaitsWhenTheQueueIsClosedIsNoError(t *testing.T) {
	t.Parallel()
	r := newRelay(t)
	q := built(builder(t, r.puts, nil).Name("orders").MaxItems(1).BuildQueue())
	must(t, q.Start())
	must(t, q.Put(r.ctx, "a"))
	must(t, q.FlushPuts(r.ctx))
	failed := make(chan error, 1)
	go func() { failed <- q.Put(r.ctx, "b") }()
	must(t, q.Close())
	if err := <-failed; !errors.Is(err, queue.ErrClosed) {
		t.Errorf("got %v", err)
	}
	span := r.awaitSpans("send orders", 2)[1]
	if got := observe.Attribute(span, "curator.outcome").AsString(); got != "closed" || span.Status().Code != codes.Unset {
		t.Errorf("outcome %q, status %v", got, span.Status())
	}
	r.wantValues("messaging.client.sent.messages", `
error.type=CLOSED,messaging.destination.name=orders,messaging.operation.name=send 1
messaging.destination.name=orders,messaging.operation.name=send 1
`)
}

func TestWorkOnAPulledItemIsInTheTraceOfItsPut(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	r.put("a")
	asking, asker := r.Start(testenv.Context(t), "asker")
	q := start(t, built(builder(t, r.takes, nil).LockPath(lockPath).Name("orders").BuildQueue()))
	next, stop := iter.Pull2(q.Items(asking))
	defer stop()
	item, err, _ := next()
	must(t, err)
	if _, err := r.takes.CheckExists().ForPath(item.Context(), "/work"); err != nil {
		t.Error(err)
	}
	must(t, item.Done(item.Context()))
	asker.End()
	r.wantTree(`
request
  send orders PRODUCER
    create CLIENT
    exists CLIENT
    settle orders CLIENT
      multi delete CLIENT
asker
  receive orders CLIENT -> send orders
`)
}

func TestPullingWithoutParentIsNotInTheTraceOfThePut(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated, framework.WithoutConsumerParent())
	r.put("a")
	q := start(t, built(builder(t, r.takes, nil).LockPath(lockPath).BuildQueue()))
	next, stop := iter.Pull2(q.Items(testenv.Context(t)))
	defer stop()
	item, err, _ := next()
	must(t, err)
	if sc := trace.SpanContextFromContext(item.Context()); sc.IsValid() {
		t.Errorf("the work is in the trace %v", sc.TraceID())
	}
	must(t, item.Done(item.Context()))
}

// TestItemsThatAreNotWantedGoBackInTheTraceOfTheirPut stops pulling at the first of two items.
func TestItemsThatAreNotWantedGoBackInTheTraceOfTheirPut(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	must(t, r.producer().PutMulti(r.ctx, "a", "b"))
	q := start(t, built(builder(t, r.takes, nil).LockPath(lockPath).Name("orders").BuildQueue()))
	for item, err := range q.Items(r.ctx) {
		must(t, err)
		must(t, item.Done(item.Context()))
		break
	}
	r.wantTree(`
request
  send orders PRODUCER
    create CLIENT
    settle orders CLIENT
      multi CLIENT
  receive orders CLIENT -> send orders
`)
}

// TestTraceContextTravelsWhereTheLibraryHasNoSpans has it travel with items between spans that are the user's own.
func TestTraceContextTravelsWhereTheLibraryHasNoSpans(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		parent framework.Option
		on     bool
	}{
		"with a consumer's parent": {framework.WithConsumerParent(), true},
		"without":                  {framework.WithoutConsumerParent(), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t)
			quiet := newClient(t, r.direct, framework.WithTracerProvider(nooptrace.NewTracerProvider()),
				framework.WithMeterProvider(noopmetric.NewMeterProvider()), test.parent,
				framework.WithPropagator(propagation.NewCompositeTextMapPropagator(
					propagation.TraceContext{}, propagation.Baggage{})))
			member, err := baggage.NewMember("customer", "7")
			must(t, err)
			carried, err := baggage.New(member)
			must(t, err)
			works := make(chan context.Context, 1)
			q := start(t, built(builder(t, quiet, func(ctx context.Context, _ string) error {
				works <- ctx
				return nil
			}).BuildQueue()))
			must(t, q.Put(baggage.ContextWithBaggage(r.ctx, carried), "a"))
			work := <-works
			in := trace.SpanContextFromContext(work)
			if is := in.SpanID() == r.request.SpanContext().SpanID(); is != test.on {
				t.Errorf("the work is in the span %v", in.SpanID())
			}
			if got := baggage.FromContext(work).String(); got != "customer=7" {
				t.Errorf("the baggage is %q", got)
			}
		})
	}
}

func TestPullingThatGetsNothingHasNoSpan(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	q := start(t, built(builder(t, r.takes, nil).LockPath(lockPath).BuildQueue()))
	simple := queue.NewSimpleDistributedQueue(r.takes, "/simple")
	if data, err := simple.PollFor(ctx, 20*time.Millisecond); data != nil || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	for _, err := range q.Items(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	r.wantTree("request\n")
}

func TestElementsOfASimpleQueueAreSentAndReceivedAsTheyAre(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	offers := queue.NewSimpleDistributedQueue(r.puts, queuePath, queue.WithName("orders"))
	must(t, offers.Offer(r.ctx, nil))
	data, err := offers.Poll(testenv.Context(t)) // so that the queue is there, and empty
	if err != nil || len(data) != 0 {
		t.Fatalf("got %q, %v", data, err)
	}
	must(t, offers.Offer(r.ctx, []byte("hello")))
	if nodes := r.nodes(); len(nodes) != 1 || string(nodes[0]) != "hello" {
		t.Errorf("nodes %q", nodes)
	}
	asking, asker := r.Start(testenv.Context(t), "asker")
	takes := queue.NewSimpleDistributedQueue(r.takes, queuePath, queue.WithName("orders"))
	if data, err := takes.Take(asking); err != nil || string(data) != "hello" {
		t.Errorf("got %q, %v", data, err)
	}
	asker.End()
	spans := r.Named("send orders")
	if len(spans) != 2 || spans[1].SpanKind() != trace.SpanKindProducer ||
		spans[1].SpanContext().TraceID() != r.request.SpanContext().TraceID() {
		t.Errorf("sent:\n%s", r.Tree())
	}
	received := r.Named("receive orders")
	if len(received) != 2 || received[1].SpanKind() != trace.SpanKindClient ||
		received[1].Parent().SpanID() != asker.SpanContext().SpanID() {
		t.Errorf("received:\n%s", r.Tree())
	}
	// The number begins anew if the server has removed the empty queue meanwhile.
	if got := observe.Attribute(spans[1], "messaging.message.id").AsString(); !strings.HasPrefix(got, "qn-000000000") {
		t.Errorf("sent is %q", got)
	}
	r.wantValues("messaging.client.sent.messages", `
messaging.destination.name=orders,messaging.operation.name=send 2
`)
	r.wantValues("messaging.client.consumed.messages", `
messaging.destination.name=orders,messaging.operation.name=receive 1
messaging.destination.name=orders,messaging.operation.name=receive 1
`)
}

func TestQueuesAreMeasuredByTheNameThatTheUserGave(t *testing.T) {
	t.Parallel()
	r := newRelay(t, propagated)
	r.put("a", "b")
	r.consumer(func(_ context.Context, item string) error {
		if item == "b" {
			return context.DeadlineExceeded
		}
		return nil
	})
	r.awaitSpans("settle orders", 3) // of b again and again
	for name, bounds := range map[string][]float64{
		"messaging.client.operation.duration": {.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10},
		"messaging.process.duration":          {.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10},
		"curator.queue.item.age":              {.001, .01, .1, 1, 10, 60, 600, 3600, 86400},
	} {
		points := observe.Points(r.Metrics(t)[name])
		if len(points) == 0 {
			t.Errorf("%s is not measured", name)
		}
		for _, p := range points {
			if diff := cmp.Diff(bounds, p.Bounds); diff != "" {
				t.Errorf("bounds of %s (-want +got):\n%s", name, diff)
			}
			if got, _ := p.Attributes.Value("messaging.destination.name"); got.AsString() != "orders" {
				t.Errorf("%s of %q", name, got.AsString())
			}
		}
	}
	var processed []string
	for line := range strings.Lines(r.values("messaging.process.duration")) {
		series, _, _ := strings.Cut(line, " ")
		processed = append(processed, series)
	}
	if diff := cmp.Diff([]string{
		"error.type=deadline_exceeded,messaging.destination.name=orders,messaging.operation.name=process",
		"messaging.destination.name=orders,messaging.operation.name=process",
	}, processed); diff != "" {
		t.Errorf("processed (-want +got):\n%s", diff)
	}
	r.WantBounded(t)
}

func TestPathsOfQueuesAddNoSeries(t *testing.T) {
	t.Parallel()
	const hands = 8
	tests := map[string]struct {
		paths int
		pass  func(r *relay, path string) error // of an item through the queue
	}{
		"simple":      {400, passSimple},
		"distributed": {80, passDistributed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t, propagated)
			var wg sync.WaitGroup
			for range hands {
				wg.Go(func() {
					for range tt.paths / hands {
						if err := tt.pass(r, fmt.Sprintf("/queue-%x", rand.Uint64())); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			r.wantValues("messaging.client.sent.messages", fmt.Sprintf(`
messaging.operation.name=send %d
`, tt.paths))
			r.wantValues("messaging.client.consumed.messages", fmt.Sprintf(`
messaging.operation.name=receive %d
`, tt.paths))
			for name, m := range r.Metrics(t) {
				points := observe.Points(m)
				if n := len(points); n > 15 { // of db.client.operation.duration, one for each operation and outcome
					t.Errorf("%s has %d series", name, n)
				}
				for _, p := range points {
					if labels := p.Attributes.Encoded(attribute.DefaultEncoder()); strings.Contains(labels, "/") {
						t.Errorf("%s has a path: %s", name, labels)
					}
				}
			}
			r.WantBounded(t)
		})
	}
}

func passSimple(r *relay, path string) error {
	q := queue.NewSimpleDistributedQueue(r.takes, path)
	if err := q.Offer(r.ctx, nil); err != nil {
		return err
	}
	_, err := q.Poll(r.ctx)
	return err
}

func passDistributed(r *relay, path string) error {
	consumed := make(chan struct{})
	q, err := queue.NewBuilder(r.takes, func(context.Context, string) error {
		close(consumed)
		return nil
	}, codec.Text{}, path).LockPath(path + "-locks").BuildQueue()
	if err != nil {
		return err
	}
	if err := q.Start(); err != nil {
		return err
	}
	err = q.Put(r.ctx, "a")
	if err == nil {
		select {
		case <-consumed:
		case <-r.ctx.Done():
			err = context.Cause(r.ctx)
		}
	}
	return errors.Join(err, q.Close())
}

// TestQueueThatNobodyObservesAllocatesNothingForIt covers all telemetry of an item.
func TestQueueThatNobodyObservesAllocatesNothingForIt(t *testing.T) {
	ctx := testenv.Context(t)
	put := time.Now()
	for name, off := range map[string]*telemetry.Telemetry{
		"none": nil,
		"off":  telemetry.New(telemetry.Config{}),
	} {
		obs := report.NewQueue(off, "queue", "orders", queuePath)
		allocations := testing.AllocsPerRun(100, func() {
			_, sending := obs.Send(ctx, 1)
			obs.Inject(ctx)
			sending.End("queue-0000000000", nil)
			origin := obs.Extract(nil)
			requested := obs.Clock()
			obs.Received(ctx, requested, 1, origin)
			obs.HandedOver(ctx, put, 1)
			working, processing := obs.Process(obs.In(ctx, origin), origin)
			processing.End("queue-0000000000", nil)
			_, settling := obs.Settle(working)
			settling.End("queue-0000000000", nil)
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}
