package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/recipes/locks"
)

// observed returns a connected client that is observed, and one on the same nodes that is not. Their sessions outlast
// what a busy machine does to them.
func observed(tb testing.TB) (o *observe.Observer, client, silent *framework.Client) {
	tb.Helper()
	connect := testenv.ConnectString(tb)
	patient := framework.WithSessionTimeout(30 * time.Second)
	o = observe.New(tb)
	client = newClient(tb, connect, patient,
		framework.WithTracerProvider(o.Tracers), framework.WithMeterProvider(o.Meters))
	silent = newClient(tb, connect, patient)
	for _, c := range []*framework.Client{client, silent} {
		if err := c.BlockUntilConnected(testenv.Context(tb)); err != nil {
			tb.Fatal(err)
		}
	}
	awaitSpans(tb, o, "curator.connect", 1)
	return o, client, silent
}

// awaitSpans waits until so many spans of a name have ended, and returns them.
func awaitSpans(tb testing.TB, o *observe.Observer, name string, n int) []sdktrace.ReadOnlySpan {
	tb.Helper()
	testenv.Eventually(tb, func() bool { return len(o.Named(name)) >= n }, fmt.Sprintf("%d times %s", n, name))
	return o.Named(name)
}

// wantTree waits for as many spans as there are lines, beside the one of the connection, and compares them. A line
// REQUESTS stands for the operations of a wait: how many a semaphore needs is not what these tests are about.
func wantTree(tb testing.TB, o *observe.Observer, want string, keys ...attribute.Key) {
	tb.Helper()
	want = "curator.connect\n" + strings.TrimLeft(want, "\n")
	tree := func() string { return o.Tree(keys...) }
	if strings.Contains(want, "    REQUESTS\n") {
		requests := regexp.MustCompile(`(?m)(^    \S+( \S+)? CLIENT\n)+`)
		tree = func() string { return requests.ReplaceAllString(o.Tree(keys...), "    REQUESTS\n") }
	}
	defer func() {
		if diff := cmp.Diff(want, tree()); diff != "" {
			tb.Errorf("spans (-want +got):\n%s", diff)
		}
	}()
	lines := strings.Count(want, "\n")
	testenv.Eventually(tb, func() bool { return strings.Count(tree(), "\n") >= lines }, "all spans")
}

// wantValues compares the series of a metric.
func wantValues(tb testing.TB, o *observe.Observer, name, want string) {
	tb.Helper()
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), o.Values(tb, name)); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// awaitNoTurn waits until the turn of a semaphore is free: it is handed over in the background.
func awaitNoTurn(tb testing.TB, client *framework.Client) {
	tb.Helper()
	testenv.Eventually(tb, func() bool {
		turns, err := client.GetChildren().ForPath(testenv.Context(tb), lockPath+"/locks")
		return len(turns) == 0 && (err == nil || errors.Is(err, zk.ErrNoNode))
	}, "the turn is free")
}

// lay creates what a lock has its nodes in, not as containers, which the server removes when they are empty.
func lay(tb testing.TB, client *framework.Client, recipe string) {
	tb.Helper()
	paths := []string{lockPath, lockPath + "-too"}
	if recipe == "semaphore_mutex" {
		paths = []string{lockPath + "/locks", lockPath + "/leases"}
	}
	for _, path := range paths {
		if _, err := client.Create().CreatingParentsIfNeeded().ForPath(testenv.Context(tb), path, nil); err != nil {
			tb.Fatal(err)
		}
	}
}

var outcomeOfWait = []attribute.Key{
	"curator.recipe", "curator.resource.name", "curator.lock.position", "curator.lock.reentrant", "curator.outcome",
}

// observedLocks are the locks that one holder at a time has.
var observedLocks = map[string]func(*framework.Client) locks.InterProcessLock{
	"mutex": func(c *framework.Client) locks.InterProcessLock {
		return locks.NewInterProcessMutex(c, lockPath, locks.WithName("orders"))
	},
	"rw_read": func(c *framework.Client) locks.InterProcessLock {
		return locks.NewInterProcessReadWriteLock(c, lockPath, locks.WithName("orders")).ReadLock()
	},
	"rw_write": func(c *framework.Client) locks.InterProcessLock {
		return locks.NewInterProcessReadWriteLock(c, lockPath, locks.WithName("orders")).WriteLock()
	},
	"semaphore_mutex": func(c *framework.Client) locks.InterProcessLock {
		return locks.NewInterProcessSemaphoreMutex(c, lockPath, locks.WithName("orders"))
	},
	"multi_lock": func(c *framework.Client) locks.InterProcessLock {
		return locks.NewInterProcessMultiLock(
			locks.NewInterProcessMutex(c, lockPath, locks.WithName("orders")),
			locks.NewInterProcessMutex(c, lockPath+"-too"),
		)
	},
}

