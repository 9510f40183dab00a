package framework_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// seen is a sampler that takes all and remembers what it saw.
type seen struct {
	mu  sync.Mutex
	all []sdktrace.SamplingParameters
}

func (s *seen) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, p)
	return sdktrace.AlwaysSample().ShouldSample(p)
}

func (s *seen) Description() string { return "all" }

// of returns what was seen of spans of a kind.
func (s *seen) of(kind trace.SpanKind) []sdktrace.SamplingParameters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.all), func(p sdktrace.SamplingParameters) bool { return p.Kind != kind })
}

// observedOperation is one operation and the span that it has.
type observedOperation struct {
	name string // of the operation
	run  func(ctx context.Context, c *framework.Client) error
	want string // the attributes that it has at its end, beside those of the start; sizes are not compared
}

// Answers that are errors, or only say that it is done, have no size.
const (
	sent  = " zookeeper.request.size"
	sizes = sent + " zookeeper.response.size"
)

// nobody is a watcher whose watch no test triggers.
var nobody = callbacks.NewWatcher(func(context.Context, zk.Event) {})

// observedOperations run one after the other, on an empty tree.
var observedOperations = []observedOperation{
	{"create", func(ctx context.Context, c *framework.Client) error {
		_, err := c.Create().ForPath(ctx, "/a", nil)
		return err
	}, "zookeeper.create_mode=PERSISTENT zookeeper.path=/a" + sizes},
	{"create", func(ctx context.Context, c *framework.Client) error {
		_, err := c.Create().WithMode(builders.EphemeralSequential).ForPath(ctx, "/a/e-", nil)
		if !errors.Is(err, zk.ErrNoChildrenForEphemerals) && err != nil {
			return err
		}
		return nil
	}, "zookeeper.create_mode=EPHEMERAL_SEQUENTIAL zookeeper.path=/a/e-" + sizes},
	{"create", func(ctx context.Context, c *framework.Client) error {
		_, err := c.Create().ForPath(ctx, "/a", nil)
		return err
	}, "db.response.status_code=NODEEXISTS error.type=NODEEXISTS zookeeper.create_mode=PERSISTENT zookeeper.path=/a" +
		sent},
	{"exists", func(ctx context.Context, c *framework.Client) error {
		_, err := c.CheckExists().ForPath(ctx, "/a")
		return err
	}, "zookeeper.path=/a" + sizes},
	{"exists", func(ctx context.Context, c *framework.Client) error { // a missing node is no error
		_, err := c.CheckExists().UsingWatcher(nobody).ForPath(ctx, "/none")
		return err
	}, "zookeeper.path=/none" + sent + " zookeeper.watch=true"},
	{"setData", func(ctx context.Context, c *framework.Client) error {
		_, err := c.SetData().ForPath(ctx, "/a", []byte("x"))
		return err
	}, "zookeeper.path=/a" + sizes},
	{"setData", func(ctx context.Context, c *framework.Client) error {
		_, err := c.SetData().WithVersion(7).ForPath(ctx, "/a", []byte("x"))
		return err
	}, "db.response.status_code=BADVERSION error.type=BADVERSION zookeeper.path=/a" + sent},
	{"getData", func(ctx context.Context, c *framework.Client) error {
		_, err := c.GetData().UsingWatcher(nobody).ForPath(ctx, "/a")
		return err
	}, "zookeeper.path=/a" + sizes + " zookeeper.watch=true"},
	{"getData", func(ctx context.Context, c *framework.Client) error {
		_, err := c.GetData().ForPath(ctx, "/none")
		return err
	}, "db.response.status_code=NONODE error.type=NONODE zookeeper.path=/none" + sent},
	{"getChildren", func(ctx context.Context, c *framework.Client) error {
		_, err := c.GetChildren().ForPath(ctx, "/a")
		return err
	}, "zookeeper.path=/a zookeeper.request.size zookeeper.response.children=1 zookeeper.response.size"},
	{"getACL", func(ctx context.Context, c *framework.Client) error {
		_, err := c.GetACL().ForPath(ctx, "/a")
		return err
	}, "zookeeper.path=/a" + sizes},
	{"setACL", func(ctx context.Context, c *framework.Client) error {
		_, err := c.SetACL().WithACL(builders.OpenACL...).ForPath(ctx, "/a")
		return err
	}, "zookeeper.path=/a" + sizes},
	{"sync", func(ctx context.Context, c *framework.Client) error {
		return c.Sync().ForPath(ctx, "/a")
	}, "zookeeper.path=/a" + sizes},
	{"addWatch", func(ctx context.Context, c *framework.Client) error {
		return c.Watches().Add().UsingWatcher(nobody).ForPath(ctx, "/w")
	}, "zookeeper.path=/w" + sizes + " zookeeper.watch=true"},
	{"removeWatches", func(ctx context.Context, c *framework.Client) error {
		return c.Watches().Remove(nobody).ForPath(ctx, "/w")
	}, "zookeeper.path=/w" + sent},
	{"getConfig", func(ctx context.Context, c *framework.Client) error {
		_, err := c.GetConfig().ForEnsemble(ctx)
		return err
	}, "zookeeper.path=/zookeeper/config" + sizes},
	{"multi", func(ctx context.Context, c *framework.Client) error {
		op := c.TransactionOp()
		_, err := c.Transaction().ForOperations(ctx, op.Check().ForPath("/a"), op.Create().ForPath("/b", nil))
		return err
	}, "db.operation.batch.size=2" + sizes},
	{"multi create", func(ctx context.Context, c *framework.Client) error {
		op := c.TransactionOp()
		_, err := c.Transaction().ForOperations(ctx, op.Create().ForPath("/c", nil), op.Create().ForPath("/d", nil),
			op.Create().ForPath("/e", nil))
		return err
	}, "db.operation.batch.size=3" + sizes},
	{"multi delete", func(ctx context.Context, c *framework.Client) error {
		_, err := c.Transaction().ForOperations(ctx, c.TransactionOp().Delete().ForPath("/none"))
		return err
	}, "db.response.status_code=NONODE error.type=NONODE" + sizes},
	{"delete", func(ctx context.Context, c *framework.Client) error {
		return c.Delete().ForPath(ctx, "/a")
	}, "db.response.status_code=NOTEMPTY error.type=NOTEMPTY zookeeper.path=/a" + sent},
	{"delete", func(ctx context.Context, c *framework.Client) error { // none is no error
		return c.Delete().Quietly().ForPath(ctx, "/none")
	}, "zookeeper.path=/none" + sent},
	{"delete", func(ctx context.Context, c *framework.Client) error {
		return c.Delete().DeletingChildrenIfNeeded().ForPath(ctx, "/a")
	}, "zookeeper.path=/a" + sent},
}

