package framework_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/tracing"
)

// driver is a Java-style driver that remembers what it got.
type driver struct {
	mu                 sync.Mutex
	operations, events []string
}

func (d *driver) AddTrace(name string, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if took < 0 {
		name += fmt.Sprint(" took ", took)
	}
	d.operations = append(d.operations, name)
}

func (d *driver) AddCount(name string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, fmt.Sprint(name, " ", n))
}

// take returns what came since the last time.
func (d *driver) take() (operations, events []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	operations, events = d.operations, d.events
	d.operations, d.events = nil, nil
	return operations, events
}

// wantOperations compares the names that d got since the last time.
func (d *driver) wantOperations(tb testing.TB, want ...string) {
	tb.Helper()
	got, _ := d.take()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("operations (-want +got):\n%s", diff)
	}
}

// awaitEvents waits until d got these events, and no others. A try to connect that a busy machine is too slow for adds
// one before the connection.
func (d *driver) awaitEvents(tb testing.TB, want ...string) {
	tb.Helper()
	var got []string
	testenv.Eventually(tb, func() bool {
		_, more := d.take()
		for _, event := range more {
			n := len(got)
			if n < len(want) && want[n] == "SyncConnected 1" && event == "Disconnected 1" {
				continue
			}
			got = append(got, event)
		}
		return len(got) >= len(want)
	}, fmt.Sprint("events ", want))
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("events (-want +got):\n%s", diff)
	}
}

// javaClass is what Java names the traces of an operation after.
func javaClass(name string) string {
	switch {
	case strings.HasPrefix(name, "create"):
		return "CreateBuilderImpl"
	case strings.HasPrefix(name, "delete"):
		return "DeleteBuilderImpl"
	case strings.HasPrefix(name, "check exists"):
		return "ExistsBuilderImpl"
	case strings.HasPrefix(name, "set data"):
		return "SetDataBuilderImpl"
	case strings.HasPrefix(name, "remove"):
		return "RemoteWatches"
	}
	return map[string]string{
		"get data": "GetDataBuilderImpl", "get children": "GetChildrenBuilderImpl", "get ACL": "GetACLBuilderImpl",
		"set ACL": "SetACLBuilderImpl", "sync": "SyncBuilderImpl", "transaction": "CuratorMultiTransactionImpl",
		"add watch": "AddWatchBuilderImpl", "get config": "GetConfigBuilderImpl", "reconfig": "ReconfigBuilderImpl",
	}[name]
}

// As in Java, a foreground operation is reported when it has succeeded, and a background operation in any case.
func TestDriverGetsOperations(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	for _, failures := range []bool{false, true} {
		d := &driver{}
		opts := []framework.Option{tracing.WithDriver(d)}
		if failures {
			opts = append(opts, tracing.WithDriverFailures())
		}
		client := connectClient(t, connect, opts...)
		d.wantOperations(t, "blockUntilConnectedOrTimedOut")
		ctx := testenv.Context(t)
		succeeded, failed := 0, 0
		for i, op := range operations {
			p := fmt.Sprintf("/n-%v-%d", failures, i)
			err := op.foreground(ctx, client, p)
			var want []string
			if err == nil || failures {
				want = []string{javaClass(op.name) + "-Foreground"}
			}
			if err == nil {
				succeeded++
			} else {
				failed++
			}
			d.wantOperations(t, want...)
			_ = wait(t, func(cb callbacks.BackgroundCallback) error { return op.background(ctx, client, p, cb) })
			class := javaClass(op.name)
			if op.name == "get config" {
				class = "GetDataBuilderImpl" // Java's slip
			}
			d.wantOperations(t, class+"-Background")
		}
		if succeeded == 0 || failed == 0 {
			t.Errorf("%d have succeeded and %d failed", succeeded, failed)
		}
	}
}