// acquireTree returns the spans of an acquire behind so many others, and of the hold.
func acquireTree(recipe string, ahead int, requests ...string) string {
	return fmt.Sprintf(`
lock acquire %[1]s curator.lock.position=%[2]d curator.outcome=acquired
  %[3]s
lock hold %[1]s curator.outcome=released -> lock acquire
`, recipe, ahead, strings.Join(requests, "\n  "))[1:]
}

// requestTree returns the spans of a request that acquires one of observedLocks behind so many others, works and
// releases it.
func requestTree(recipe string, ahead int, work ...string) string {
	const orders = " curator.resource.name=orders"
	alone := []string{"create CLIENT", "getChildren CLIENT"}
	all := alone
	if ahead > 0 {
		all = slices.Concat(alone, []string{"getData CLIENT", "getChildren CLIENT"})
	}
	var tree string
	releases := []string{"delete CLIENT"}
	switch recipe {
	case "semaphore_mutex": // whose turn is free
		tree = acquireTree("curator.recipe="+recipe+orders, 0, "REQUESTS")
	case "multi_lock": // whose first lock alone is held
		parts := acquireTree("curator.recipe=mutex"+orders, ahead, all...) + acquireTree("curator.recipe=mutex", 0, alone...)
		tree = "lock acquire curator.recipe=multi_lock curator.outcome=acquired\n" + indented(parts) +
			"lock hold curator.recipe=multi_lock curator.outcome=released -> lock acquire\n"
		releases = append(releases, releases...)
	default:
		tree = acquireTree("curator.recipe="+recipe+orders, ahead, all...)
	}
	return "request\n" + indented(tree+strings.Join(slices.Concat(work, releases), "\n")+"\n")
}

func indented(lines string) (more string) {
	for line := range strings.Lines(lines) {
		more += "  " + line
	}
	return more
}

// TestTelemetryAcquireWorkReleaseAreOneTrace has locks whose nodes exist, without other contenders.
func TestTelemetryAcquireWorkReleaseAreOneTrace(t *testing.T) {
	t.Parallel()
	for recipe := range observedLocks {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			o, client, silent := observed(t)
			lay(t, silent, recipe)
			ctx, request := o.Start(testenv.Context(t), "request")
			hold := acquire(t, ctx, observedLocks[recipe](client))
			if _, err := client.CheckExists().ForPath(hold.Context(), "/work"); err != nil {
				t.Error(err)
			}
			if err := hold.Release(ctx); err != nil {
				t.Error(err)
			}
			request.End()
			wantTree(t, o, requestTree(recipe, 0, "exists CLIENT"), outcomeOfWait...)
			for _, span := range append(o.Named("lock acquire"), o.Named("lock hold")...) {
				if span.Status().Code != codes.Unset {
					t.Errorf("%s has the status %v", span.Name(), span.Status())
				}
			}
		})
	}
}

// TestTelemetryAcquireWithoutTraceStartsTrace has the release called without the context of the hold, as in a defer.
func TestTelemetryAcquireWithoutTraceStartsTrace(t *testing.T) {
	t.Parallel()
	o, client, silent := observed(t)
	lay(t, silent, "mutex")
	hold := acquire(t, testenv.Context(t), observedLocks["mutex"](client))
	if err := hold.Release(testenv.Context(t)); err != nil {
		t.Error(err)
	}
	wantTree(t, o, `
lock acquire
  create CLIENT
  getChildren CLIENT
  lock hold -> lock acquire
  delete CLIENT
`)
}