// ending prints what a span has beside attributes that it had at its start, and beside the server.
func ending(s sdktrace.ReadOnlySpan, started []attribute.KeyValue) string {
	var parts []string
	for _, a := range s.Attributes() {
		switch {
		case slices.ContainsFunc(started, func(b attribute.KeyValue) bool { return a.Key == b.Key }):
		case strings.HasSuffix(string(a.Key), ".size") && a.Key != "db.operation.batch.size":
			parts = append(parts, string(a.Key))
		default:
			parts = append(parts, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func TestTelemetryForegroundOperationHasSpan(t *testing.T) {
	t.Parallel()
	addr, chroot := testenv.Addr(t), testenv.Chroot(t)
	if strings.Contains(addr, ",") {
		addr = proxyTo(t, strings.Split(addr, ",")[0]).Addr()
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	alone := testenv.Chroot(t)
	for _, place := range []struct{ name, connect, namespace, want string }{
		{"in the whole tree", addr + testenv.Chroot(t), "", ""},
		{"in a namespace", addr, alone[1:], alone[1:]},
		{"in a namespace behind a chroot", addr + chroot, "app/orders", chroot[1:] + "/app/orders"},
	} {
		t.Run(place.name, func(t *testing.T) {
			t.Parallel()
			sampler := &seen{}
			o := observe.New(t, sampler)
			client := connectClient(t, place.connect, observed(o, framework.WithNamespace(place.namespace))...)
			awaitSpans(t, o, "curator.connect", 1) // it is no event of what follows
			for _, op := range observedOperations {
				err := op.run(testenv.Context(t), client)
				sampled, spans := sampler.of(trace.SpanKindClient), o.Spans()
				got, s := sampled[len(sampled)-1], spans[len(spans)-1]
				start := []attribute.KeyValue{
					attribute.String("db.system.name", "zookeeper"), attribute.String("db.operation.name", op.name),
					attribute.String("server.address", host), attribute.Int("server.port", number),
				}
				name := op.name
				if place.want != "" {
					name += " " + place.want
					start = append(start, attribute.String("db.namespace", place.want))
				}
				if got.Name != name || s.Name() != name {
					t.Errorf("%s: the span is called %q, and was sampled as %q", name, s.Name(), got.Name)
				}
				if want, has := attribute.NewSet(start...), attribute.NewSet(got.Attributes...); !has.Equals(&want) {
					t.Errorf("%s: sampled with %v, want %v", name, got.Attributes, start)
				}
				if diff := cmp.Diff(op.want, ending(s, got.Attributes)); diff != "" {
					t.Errorf("%s: attributes (-want +got):\n%s", name, diff)
				}
				wantStatus(t, s, err)
				if s.EndTime().Before(s.StartTime()) || len(s.Events()) != 0 {
					t.Errorf("%s: from %v to %v with %d events", name, s.StartTime(), s.EndTime(), len(s.Events()))
				}
			}
			if n := len(sampler.of(trace.SpanKindClient)); n != len(observedOperations) {
				t.Errorf("%d spans of %d operations", n, len(observedOperations))
			}
		})
	}
}

// wantStatus checks that the status of a span says what err does, but not the path.
func wantStatus(t *testing.T, s sdktrace.ReadOnlySpan, err error) {
	t.Helper()
	if err == nil {
		if s.Status().Code != codes.Unset {
			t.Errorf("%s: status %v", s.Name(), s.Status())
		}
		return
	}
	var opErr *builders.OpError
	if !errors.As(err, &opErr) {
		t.Fatalf("%s: %v", s.Name(), err)
	}
	cause := opErr.Err
	if inner := errors.Unwrap(cause); opErr.Op == "multi" && inner != nil { // without the path of the operation
		cause = inner
	}
	want := sdktrace.Status{Code: codes.Error} // and no more than the error type
	if errors.Unwrap(cause) != nil {
		want.Description = cause.Error()
	}
	if s.Status() != want || strings.Contains(s.Status().Description, "/") {
		t.Errorf("%s: status %v, want %v", s.Name(), s.Status(), want)
	}
}

func TestTelemetryBackgroundOperationHasSpan(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	client := connectClient(t, testenv.ConnectString(t), observed(o)...)
	for i, op := range operations {
		done := newEvents()
		err := wait(t, func(cb callbacks.BackgroundCallback) error {
			path := fmt.Sprint("/n-", i)
			return op.background(testenv.Context(t), client, path, func(ctx context.Context, ev callbacks.Event) {
				if !trace.SpanContextFromContext(ctx).IsValid() {
					t.Errorf("%s: the callback is in no trace", op.name)
				}
				done.callback(ctx, ev)
				cb(ctx, ev)
			})
		})
		spans := slices.DeleteFunc(o.Spans(),
			func(s sdktrace.ReadOnlySpan) bool { return s.SpanKind() != trace.SpanKindClient })
		if len(spans) != i+1 {
			t.Fatalf("%s: %d spans, want one: %s", op.name, len(spans)-i, o.Tree())
		}
		s := spans[i]
		if !observe.Attribute(s, "curator.background").AsBool() {
			t.Errorf("%s: not in the background", op.name)
		}
		if failed := s.Status().Code == codes.Error; failed != (err != nil) {
			t.Errorf("%s: status %v of %v", op.name, s.Status(), err)
		}
	}
	wantValues(t, o, "curator.background.queue.size", " 0\n")
}

func TestTelemetrySessionIDNeedsOption(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	for _, wanted := range []bool{false, true} {
		o := observe.New(t)
		opts := observed(o)
		if wanted {
			opts = append(opts, framework.WithSessionIDs())
		}
		client := connectClient(t, connect, opts...)
		exists(t, client, "/")
		want := ""
		if wanted {
			want = fmt.Sprintf("0x%x", uint64(client.SessionID()))
		}
		got := observe.Attribute(o.Named("exists")[0], "zookeeper.session.id")
		if got.AsString() != want {
			t.Errorf("session %q, want %q", got.AsString(), want)
		}
	}
}

// With several servers it is not known which one will answer.
func TestTelemetryServerOfSeveralIsNotShown(t *testing.T) {
	t.Parallel()
	chroot := testenv.Chroot(t)
	one, two := proxyTo(t, testenv.Addr(t)), proxyTo(t, testenv.Addr(t))
	o := observe.New(t)
	client := connectClient(t, one.Addr()+","+two.Addr()+chroot, observed(o)...)
	exists(t, client, "/")
	span := o.Named("exists")[0]
	for _, key := range observe.Keys(span) {
		if strings.HasPrefix(key, "server.") {
			t.Errorf("the span has %s", key)
		}
	}
	peer := net.JoinHostPort(observe.Attribute(span, "network.peer.address").AsString(),
		observe.Attribute(span, "network.peer.port").String())
	if peer != one.Addr() && peer != two.Addr() {
		t.Errorf("the peer is %s, want %s or %s", peer, one.Addr(), two.Addr())
	}
	wantValues(t, o, "db.client.operation.duration", "db.operation.name=exists 1\n")
}

// deadline is a context whose deadline passes when a test says so. That of a clock may pass before the call begins.
type deadline struct {
	context.Context
	passed chan struct{}
}

func withDeadline(ctx context.Context) (_ context.Context, pass func()) {
	d := deadline{ctx, make(chan struct{})}
	return d, func() { close(d.passed) }
}

func (d deadline) Done() <-chan struct{} { return d.passed }

func (d deadline) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestTelemetrySpanEndsWhenCallerGivesUp(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	o := observe.New(t)
	client := connectClient(t, connect, observed(o)...)
	canceled, cancel := context.WithCancel(testenv.Context(t))
	expired, expire := withDeadline(testenv.Context(t))
	for i, by := range []struct {
		ctx context.Context
		end func()
		err error
		as  string
	}{
		{canceled, cancel, context.Canceled, "canceled"},
		{expired, expire, context.DeadlineExceeded, "deadline_exceeded"},
	} {
		held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldReply, Count: 1})
		ended := make(chan error, 1)
		go func() {
			_, err := client.GetData().ForPath(by.ctx, "/")
			ended <- err
		}()
		must(t, held.Wait(testenv.Context(t)))
		by.end()
		wantErr(t, "get data", receive(t, ended), by.err)
		s := o.Named("getData")[i]
		if got := ending(s, nil); !strings.Contains(got, "error.type="+by.as) || strings.Contains(got, "status_code") {
			t.Errorf("attributes %s", got)
		}
		if s.Status().Code != codes.Error {
			t.Errorf("status %v", s.Status())
		}
		held.Release()
	}
	exists(t, client, "/") // the answers have come
	wantTree(t, o, `
getData CLIENT error=canceled
getData CLIENT error=deadline_exceeded
exists CLIENT
`)
}

func TestTelemetryOperationOfClosedClientHasSpan(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	client := connectClient(t, testenv.ConnectString(t), observed(o)...)
	closeClient(t, client)
	ctx := testenv.Context(t)
	wantErr(t, "sync", client.Sync().ForPath(ctx, "/"), framework.ErrClosed)
	wantErr(t, "background", client.Sync().InBackground(nil).ForPath(ctx, "/"), framework.ErrClosed)
	wantTree(t, o, `
sync CLIENT error=CLOSED
sync CLIENT error=CLOSED
`)
	wantValues(t, o, "curator.background.queue.size", "") // a closed client has no gauges
	if points := observe.Points(o.Metrics(t)["db.client.operation.duration"]); len(points) != 1 || points[0].Value != 2 {
		t.Errorf("measured %v", points)
	}
}

func TestTelemetryFutureWaitedForTwiceHasOneSpan(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	client := connectClient(t, testenv.ConnectString(t), observed(o)...)
	ctx, end := root(t, o)
	future := client.Create().Submit(ctx, "/n", nil)
	for range 2 {
		name, err := future.Wait(testenv.Context(t))
		if name != "/n" || err != nil {
			t.Errorf("created %q: %v", name, err)
		}
	}
	end()
	wantTree(t, o, `
request
  create CLIENT
`)
	if points := observe.Points(o.Metrics(t)["db.client.operation.duration"]); len(points) != 1 || points[0].Value != 1 {
		t.Errorf("measured %v", points)
	}
}

// begun is a processor that gets the beginning of spans.
type begun struct {
	sdktrace.SpanProcessor
	of func(sdktrace.ReadWriteSpan)
}

func (b begun) OnStart(ctx context.Context, s sdktrace.ReadWriteSpan) {
	b.SpanProcessor.OnStart(ctx, s)
	b.of(s)
}

// What a span costs is no part of what the caller waits for: the server works on the request meanwhile.
func TestTelemetrySpanIsMadeDuringRequest(t *testing.T) {
	connect, o := testenv.ConnectString(t), observe.New(t)
	witness := connectClient(t, connect)
	var arrived bool
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(begun{o.Processor(), func(s sdktrace.ReadWriteSpan) {
		if s.Name() != "create" {
			return
		}
		testenv.Eventually(t, func() bool {
			stat, err := witness.CheckExists().ForPath(t.Context(), "/a")
			arrived = err == nil && stat != nil
			return arrived
		}, "the node, before the create returns")
	}}))
	client := connectClient(t, connect, framework.WithTracerProvider(tracers))
	before := time.Now()
	if _, err := client.Create().ForPath(t.Context(), "/a", nil); err != nil || !arrived {
		t.Fatalf("arrived %v, %v", arrived, err)
	}
	span := o.Named("create")[0]
	if span.StartTime().Before(before) || span.EndTime().Before(span.StartTime()) {
		t.Errorf("the span is from %v to %v, the call from %v", span.StartTime(), span.EndTime(), before)
	}
}

// A submitted operation is recorded at its end without a waiter.
func TestTelemetrySubmitWithoutWaitIsRecorded(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]framework.Option{"operation": nil, "requests": {framework.WithRequestSpans()}} {
		t.Run(name, func(t *testing.T) {
			o := observe.New(t)
			client := connectClient(t, testenv.ConnectString(t), observed(o, more...)...)
			ctx, end := root(t, o)
			future := client.Create().Submit(ctx, "/n", nil)
			end()
			<-future.Done()
			awaitSpans(t, o, "create", 1)
			closeClient(t, client)
			if points := observe.Points(o.Metrics(t)["db.client.operation.duration"]); len(points) != 1 || points[0].Value != 1 {
				t.Errorf("measured %v", points)
			}
			for _, s := range o.Named("create") {
				if s.EndTime().IsZero() || s.Parent().TraceID() != o.Named("request")[0].SpanContext().TraceID() {
					t.Errorf("span %v", s)
				}
			}
		})
	}
}
