package report_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/queue"
)

// cable is the way of one client to the server, which a test cuts and holds up.
type cable struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	conn net.Conn
	held chan struct{} // until it is closed no connection is made; nil for not held up
}

func (c *cable) connect(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	conn, err := c.dial(ctx, network, address)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
	return conn, err
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.Close()
}

// hold makes every connection wait for release.
func (c *cable) hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := make(chan struct{})
	c.held = held
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held = nil
		close(held)
	}
}

// operator sees the metrics of two clients in a process, and nothing else.
type operator struct {
	*observe.Observer
	t *testing.T
}

// sees waits until a metric has a series with these attributes and this value.
func (o operator) sees(metric string, want int64, attributes ...string) {
	o.t.Helper()
	last := ""
	defer func() {
		if o.t.Failed() {
			o.t.Logf("%s was\n%s", metric, last)
		}
	}()
	testenv.Eventually(o.t, func() bool {
		last = o.Values(o.t, metric)
		for line := range strings.Lines(last) {
			if strings.HasSuffix(line, fmt.Sprintf(" %d\n", want)) && hasAll(line, attributes) {
				return true
			}
		}
		return false
	}, fmt.Sprintf("%s %v = %d", metric, attributes, want))
}

// seesNo fails the test if a metric has a series with these attributes.
func (o operator) seesNo(metric string, attributes ...string) {
	o.t.Helper()
	for line := range strings.Lines(o.Values(o.t, metric)) {
		if hasAll(line, attributes) {
			o.t.Errorf("%s has %s", metric, line)
		}
	}
}

func hasAll(line string, attributes []string) bool {
	for _, a := range attributes {
		if !strings.Contains(line, a) {
			return false
		}
	}
	return true
}

// exemplars returns the ids of the traces to which the durations of an operation of a client lead.
func (o operator) exemplars(operation, client string) (traces []string) {
	o.t.Helper()
	durations, ok := o.Metrics(o.t)["db.client.operation.duration"].Data.(metricdata.Histogram[float64])
	if !ok {
		o.t.Fatal("operations have no durations")
	}
	for _, p := range durations.DataPoints {
		op, _ := p.Attributes.Value("db.operation.name")
		name, _ := p.Attributes.Value("curator.client.name")
		if op != attribute.StringValue(operation) || name != attribute.StringValue(client) {
			continue
		}
		for _, e := range p.Exemplars {
			traces = append(traces, fmt.Sprintf("%x", e.TraceID))
		}
	}
	return traces
}

const (
	steadyClient   = "curator.client.name=steady"
	flappingClient = "curator.client.name=flapping"
	flaps          = 3
)

// TestMetricsAnswerTheQuestionsOfAnOperator has all go wrong at once, and finds it in the metrics: see docs/tracing.md.
func TestMetricsAnswerTheQuestionsOfAnOperator(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := curatortest.NewServerT(t, curatortest.WithoutPort())
	o := operator{observe.New(t), t}
	way := &cable{dial: server.DialContext}
	client := func(name string, dial func(context.Context, string, string) (net.Conn, error)) *framework.Client {
		c, err := framework.New(server.ConnectString(), framework.WithName(name), framework.WithDialer(dial),
			framework.WithTracerProvider(o.Tracers), framework.WithMeterProvider(o.Meters))
		must(t, err)
		must(t, c.Start())
		t.Cleanup(func() { must(t, c.Close()) })
		must(t, c.BlockUntilConnected(ctx))
		return c
	}
	steady, flapping := client("steady", server.DialContext), client("flapping", way.connect)

	// Who waits for what? Three calls of the steady client wait for the lock orders, which it holds.
	mutex := locks.NewInterProcessMutex(steady, "/lock", locks.WithName("orders"))
	hold, err := mutex.Acquire(ctx)
	must(t, err)
	waiting, giveUp := context.WithCancel(ctx)
	var waiters sync.WaitGroup
	for range 3 {
		waiters.Go(func() { _, _ = mutex.Acquire(waiting) })
	}
	o.sees("curator.lock.waiting", 3, steadyClient, "curator.resource.name=orders")
	o.sees("curator.lock.held", 1, steadyClient, "curator.resource.name=orders")
	giveUp()
	waiters.Wait()
	must(t, hold.Release(ctx))
	o.sees("curator.lock.waiting", 0, steadyClient, "curator.resource.name=orders")

	// Which leader flaps, and which client of two? The one of the participant blue.
	latch := func(c *framework.Client, path, election, participant string) *leader.LeaderLatch {
		l := leader.NewLeaderLatch(c, path, leader.WithName(election), leader.WithID(participant))
		must(t, l.Start())
		_, err := l.Await(ctx)
		must(t, err)
		return l
	}
	defer latch(flapping, "/scheduler", "scheduler", "blue").Close() //nolint:errcheck // the end of the test
	defer latch(steady, "/reports", "reports", "green").Close()      //nolint:errcheck // the end of the test
	for i := range flaps {
		o.sees("curator.leader.active", 1, "participant=blue", "name=scheduler")
		way.cut()
		o.sees("curator.leader.changes", int64(i+1), "participant=blue", "name=scheduler", "outcome=lost")
		o.sees("curator.leader.changes", int64(i+2), "participant=blue", "name=scheduler", "outcome=elected")
	}
	o.sees("curator.leader.changes", 1, "participant=green", "name=reports", "outcome=elected")
	o.seesNo("curator.leader.changes", "participant=green", "outcome=lost")
	o.sees("curator.connection.state_changes", flaps, flappingClient, "state=suspended")
	o.seesNo("curator.connection.state_changes", steadyClient, "state=suspended")
	o.sees("curator.client.connected", 1, flappingClient)

	// How deep is the queue? Five items are put, and none is consumed.
	jobs, err := queue.NewBuilder[int](steady, nil, codec.JSON[int]{}, "/jobs").Name("jobs").BuildQueue()
	must(t, err)
	must(t, jobs.Start())
	defer jobs.Close() //nolint:errcheck // the end of the test
	for id := range 5 {
		must(t, jobs.Put(ctx, id))
	}
	o.sees("messaging.client.sent.messages", 5, steadyClient, "messaging.destination.name=jobs")
	o.seesNo("messaging.client.consumed.messages", "messaging.destination.name=jobs")

	// What did a slow trace wait for? For a connection: the metrics show it meanwhile, and lead to the trace.
	release := way.hold()
	way.cut()
	o.sees("curator.client.connected", 0, flappingClient)
	inTrace, span := o.Start(ctx, "request")
	answered := make(chan error, 1)
	go func() {
		_, err := flapping.GetACL().ForPath(inTrace, "/")
		answered <- err
	}()
	o.sees("curator.client.operations.parked", 1, flappingClient)
	o.sees("curator.client.operations.parked", 0, steadyClient)
	release()
	must(t, <-answered)
	span.End()
	if got := o.exemplars("getACL", "flapping"); len(got) != 1 || got[0] != span.SpanContext().TraceID().String() {
		t.Errorf("the durations lead to the traces %v, not to %v", got, span.SpanContext().TraceID())
	}
	waits := observe.Events(o.Named("getACL")[0], "curator.connection.wait")
	if len(waits) != 1 {
		t.Errorf("the trace shows the waits %v", waits)
	}
	o.WantBounded(t)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