// TestTelemetryWaitIsOneSpan has the lock held by another client until the wait has begun.
func TestTelemetryWaitIsOneSpan(t *testing.T) {
	t.Parallel()
	for recipe := range observedLocks {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			o, client, silent := observed(t)
			first := observedLocks[recipe]
			if recipe == "rw_read" { // readers do not wait for readers
				first = observedLocks["rw_write"]
			}
			lay(t, silent, recipe)
			held := acquire(t, testenv.Context(t), first(silent))
			awaitNoTurn(t, silent)
			ctx, request := o.Start(testenv.Context(t), "request")
			got := make(chan *locks.Hold)
			go func() {
				defer close(got)
				hold, err := observedLocks[recipe](client).Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				got <- hold
			}()
			if recipe == "semaphore_mutex" { // the server does not list its watch: it is set with the second list
				awaitSpans(t, o, "getChildren", 2)
			} else {
				awaitSpans(t, o, "getData", 1)
			}
			release(t, held)
			if hold := <-got; hold != nil {
				if err := hold.Release(ctx); err != nil {
					t.Error(err)
				}
			}
			request.End()
			wantTree(t, o, requestTree(recipe, 1), outcomeOfWait...)
		})
	}
}

func TestTelemetryAcquireNIsOneWaitAndHoldPerLease(t *testing.T) {
	t.Parallel()
	o, client, silent := observed(t)
	lay(t, silent, "semaphore_mutex")
	ctx, request := o.Start(testenv.Context(t), "request")
	s := locks.NewInterProcessSemaphoreV2(client, lockPath, 3, locks.WithName("orders"))
	leases, err := s.AcquireN(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	wantValues(t, o, "curator.lock.held", `
curator.recipe=semaphore,curator.resource.name=orders 2
`)
	for _, l := range leases {
		if err := l.Return(ctx); err != nil {
			t.Error(err)
		}
	}
	request.End()
	wantTree(t, o, `
request
  lock acquire curator.recipe=semaphore curator.resource.name=orders curator.lock.position=0 `+
		`curator.outcome=acquired
    REQUESTS
  lock hold curator.recipe=semaphore curator.resource.name=orders curator.outcome=released -> lock acquire
  lock hold curator.recipe=semaphore curator.resource.name=orders curator.outcome=released -> lock acquire
  delete CLIENT
  delete CLIENT
`, outcomeOfWait...)
	wantValues(t, o, "curator.lock.held", `
curator.recipe=semaphore,curator.resource.name=orders 0
`)
}

func TestTelemetryReentryIsWaitWithoutHold(t *testing.T) {
	t.Parallel()
	o, client, silent := observed(t)
	lay(t, silent, "mutex")
	ctx, request := o.Start(locks.WithOwner(testenv.Context(t)), "request")
	mu := observedLocks["mutex"](client)
	outer := acquire(t, ctx, mu)
	inner := acquire(t, ctx, mu)
	for _, hold := range []*locks.Hold{outer, inner} { // in the unusual order
		if err := hold.Release(ctx); err != nil {
			t.Error(err)
		}
	}
	request.End()
	wantTree(t, o, `
request
  lock acquire curator.recipe=mutex curator.resource.name=orders curator.lock.position=0 curator.outcome=acquired
    create CLIENT
    getChildren CLIENT
  lock hold curator.recipe=mutex curator.resource.name=orders curator.outcome=released -> lock acquire
  lock acquire curator.recipe=mutex curator.resource.name=orders curator.lock.reentrant=true curator.outcome=acquired
  delete CLIENT
`, outcomeOfWait...)
	wantValues(t, o, "curator.lock.held", `
curator.recipe=mutex,curator.resource.name=orders 0
`)
	wantValues(t, o, "curator.lock.acquire.duration", `
curator.outcome=acquired,curator.recipe=mutex,curator.resource.name=orders 2
`)
	wantValues(t, o, "curator.lock.hold.duration", `
curator.outcome=released,curator.recipe=mutex,curator.resource.name=orders 1
`)
}

func TestTelemetryOutcomeOfFailedAcquire(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		acquire func(ctx context.Context, mu locks.InterProcessLock) error
		outcome string
	}{
		"another has it": {func(ctx context.Context, mu locks.InterProcessLock) error {
			_, err := mu.TryAcquire(ctx, 0)
			return err
		}, "timeout"},
		"the wait is over": {func(ctx context.Context, mu locks.InterProcessLock) error {
			_, err := mu.TryAcquire(ctx, 10*time.Millisecond)
			return err
		}, "timeout"},
		"the deadline has passed": {func(ctx context.Context, mu locks.InterProcessLock) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			_, err := mu.Acquire(ctx)
			return err
		}, "timeout"},
		"the caller has given up": {func(ctx context.Context, mu locks.InterProcessLock) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := mu.Acquire(ctx)
			return err
		}, "canceled"},
	}
	for _, recipe := range []string{"mutex", "rw_write", "semaphore_mutex", "multi_lock"} {
		for name, tt := range tests {
			t.Run(recipe+"/"+name, func(t *testing.T) {
				t.Parallel()
				o, client, silent := observed(t)
				held := acquire(t, testenv.Context(t), observedLocks[recipe](silent))
				defer release(t, held)
				if err := tt.acquire(testenv.Context(t), observedLocks[recipe](client)); err == nil {
					t.Fatal("acquired")
				}
				for _, span := range awaitSpans(t, o, "lock acquire", 1) {
					got := observe.Attribute(span, "curator.outcome").AsString()
					if got != tt.outcome || span.Status().Code != codes.Unset {
						t.Errorf("outcome %s, status %v", got, span.Status())
					}
				}
				if holds := o.Named("lock hold"); len(holds) != 0 {
					t.Errorf("%d holds", len(holds))
				}
				for name, m := range o.Metrics(t) {
					if name == "curator.lock.held" || name == "curator.lock.hold.duration" {
						t.Errorf("%s: %v", name, observe.Points(m))
					}
				}
			})
		}
	}
}

