package framework_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/retry"
)

// cut ends the connection at the next requests of op.
func cut(tb testing.TB, proxy faulty, action curatortest.Action, op string, times int) {
	tb.Helper()
	must(tb, proxy.Faults().Add(curatortest.Rule{Ops: []string{op}, Action: action, Count: times}).Err())
}

// bothWays runs a read of the root in the foreground and in the background.
var bothWays = map[string]func(tb testing.TB, c *framework.Client) error{
	"foreground": func(tb testing.TB, c *framework.Client) error {
		tb.Helper()
		_, err := c.GetData().ForPath(testenv.Context(tb), "/")
		return err
	},
	"background": func(tb testing.TB, c *framework.Client) error {
		tb.Helper()
		return wait(tb, func(cb callbacks.BackgroundCallback) error {
			return c.GetData().InBackground(cb).ForPath(testenv.Context(tb), "/")
		})
	},
}

func TestTelemetryEachRetryIsEvent(t *testing.T) {
	t.Parallel()
	for way, read := range bothWays {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			proxy, connect := newProxy(t)
			o := observe.New(t)
			client := connectClient(t, connect, observed(o, framework.WithRetryPolicy(retry.NTimes(5, 20*time.Millisecond)))...)
			cut(t, proxy, curatortest.CutBefore, "getData", 2)
			must(t, read(t, client))
			span := o.Named("getData")[0]
			if got := observe.Attribute(span, "curator.retry.count").AsInt64(); got != 2 {
				t.Errorf("%d retries, want 2", got)
			}
			want := []string{
				"curator.retry.attempt=1,curator.retry.delay=0.02,error.type=CONNECTIONLOSS",
				"curator.retry.attempt=2,curator.retry.delay=0.02,error.type=CONNECTIONLOSS",
			}
			if diff := cmp.Diff(want, observe.Events(span, "curator.retry")); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if errorType := observe.Attribute(span, "error.type"); errorType.AsString() != "" {
				t.Errorf("an error that was handled is recorded: %v", errorType.AsString())
			}
			if n := len(o.Named("getData")); n != 1 {
				t.Errorf("%d spans of one operation", n)
			}
			wantValues(t, o, "curator.client.retries",
				"curator.retry.decision=retry,db.operation.name=getData,error.type=CONNECTIONLOSS 2\n")
		})
	}
}

func TestTelemetryManyRetriesAreCounted(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	o := observe.New(t)
	client := connectClient(t, connect, observed(o, framework.WithRetryPolicy(retry.NTimes(10, time.Millisecond)))...)
	cut(t, proxy, curatortest.CutBefore, "getData", 10)
	must(t, bothWays["foreground"](t, client))
	span := o.Named("getData")[0]
	if got := observe.Attribute(span, "curator.retry.count").AsInt64(); got != 10 {
		t.Errorf("%d retries, want 10", got)
	}
	if got := len(observe.Events(span, "curator.retry")); got != 8 {
		t.Errorf("%d events, want 8", got)
	}
}

func TestTelemetryOperationGivenUpIsCounted(t *testing.T) {
	t.Parallel()
	for way, read := range bothWays {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			proxy, connect := newProxy(t)
			o := observe.New(t)
			client := connectClient(t, connect, observed(o, framework.WithRetryPolicy(retry.OneTime(time.Millisecond)))...)
			cut(t, proxy, curatortest.CutBefore, "getData", 2)
			wantErr(t, way, read(t, client), framework.ErrConnectionLoss)
			wantValues(t, o, "curator.client.retries", `
curator.retry.decision=give_up,db.operation.name=getData,error.type=CONNECTIONLOSS 1
curator.retry.decision=retry,db.operation.name=getData,error.type=CONNECTIONLOSS 1
`)
			wantTree(t, o, "getData CLIENT error=CONNECTIONLOSS\n")
		})
	}
}