func TestDriverGetsEachBackgroundAttempt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		way        string
		cuts       int
		operations []string
		events     []string
	}{
		{"foreground", 1, []string{"GetDataBuilderImpl-Foreground"}, []string{"retries-allowed 1"}},
		{"foreground", 2, nil, []string{"retries-allowed 1", "retries-disallowed 1"}},
		{"background", 1, slices.Repeat([]string{"GetDataBuilderImpl-Background"}, 2), []string{"retries-allowed 1"}},
		{
			"background", 2, slices.Repeat([]string{"GetDataBuilderImpl-Background"}, 2),
			[]string{"background-exceptions 1", "retries-allowed 1", "retries-disallowed 1"},
		},
	} {
		t.Run(fmt.Sprintf("%s, %d losses", tt.way, tt.cuts), func(t *testing.T) {
			t.Parallel()
			proxy, connect := newProxy(t)
			d := &driver{}
			client := connectClient(t, connect, tracing.WithDriver(d),
				framework.WithRetryPolicy(retry.OneTime(time.Millisecond)))
			recorded := make(chan error, 1)
			client.AddUnhandledErrorListener(onUnhandled(recorded))
			d.take()
			cut(t, proxy, curatortest.CutBefore, "getData", tt.cuts)
			err := bothWays[tt.way](t, client)
			if lost := tt.cuts == 2; (err != nil) != lost {
				t.Errorf("error is %v", err)
			}
			if tt.way == "background" && err != nil {
				receive(t, recorded)
			}
			closeClient(t, client) // events come on a goroutine of their own
			operations, events := d.take()
			if last := len(operations) - 1; last >= 0 && operations[last] == "EventListener" { // that of the closing
				operations = operations[:last:last]
			}
			if diff := cmp.Diff(tt.operations, operations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
			events = slices.DeleteFunc(events, func(e string) bool { // other tests have these
				return strings.HasPrefix(e, "Disconnected") || strings.HasPrefix(e, "SyncConnected")
			})
			slices.Sort(events)
			if diff := cmp.Diff(tt.events, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDriverGetsConnectionEvents(t *testing.T) {
	t.Parallel()
	first, connect := newProxy(t)
	second := proxyTo(t, testenv.Addr(t))
	servers := newProvider(connect, true)
	d := &driver{}
	client, recorded := connectRecorded(t, "", framework.WithEnsembleProvider(servers), tracing.WithDriver(d))
	d.awaitEvents(t, "SyncConnected 1")
	servers.SetConnectionString(second.Addr() + chrootOf(connect))
	first.Faults().CutAll()
	recorded.want(t, suspended, reconnected)
	d.awaitEvents(t, "Disconnected 1", "connection-string-changed 1", "SyncConnected 1")
	restore := outage(second)
	recorded.want(t, suspended)
	expire(t, client)
	restore()
	recorded.want(t, lost, reconnected)
	d.awaitEvents(t, "Disconnected 1", "session-expired 1", "SyncConnected 1")
	d.take()
	done := newEvents()
	client.AddCuratorListener(done.callback)
	must(t, client.Sync().InBackground(nil).ForPath(testenv.Context(t), "/"))
	must(t, receive(t, done).Err)
	recorded.end(t, client)
	d.wantOperations(t, "SyncBuilderImpl-Background", "EventListener", "EventListener") // that of the closing too
}

// advancedDriver wants to know more.
type advancedDriver struct {
	driver
	traces chan tracing.OperationTrace
	marks  chan tracing.EventTrace
}

func (d *advancedDriver) AddOperation(t tracing.OperationTrace) { d.traces <- t }
func (d *advancedDriver) AddEvent(e tracing.EventTrace)         { d.marks <- e }

func TestAdvancedDriverReplacesSimpleOne(t *testing.T) {
	t.Parallel()
	d := &advancedDriver{traces: make(chan tracing.OperationTrace, 100), marks: make(chan tracing.EventTrace, 100)}
	client := connectClient(t, testenv.ConnectString(t), tracing.WithDriver(d),
		framework.WithPathFormatter(func(string) string { return "" }))
	session := client.SessionID()
	want := tracing.EventTrace{Name: "SyncConnected", SessionID: session}
	first := receive(t, d.marks)
	if first.Name == "Disconnected" { // of a slow first try
		first = receive(t, d.marks)
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if first := receive(t, d.traces); first.Name != "blockUntilConnectedOrTimedOut" || first.ResponseChildren != -1 {
		t.Errorf("got %+v", first)
	}
	create(t, client, "/n", "data")
	receive(t, d.traces)
	create(t, client, "/n/m", "")
	receive(t, d.traces)
	ctx := testenv.Context(t)
	_, err := client.GetChildren().UsingWatcher(nobody).ForPath(ctx, "/n")
	must(t, err)
	got := receive(t, d.traces)
	if got.Stat == nil || got.Stat.NumChildren != 1 || got.RequestBytes <= 0 || got.ResponseBytes <= 0 ||
		got.Latency <= 0 {
		t.Errorf("got %+v", got)
	}
	got.Stat, got.RequestBytes, got.ResponseBytes, got.Latency = nil, 0, 0, 0
	list := tracing.OperationTrace{
		Name: "GetChildrenBuilderImpl-Foreground", Path: "/n", WithWatcher: true, ResponseChildren: 1, SessionID: session,
	}
	if diff := cmp.Diff(list, got); diff != "" {
		t.Errorf("operation (-want +got):\n%s", diff)
	}
	_, err = client.Transaction().ForOperations(ctx, client.TransactionOp().Check().ForPath("/n"),
		client.TransactionOp().Check().ForPath("/n/m"))
	must(t, err)
	if got := receive(t, d.traces); got.Transactions != 2 || got.ResponseChildren != -1 {
		t.Errorf("got %+v", got)
	}
	closeClient(t, client)
	if operations, events := d.take(); len(operations)+len(events) > 0 {
		t.Errorf("the simple methods are called for %v and %v", operations, events)
	}
}

// askingDriver looks at its client.
type askingDriver struct {
	driver
	client *framework.Client
}

func (d *askingDriver) AddCount(name string, n int) {
	d.client.SessionID()
	d.driver.AddCount(name, n)
}

func TestDriverMayCallClient(t *testing.T) {
	t.Parallel()
	d := &askingDriver{}
	client := newClient(t, testenv.ConnectString(t), tracing.WithDriver(d))
	d.client = client
	start(t, client)
	ended := make(chan error, 1)
	go func() { ended <- client.BlockUntilConnected(testenv.Context(t)) }()
	must(t, receive(t, ended))
}

// The server has created the node, and the answer is lost: it is looked for, and deleted, behind the back of the
// caller.
func TestDriverGetsSearchForLostProtectedNode(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	d := &driver{}
	client := connectClient(t, connect, tracing.WithDriver(d),
		framework.WithRetryPolicy(onlyOnce{retry.OneTime(time.Millisecond)}))
	d.take()
	cut(t, proxy, curatortest.CutAfter, "create2", 1)
	_, err := client.Create().WithProtection().ForPath(testenv.Context(t), "/n", nil)
	wantErr(t, "create", err, framework.ErrConnectionLoss)
	var got []string
	testenv.Eventually(t, func() bool {
		operations, _ := d.take()
		got = append(got, operations...)
		return len(got) >= 2
	}, "the search and the deletion")
	want := []string{"DeleteBuilderImpl-Background", "FindAndDeleteProtectedNodeInBackground"}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	names, err := client.GetChildren().ForPath(testenv.Context(t), "/")
	must(t, err)
	if len(names) != 0 {
		t.Errorf("%v is left", names)
	}
}