func TestTelemetryAcquireErrorIsSpanStatus(t *testing.T) {
	t.Parallel()
	o, client, _ := observed(t)
	ctx := locks.WithOwner(testenv.Context(t))
	rw := locks.NewInterProcessReadWriteLock(client, lockPath)
	hold := acquire(t, ctx, rw.ReadLock())
	if _, err := rw.WriteLock().Acquire(ctx); !errors.Is(err, locks.ErrUpgrade) {
		t.Fatalf("got %v", err)
	}
	release(t, hold)
	span := awaitSpans(t, o, "lock acquire", 2)[1]
	if got := observe.Attribute(span, "curator.outcome").AsString(); got != "error" || span.Status().Code != codes.Error {
		t.Errorf("outcome %s, status %v", got, span.Status())
	}
	if strings.Contains(span.Status().Description, lockPath) {
		t.Errorf("the status holds the path: %s", span.Status().Description)
	}
}

// loseSession ends the session of a client, and waits until the hold has ended with it.
func loseSession(tb testing.TB, client *framework.Client, hold *locks.Hold) {
	tb.Helper()
	if err := testenv.Server(tb).ExpireSession(client.SessionID()); err != nil {
		tb.Fatal(err)
	}
	if err := awaitEnd(tb, testenv.Context(tb), hold); !errors.Is(err, locks.ErrLockLost) {
		tb.Errorf("the hold has ended with %v", err)
	}
}

func TestTelemetryHoldSessionExpiredIsLost(t *testing.T) {
	t.Parallel()
	for recipe, lock := range observedLocks {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			o, client, _ := observed(t)
			ctx, request := o.Start(locks.WithOwner(testenv.Context(t)), "request")
			request.End()
			mu := lock(client)
			hold := acquire(t, ctx, mu)
			loseSession(t, client, hold)
			want := len(o.Named("lock acquire")) // of a multi lock there is one for each, too
			awaitSpans(t, o, "lock hold", want)
			if err := hold.Release(ctx); err != nil {
				t.Errorf("release: %v", err)
			}
			holds := o.Named("lock hold")
			if len(holds) != want {
				t.Errorf("%d holds are recorded, not %d", len(holds), want)
			}
			for _, h := range holds {
				if got := observe.Attribute(h, "curator.outcome").AsString(); got != "lost" {
					t.Errorf("outcome %s", got)
				}
				if h.SpanContext().TraceID() != request.SpanContext().TraceID() || len(h.Links()) != 1 {
					t.Errorf("a hold of the trace %v with %d links", h.SpanContext().TraceID(), len(h.Links()))
				}
			}
			for _, p := range observe.Points(o.Metrics(t)["curator.lock.held"]) {
				if p.Value != 0 {
					t.Errorf("held are %d with %v", p.Value, p.Attributes.ToSlice())
				}
			}
		})
	}
}

