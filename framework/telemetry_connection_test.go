package framework_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
)

func TestTelemetryConnectionIsRecorded(t *testing.T) {
	t.Parallel()
	_, connect := newProxy(t)
	o := observe.New(t)
	before := time.Now()
	client := connectClient(t, connect, observed(o)...)
	awaitSpans(t, o, "curator.connect", 1)
	span := o.Named("curator.connect")[0]
	if span.StartTime().Before(before) || span.EndTime().After(time.Now()) || !span.EndTime().After(span.StartTime()) {
		t.Errorf("from %v to %v", span.StartTime(), span.EndTime())
	}
	if span.SpanKind() != trace.SpanKindInternal || span.Parent().IsValid() {
		t.Errorf("%v below %v", span.SpanKind(), span.Parent())
	}
	closeClient(t, client)
	if got := o.Tree(); got != "curator.connect\n" {
		t.Errorf("spans\n%s", got)
	}
	states := o.Values(t, "curator.connection.state_changes")
	states = strings.Replace(states, "curator.connection.state=suspended 1\n", "", 1) // perhaps before: see want
	if states != "curator.connection.state=connected 1\n" {
		t.Errorf("states\n%s", states)
	}
}

func TestTelemetryOutageIsOneSpan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		outcome string
		timeout time.Duration
	}{
		{"reconnected", 10 * time.Second},
		{"lost", testenv.SessionTimeout},
	} {
		t.Run(tt.outcome, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
				o := observe.New(t)
				client, recorded := connectRecorded(t, connect, observed(o, dial, framework.WithSessionTimeout(tt.timeout))...)
				cut := time.Now()
				restore := outage(proxy)
				recorded.want(t, suspended)
				noticed := time.Now()
				pass(t, 10*time.Millisecond)
				over := time.Now()
				if tt.outcome == "lost" {
					recorded.want(t, lost)
				}
				restore()
				recorded.want(t, reconnected)
				back := time.Now()
				recorded.end(t, client)
				span := o.Named("curator.connection.outage")[0]
				if span.StartTime().Before(cut) || span.StartTime().After(noticed) {
					t.Errorf("begins at %v, want between %v and %v", span.StartTime(), cut, noticed)
				}
				if span.EndTime().Before(over) || span.EndTime().After(back) {
					t.Errorf("ends at %v, want between %v and %v", span.EndTime(), over, back)
				}
				want := "curator.connect\ncurator.connection.outage curator.outcome=" + tt.outcome + "\n"
				if got := o.Tree("curator.outcome"); got != want {
					t.Errorf("spans\n%s", got)
				}
				wantValues(t, o, "curator.connection.outage.duration", "curator.outcome="+tt.outcome+" 1\n")
				exemplars := []trace.TraceID{span.SpanContext().TraceID()}
				if diff := cmp.Diff(exemplars, o.Exemplars(t, "curator.connection.outage.duration")); diff != "" {
					t.Errorf("exemplars (-want +got):\n%s", diff)
				}
				if tt.outcome == "reconnected" {
					wantValues(t, o, "curator.session.expirations", "")
					return
				}
				wantValues(t, o, "curator.session.expirations", " 1\n")
				want = `curator.connection.state=connected 1
curator.connection.state=lost 1
curator.connection.state=reconnected 1
curator.connection.state=suspended 1
`
				if diff := cmp.Diff(want, stateChanges(t, o, "suspended 2", "suspended 1")); diff != "" {
					t.Errorf("states (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A session that is given up without an outage is an expiration, and nothing to wait for.
func TestTelemetryResetIsNoOutage(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	client, recorded := connectRecorded(t, testenv.ConnectString(t), observed(o)...)
	must(t, client.Reset())
	recorded.want(t, lost, reconnected)
	recorded.end(t, client)
	if got := o.Tree(); got != "curator.connect\n" {
		t.Errorf("spans\n%s", got)
	}
	wantValues(t, o, "curator.session.expirations", " 1\n")
}

func TestTelemetryWatchEventsAreCounted(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	client := connectClient(t, testenv.ConnectString(t), observed(o)...)
	create(t, client, "/n", "")
	watcher, recorded := newWatcher()
	ctx := testenv.Context(t)
	_, err := client.GetData().UsingWatcher(watcher).ForPath(ctx, "/n")
	must(t, err)
	_, err = client.GetChildren().UsingWatcher(watcher).ForPath(ctx, "/n")
	must(t, err)
	setData(t, client, "/n", "1")
	receive(t, recorded)
	create(t, client, "/n/m", "")
	receive(t, recorded)
	wantValues(t, o, "curator.watch.events", `
zookeeper.event.type=node_children_changed 1
zookeeper.event.type=node_data_changed 1
`)
}

func TestTelemetryWatcherCallsHaveSpansWithOption(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	for _, tt := range []struct {
		name   string
		wanted bool
		want   string
	}{
		{"/off", false, "create CLIENT\nrequest\n  getData CLIENT\nsetData CLIENT\nexists CLIENT\n"},
		{
			"/on", true,
			"create CLIENT\nrequest\n  getData CLIENT\nsetData CLIENT\nwatch node_data_changed -> getData\n  exists CLIENT\n",
		},
	} {
		o := observe.New(t)
		opts := observed(o)
		if tt.wanted {
			opts = append(opts, framework.WithWatchSpans())
		}
		client := connectClient(t, connect, opts...)
		create(t, client, tt.name, "")
		done := make(chan error, 1)
		watcher := callbacks.NewWatcher(func(ctx context.Context, ev zk.Event) {
			if ev.Type == zk.EventNodeDataChanged {
				_, err := client.CheckExists().ForPath(ctx, ev.Path)
				done <- err
			}
		})
		ctx, end := root(t, o)
		_, err := client.GetData().UsingWatcher(watcher).ForPath(ctx, tt.name)
		must(t, err)
		end()
		setData(t, client, tt.name, "1")
		must(t, receive(t, done))
		closeClient(t, client)
		wantTree(t, o, tt.want)
		for _, s := range o.Named("watch node_data_changed") {
			if s.Parent().IsValid() || observe.Attribute(s, "zookeeper.path").AsString() != tt.name {
				t.Errorf("below %v, of %v", s.Parent(), observe.Attribute(s, "zookeeper.path").AsString())
			}
		}
	}
}

// unseen is a sampler that does not take what is done in a context with its key.
type unseen struct{ sdktrace.Sampler }

type unseenKey struct{}

func (u unseen) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if p.ParentContext.Value(unseenKey{}) != nil {
		return sdktrace.NeverSample().ShouldSample(p)
	}
	return u.Sampler.ShouldSample(p)
}

func TestTelemetryWatcherSetAgainIsNotLinkedToFirst(t *testing.T) {
	t.Parallel()
	o := observe.New(t, unseen{sdktrace.AlwaysSample()})
	client := connectClient(t, testenv.ConnectString(t), observed(o, framework.WithWatchSpans())...)
	create(t, client, "/n", "")
	watcher, recorded := newWatcher()
	ctx := testenv.Context(t)
	for _, ctx := range []context.Context{ctx, context.WithValue(ctx, unseenKey{}, true)} {
		_, err := client.GetData().UsingWatcher(watcher).ForPath(ctx, "/n")
		must(t, err)
		setData(t, client, "/n", "1")
		receive(t, recorded)
	}
	closeClient(t, client)
	wantTree(t, o, `
create CLIENT
getData CLIENT
setData CLIENT
watch node_data_changed -> getData
setData CLIENT
watch node_data_changed
`)
}

// A listener that takes its time moves neither the outage nor the events of what lasted through it.
func TestTelemetryOutageTimesIgnoreListeners(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	o := observe.New(t)
	client := newClient(t, connect, observed(o)...)
	release := make(chan struct{})
	client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
		if s == connected {
			<-release
		}
	})
	start(t, client)
	awaitConnected(t, client)
	before := time.Now()
	restore := outage(proxy)
	testenv.Eventually(t, func() bool { return !client.IsConnected() }, "suspended")
	noticed := time.Now()
	restore()
	exists(t, client, "/") // lasts through the end of it
	back := time.Now()
	close(release)
	awaitSpans(t, o, "curator.connection.outage", 1)
	s := o.Named("curator.connection.outage")[0]
	if s.StartTime().Before(before) || s.StartTime().After(noticed) || s.EndTime().After(back) {
		t.Errorf("from %v to %v, want it to begin before %v and to end before %v", s.StartTime(), s.EndTime(), noticed, back)
	}
	want := "curator.connection.state=reconnected"
	if e := observe.Events(o.Named("exists")[0], "curator.connection.state"); len(e) != 1 || e[0] != want {
		t.Errorf("events %v, want %s", e, want)
	}
}

// An operation that begins behind the connection does not report it.
func TestTelemetryConnectIsNoEventOfLaterSpans(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	for range 50 {
		o := observe.New(t)
		client := connectClient(t, connect, observed(o)...)
		exists(t, client, "/")
		if e := o.Named("exists")[0].Events(); len(e) != 0 {
			t.Fatalf("events %v", e)
		}
		closeClient(t, client)
	}
}