func TestTelemetrySpanHasReconnectEvent(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	o := observe.New(t)
	client, recorded := connectRecorded(t, connect, observed(o)...)
	ctx := testenv.Context(t)
	first := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldRequest, Count: 1})
	ended := make(chan error, 1)
	go func() { ended <- bothWays["foreground"](t, client) }()
	must(t, first.Wait(ctx))
	second := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldReply, Count: 1})
	proxy.Faults().CutAll()
	recorded.want(t, suspended, reconnected)
	must(t, second.Wait(ctx))
	second.Release()
	must(t, receive(t, ended))
	exists(t, client, "/") // begins behind the changes
	want := []string{"curator.connection.state=suspended", "curator.connection.state=reconnected"}
	if diff := cmp.Diff(want, observe.Events(o.Named("getData")[0], "curator.connection.state")); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if n := len(o.Named("exists")[0].Events()); n != 0 {
		t.Errorf("%d events of what was over", n)
	}
}

func TestTelemetryRequestsHaveSpansWithOption(t *testing.T) {
	t.Parallel()
	// The server has created the node, and the answer is lost.
	protected := func(t *testing.T, proxy *curatortest.Proxy, client *framework.Client) {
		t.Helper()
		cut(t, proxy, curatortest.CutAfter, "create2", 1)
		_, err := client.Create().WithProtection().WithMode(builders.Ephemeral).ForPath(testenv.Context(t), "/n", nil)
		must(t, err)
	}
	parents := func(t *testing.T, _ *curatortest.Proxy, client *framework.Client) {
		t.Helper()
		_, err := client.Create().CreatingParentsIfNeeded().ForPath(testenv.Context(t), "/a/b", nil)
		must(t, err)
	}
	for _, tt := range []struct {
		name         string
		run          func(*testing.T, *curatortest.Proxy, *framework.Client)
		want, detail string
	}{
		{"parents", parents, "create CLIENT\n", `
create CLIENT
  create2 CLIENT
  exists CLIENT
  create2 CLIENT
  create2 CLIENT
`},
		{"the search for a protected node", protected, "create CLIENT\n", `
create CLIENT
  create2 CLIENT error=CONNECTIONLOSS
  multi CLIENT
  getChildren2 CLIENT
  exists CLIENT
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, detailed := range []bool{false, true} {
				proxy, connect := newProxy(t)
				o := observe.New(t)
				opts, want := observed(o), tt.want
				if detailed {
					opts, want = append(opts, framework.WithRequestSpans()), tt.detail
				}
				tt.run(t, proxy, connectClient(t, connect, opts...))
				wantTree(t, o, want)
				for _, s := range o.Spans() {
					parent := s
					if named := o.Named("create"); s.Parent().IsValid() {
						parent = named[0]
					}
					if s.StartTime().Before(parent.StartTime()) || s.EndTime().After(parent.EndTime()) {
						t.Errorf("%s lies outside of its operation", s.Name())
					}
				}
			}
		})
	}
}

// What an operation leaves behind is removed later, by the client itself: it is the request's doing all the same.
func TestTelemetryCleanupIsInTrace(t *testing.T) {
	// With watch spans the record of an operation begins before its request: its caller may come to wait for it too late.
	t.Parallel()
	t.Run("a guaranteed delete", func(t *testing.T) {
		t.Parallel()
		proxy, connect := newProxy(t)
		o := observe.New(t)
		client := connectClient(t, connect,
			observed(o, framework.WithWatchSpans(), framework.WithRetryPolicy(retry.OneTime(time.Millisecond)))...)
		create(t, client, "/n", "")
		ctx, end := root(t, o)
		cut(t, proxy, curatortest.CutBefore, "delete", 2)
		err := client.Delete().Guaranteed().ForPath(ctx, "/n")
		end()
		wantErr(t, "delete", err, framework.ErrConnectionLoss)
		awaitSpans(t, o, "delete", 2)
		wantTree(t, o, `
create CLIENT
request
  delete CLIENT error=CONNECTIONLOSS
    delete CLIENT
`)
	})
	t.Run("a protected create that was abandoned", func(t *testing.T) {
		t.Parallel()
		proxy, connect := newProxy(t)
		o := observe.New(t)
		client := connectClient(t, connect, observed(o, framework.WithWatchSpans())...)
		ctx, end := root(t, o)
		ctx, cancel := context.WithCancel(ctx)
		held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.HoldReply})
		ended := make(chan error, 1)
		go func() {
			_, err := client.Create().WithProtection().ForPath(ctx, "/n", nil)
			ended <- err
		}()
		must(t, held.Wait(testenv.Context(t)))
		cancel()
		wantErr(t, "create", receive(t, ended), context.Canceled)
		end()
		held.Release()
		awaitSpans(t, o, "delete", 1)
		wantTree(t, o, `
request
  create CLIENT error=canceled
    delete CLIENT
`)
	})
	t.Run("a protected create that was given up", func(t *testing.T) {
		t.Parallel()
		proxy, connect := newProxy(t)
		o := observe.New(t)
		client := connectClient(t, connect,
			observed(o, framework.WithWatchSpans(), framework.WithRetryPolicy(onlyOnce{retry.OneTime(time.Millisecond)}))...)
		ctx, end := root(t, o)
		cut(t, proxy, curatortest.CutAfter, "create2", 1)
		_, err := client.Create().WithProtection().ForPath(ctx, "/n", nil)
		wantErr(t, "create", err, framework.ErrConnectionLoss)
		end()
		awaitSpans(t, o, "delete", 2)
		wantTree(t, o, `
request
  create CLIENT error=CONNECTIONLOSS
    delete CLIENT
    delete CLIENT
`)
	})
}

// onlyOnce is a policy that lets nothing be tried again.
type onlyOnce struct{ retry.Policy }

func (onlyOnce) Retryable(error) bool { return false }

// The delete has taken effect and its answer is lost: a missing node is a success.
func TestTelemetryGuaranteedDeleteOfMissingNodeIsNoError(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	o := observe.New(t)
	client := connectClient(t, connect,
		observed(o, framework.WithRetryPolicy(onlyOnce{retry.OneTime(time.Millisecond)}))...)
	create(t, client, "/n", "")
	cut(t, proxy, curatortest.CutAfter, "delete", 1)
	wantErr(t, "delete", client.Delete().Guaranteed().ForPath(testenv.Context(t), "/n"), framework.ErrConnectionLoss)
	awaitSpans(t, o, "delete", 2)
	// The second is in the first, unless the connection is lost before the first has begun its span.
	tree := strings.ReplaceAll(o.Tree(), "\n  delete", "\ndelete")
	for _, line := range []string{"\ndelete CLIENT error=CONNECTIONLOSS\n", "\ndelete CLIENT\n"} {
		if !strings.Contains(tree, line) {
			t.Errorf("no span %q in\n%s", line, o.Tree())
		}
	}
}

// What takes the spans may take its time: the connection is read all the same, and made anew.
func TestTelemetryBlockedSpanDelaysNoConnection(t *testing.T) {
	o := observe.New(t)
	proxy, connect := newProxy(t)
	entered, release := make(chan struct{}), make(chan struct{})
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(begun{o.Processor(), func(s sdktrace.ReadWriteSpan) {
		if s.Name() == "create" {
			close(entered)
			<-release
		}
	}}))
	client := connectClient(t, connect, framework.WithTracerProvider(tracers))
	answer := proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.HoldReply})
	created := make(chan error, 1)
	go func() {
		_, err := client.Create().WithProtection().ForPath(testenv.Context(t), "/a", nil)
		created <- err
	}()
	<-entered
	if err := answer.Wait(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	proxy.Faults().CutAll()
	if _, err := client.CheckExists().ForPath(testenv.Context(t), "/b"); err != nil {
		t.Errorf("another operation: %v", err)
	}
	close(release)
	if err := <-created; err != nil {
		t.Fatal(err)
	}
	if got := observe.Events(o.Named("create")[0], "curator.retry"); len(got) != 1 {
		t.Errorf("retries %v", got)
	}
}