func TestTelemetryReentryAfterLossIsLost(t *testing.T) {
	t.Parallel()
	o, client, _ := observed(t)
	ctx := locks.WithOwner(testenv.Context(t))
	mu := observedLocks["mutex"](client)
	hold := acquire(t, ctx, mu)
	loseSession(t, client, hold)
	if _, err := mu.Acquire(ctx); !errors.Is(err, locks.ErrLockLost) {
		t.Fatalf("got %v", err)
	}
	span := awaitSpans(t, o, "lock acquire", 2)[1]
	if got := observe.Attribute(span, "curator.outcome").AsString(); got != "lost" || span.Status().Code != codes.Unset {
		t.Errorf("outcome %s, status %v", got, span.Status())
	}
	release(t, hold)
}

func TestTelemetryPositionIsContendersBefore(t *testing.T) {
	t.Parallel()
	o, client, silent := observed(t)
	ctx := testenv.Context(t)
	mu := observedLocks["mutex"](silent)
	held := acquire(t, ctx, mu)
	behind := make(chan *locks.Hold, 1)
	go func() {
		hold, err := mu.Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		behind <- hold
	}()
	awaitContenders(t, silent, 2)
	if _, err := observedLocks["mutex"](client).TryAcquire(ctx, 0); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("got %v", err)
	}
	release(t, held)
	if hold := <-behind; hold != nil {
		release(t, hold)
	}
	span := awaitSpans(t, o, "lock acquire", 1)[0]
	if got := observe.Attribute(span, "curator.lock.position").AsInt64(); got != 2 {
		t.Errorf("position %d", got)
	}
}

// atEnd calls a function when a span has ended, before its caller continues.
type atEnd func(span sdktrace.ReadOnlySpan)

func (atEnd) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (f atEnd) OnEnd(span sdktrace.ReadOnlySpan)              { f(span) }
func (atEnd) Shutdown(context.Context) error                  { return nil }
func (atEnd) ForceFlush(context.Context) error                { return nil }

// TestTelemetryRevokedHoldIsReleased requests the release of the hold, which comes before Acquire has returned.
func TestTelemetryRevokedHoldIsReleased(t *testing.T) {
	t.Parallel()
	o, client, silent := observed(t)
	ctx := testenv.Context(t)
	first := acquire(t, ctx, locks.NewInterProcessMutex(silent, lockPath))
	mu := locks.NewInterProcessMutex(client, lockPath)
	released := make(chan error, 1)
	mu.MakeRevocable(func(h *locks.Hold) { released <- h.Release(context.WithoutCancel(ctx)) })
	o.Tracers.RegisterSpanProcessor(atEnd(func(span sdktrace.ReadOnlySpan) {
		if span.Name() != "lock acquire" {
			return
		}
		select {
		case err := <-released:
			if err != nil {
				t.Error(err)
			}
		case <-ctx.Done():
			t.Error("there was no request")
		}
	}))
	granted := make(chan struct{})
	go func() {
		defer close(granted)
		if _, err := mu.Acquire(ctx); err != nil {
			t.Error(err)
		}
	}()
	awaitContenders(t, silent, 2)
	nodes, err := mu.ParticipantNodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := locks.Revoke(ctx, silent, nodes[1]); err != nil {
		t.Fatal(err)
	}
	release(t, first)
	<-granted
	span := awaitSpans(t, o, "lock hold", 1)[0]
	if got := observe.Attribute(span, "curator.outcome").AsString(); got != "released" {
		t.Errorf("outcome %s", got)
	}
	wantValues(t, o, "curator.lock.held", "curator.recipe=mutex 0\n")
}

func TestTelemetryDurationsHaveLockName(t *testing.T) {
	t.Parallel()
	o, client, silent := observed(t)
	ctx := testenv.Context(t)
	mu := observedLocks["mutex"](client)
	release(t, acquire(t, ctx, mu))
	held := acquire(t, ctx, observedLocks["mutex"](silent))
	if _, err := mu.TryAcquire(ctx, 0); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("got %v", err)
	}
	release(t, held)
	hold := acquire(t, ctx, locks.NewInterProcessMutex(client, "/somewhere/else"))
	wantValues(t, o, "curator.lock.held", `
curator.recipe=mutex 1
curator.recipe=mutex,curator.resource.name=orders 0
`)
	release(t, hold)
	wantValues(t, o, "curator.lock.held", `
curator.recipe=mutex 0
curator.recipe=mutex,curator.resource.name=orders 0
`)
	wantValues(t, o, "curator.lock.acquire.duration", `
curator.outcome=acquired,curator.recipe=mutex 1
curator.outcome=acquired,curator.recipe=mutex,curator.resource.name=orders 1
curator.outcome=timeout,curator.recipe=mutex,curator.resource.name=orders 1
`)
	wantValues(t, o, "curator.lock.hold.duration", `
curator.outcome=released,curator.recipe=mutex 1
curator.outcome=released,curator.recipe=mutex,curator.resource.name=orders 1
`)
	want := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	for _, p := range observe.Points(o.Metrics(t)["curator.lock.acquire.duration"]) {
		if diff := cmp.Diff(want, p.Bounds); diff != "" {
			t.Errorf("bounds (-want +got):\n%s", diff)
		}
	}
}

func TestTelemetryPathsAddNoSeries(t *testing.T) {
	t.Parallel()
	const paths, hands = 200, 8
	o, client, _ := observed(t)
	ctx := testenv.Context(t)
	var wg sync.WaitGroup
	for range hands {
		wg.Go(func() {
			for range paths / hands {
				mu := locks.NewInterProcessMutex(client, fmt.Sprintf("/locks-%x", rand.Uint64()))
				hold, err := mu.Acquire(ctx)
				if err == nil {
					err = hold.Release(ctx)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantValues(t, o, "curator.lock.acquire.duration", fmt.Sprintf(`
curator.outcome=acquired,curator.recipe=mutex %d
`, paths))
	for name, m := range o.Metrics(t) {
		// db.client.operation.duration has the most. A read of holds that last is among them.
		if n := len(observe.Points(m)); n > 6 {
			t.Errorf("%s has %d series", name, n)
		}
	}
	o.WantBounded(t)
}

// TestTelemetryOffAllocatesNothing covers all telemetry of acquire and release.
func TestTelemetryOffAllocatesNothing(t *testing.T) {
	ctx := testenv.Context(t)
	for name, off := range map[string]*telemetry.Telemetry{"none": nil, "off": telemetry.New(telemetry.Config{})} {
		lock := report.NewLock(off, "mutex", "orders", lockPath)
		allocations := testing.AllocsPerRun(100, func() {
			_, span := lock.Acquire(ctx)
			span.Position(1)
			span.Reentrant()
			span.End(report.Acquired, nil)
			lock.Hold(span).End(report.Released)
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}

func TestTelemetryHoldConnectionLostIsReleasedLater(t *testing.T) {
	t.Parallel()
	o, client, _ := observed(t)
	hold := acquire(t, testenv.Context(t), observedLocks["mutex"](client))
	if err := curatortest.DropConnection(testenv.Context(t), testenv.Addr(t), client.SessionID()); err != nil {
		t.Fatal(err)
	}
	awaitSpans(t, o, "curator.connection.outage", 1)
	if holds := o.Named("lock hold"); len(holds) != 0 {
		t.Errorf("%d holds have ended", len(holds))
	}
	release(t, hold)
	if got := observe.Attribute(awaitSpans(t, o, "lock hold", 1)[0], "curator.outcome").AsString(); got != "released" {
		t.Errorf("outcome %s", got)
	}
}

// meterVariable marks the process of TestTelemetryHoldBegunUnmeasuredEndsUnmeasured as such.
const meterVariable = "LOCKS_TEST_METER"

// TestTelemetryHoldBegunUnmeasuredEndsUnmeasured has the program set its meter provider, which a process does once,
// while a lock is held: its end is not to be counted without its beginning.
func TestTelemetryHoldBegunUnmeasuredEndsUnmeasured(t *testing.T) {
	if os.Getenv(meterVariable) == "" {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), meterVariable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	o := observe.New(t)
	tel := telemetry.New(telemetry.Config{TracerProvider: o.Tracers})
	lock, election := report.NewLock(tel, "mutex", "", lockPath), report.NewElection(tel, "leader_latch", "", "", lockPath)
	_, span := lock.Acquire(t.Context())
	span.End(report.Acquired, nil)
	hold := lock.Hold(span)
	electing, elected := election.Elect(t.Context())
	elected.End(report.Elected, nil)
	term := election.Term(electing)
	otel.SetMeterProvider(o.Meters)
	hold.End(report.Released)
	term.End(report.EndedClosed)
	for _, name := range []string{"curator.lock.held", "curator.leader.active", "curator.leader.changes"} {
		wantValues(t, o, name, "")
	}
	if len(o.Named("lock hold")) != 1 || len(o.Named("leader term")) != 1 {
		t.Errorf("spans:\n%s", o.Tree())
	}
}
