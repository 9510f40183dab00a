package docs_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/tracing"
)

// TestSnippetsAreCompiled checks that every Go snippet of the pages is in the files snippets*_test.go, or in an
// example.
func TestSnippetsAreCompiled(t *testing.T) {
	var compiled strings.Builder
	for _, name := range glob(t, "snippets*_test.go", "../examples/clientgo/*.go", "../examples/quickstart/*.go",
		"../examples/pipeline/*.go") {
		compiled.WriteString(normalized(readPage(t, name)))
	}
	for _, name := range append(glob(t, "*.md", "design/*.md", "porting/*.md"), "../README.md") {
		for line := range strings.Lines(readPage(t, name)) {
			if fence := strings.TrimSpace(line); strings.HasPrefix(fence, "```") && strings.Contains(fence, " ") {
				t.Errorf("%s: no code on the line of a fence, where goSnippets misses it: %s", name, fence)
			}
		}
		for _, snippet := range goSnippets(readPage(t, name)) {
			if !strings.Contains(compiled.String(), normalized(snippet)) {
				t.Errorf("of %s, not in snippets*_test.go or an example:\n%s", name, snippet)
			}
		}
	}
}

func glob(t *testing.T, patterns ...string) (names []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Fatalf("no %s", pattern)
		}
		names = append(names, found...)
	}
	return names
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goSnippets returns the text of all blocks of Go in a page. A line of … leaves code out: it ends one snippet and
// begins the next.
func goSnippets(page string) []string {
	var snippets []string
	var snippet strings.Builder
	inside := false
	for line := range strings.Lines(page) {
		switch text := strings.TrimSpace(line); {
		case !inside:
			inside = text == "```go"
		case text == "```", text == "…":
			inside = text == "…"
			snippets = append(snippets, snippet.String())
			snippet.Reset()
		default:
			snippet.WriteString(line)
		}
	}
	return snippets
}

// normalized returns text with a single space between words.
func normalized(text string) string { return strings.Join(strings.Fields(text), " ") }

// What the snippets call.
var (
	work         = func(ctx context.Context, token int64) error { return ctx.Err() }
	write        = func(ctx context.Context) error { return ctx.Err() }
	lead         = func(ctx context.Context, token int64) error { return ctx.Err() }
	inOneSession = func(ctx context.Context) error { return ctx.Err() }
	changed      = func(path string) {}
	handle       = func(ev callbacks.Event) {}
	pause        = func() {}
	resume       = func() {}
	giveUp       = func() {}
	stopWork     = func() {}
	observe      = func(name string, took time.Duration) {}
	count        = func(name string) {}
	log          = slog.New(slog.DiscardHandler)
)

// store is what a lock guards.
type store interface {
	Write(ctx context.Context, value []byte) error
}

// use takes what a snippet leaves unused.
func use(...any) {}

var _ = []any{
	aClient, namespaces, create, remove, exists, data, children, acl, syncNode, ensemble, background, watchers,
	persistentWatch, chanWatcher, watcherRemoving, listeners, transactions, oldTransactions, retries, sessions, mutex,
	timeLimit, transfer, revocable, revoke, closing, providers, driver, guarded, leases, takesPart, takesTurns,
	fencedByLock, fencedByLead,
}

func aClient(ctx context.Context) error {
	client, err := framework.New("zk1:2181,zk2:2181/app",
		framework.WithSessionTimeout(30*time.Second),
		framework.WithConnectionTimeout(5*time.Second),
		framework.WithRetryPolicy(
			retry.ExponentialBackoff(time.Second, 3)),
		framework.WithAuth("digest", []byte("user:pw")))
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	defer client.Close()
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := client.BlockUntilConnected(wait); err != nil {
		return err
	}
	return nil
}

func namespaces(ctx context.Context, client *framework.Client, data []byte) error {
	app := client.UsingNamespace("app")
	// creates /app/config
	_, err := app.Create().ForPath(ctx, "/config", data)
	if err != nil {
		return err
	}
	root := app.UsingNamespace("")
	back, err := root.GetData().ForPath(ctx, "/app/config")
	use(back)
	return err
}

func create(ctx context.Context, client *framework.Client, data []byte) {
	{
		var stat zk.Stat
		path, err := client.Create().
			StoringStatIn(&stat).
			CreatingParentContainersIfNeeded().
			WithProtection().
			WithMode(builders.EphemeralSequential).
			WithACL(zk.AuthACL(zk.PermAll)...).
			ForPath(ctx, "/members/m-", data)
		use(path, err)
	}
	{
		// the default data
		_, err := client.Create().ForPath(ctx, "/default", nil)
		use(err)
	}
	{
		_, err := client.Create().ForPath(ctx, "/empty", []byte{})
		use(err)
	}
	{
		_, err := client.Create().OrSetData().
			ForPath(ctx, "/either", data)
		use(err)
	}
	{
		_, err := client.Create().WithTTL(time.Minute).
			WithMode(builders.PersistentWithTTL).
			ForPath(ctx, "/gone-in-a-minute", data)
		use(err)
	}
}

func remove(ctx context.Context, client *framework.Client) {
	{
		err := client.Delete().Guaranteed().
			DeletingChildrenIfNeeded().
			ForPath(ctx, "/tree")
		use(err)
	}
	{
		err := client.Delete().WithVersion(3).ForPath(ctx, "/a")
		use(err)
	}
	{
		err := client.Delete().Quietly().ForPath(ctx, "/maybe")
		use(err)
	}
}

func exists(ctx context.Context, client *framework.Client) error {
	stat, err := client.CheckExists().ForPath(ctx, "/a")
	if err != nil {
		return err
	}
	if stat == nil {
		return nil // no such node
	}
	return nil
}

func data(ctx context.Context, client *framework.Client) {
	var stat zk.Stat
	data, err := client.GetData().
		StoringStatIn(&stat).
		ForPath(ctx, "/a")
	use(err)
	{
		now, err := client.SetData().
			WithVersion(stat.Version).
			ForPath(ctx, "/a", data)
		use(now, err)
	}
	{
		_, err := client.SetData().Compressed().
			ForPath(ctx, "/packed", data)
		use(err)
	}
	{
		data, err := client.GetData().
			Decompressed().
			ForPath(ctx, "/packed")
		use(data, err)
	}
}

func children(ctx context.Context, client *framework.Client) error {
	names, err := client.GetChildren().ForPath(ctx, "/members")
	if err != nil {
		return err
	}
	slices.Sort(names)
	return nil
}

func acl(ctx context.Context, client *framework.Client) {
	{
		acl, err := client.GetACL().ForPath(ctx, "/a")
		use(acl, err)
	}
	{
		stat, err := client.SetACL().WithVersion(2).
			WithACL(zk.WorldACL(zk.PermRead)...).
			ForPath(ctx, "/a")
		use(stat, err)
	}
}

func syncNode(ctx context.Context, client *framework.Client) {
	err := client.Sync().ForPath(ctx, "/a")
	use(err)
}

func ensemble(ctx context.Context, client *framework.Client) {
	{
		config, err := client.GetConfig().ForEnsemble(ctx)
		use(config, err)
	}
	{
		config, err := client.Reconfig().
			Joining("server.4=zk4:2888:3888;2181").
			Leaving("2").
			ForEnsemble(ctx)
		use(config, err)
	}
	{
		client, err := framework.New("", framework.WithEnsembleProvider(
			framework.DNSEnsemble("zk-headless.app.svc:2181"))) // or SRVEnsemble("_zookeeper._tcp.example.com")
		use(client, err)
	}
}

func background(ctx context.Context, client *framework.Client, data []byte, order string) {
	err := client.SetData().
		InBackground(func(ctx context.Context, ev callbacks.Event) {
			if errors.Is(ev.Err, zk.ErrNoNode) {
				log.WarnContext(ctx, "no node", "path", ev.Path, "order", order)
			}
		}).
		ForPath(ctx, "/a", data)
	use(err)
}

func watchers(ctx context.Context, client *framework.Client) error {
	watcher := callbacks.NewWatcher(func(ctx context.Context, ev zk.Event) {
		if ev.Type != zk.EventSession {
			changed(ev.Path)
		}
	})
	data, err := client.GetData().
		UsingWatcher(watcher).ForPath(ctx, "/a")
	if err != nil {
		return err
	}
	err = client.Watches().Remove(watcher).
		ForPath(ctx, "/a")
	use(data)
	return err
}

func persistentWatch(ctx context.Context, client *framework.Client, watcher *callbacks.Watcher) {
	err := client.Watches().Add().
		WithMode(builders.PersistentRecursiveWatch).
		UsingWatcher(watcher).
		ForPath(ctx, "/tree")
	use(err)
}

func chanWatcher(ctx context.Context, client *framework.Client) error {
	events := make(chan zk.Event, 1)
	watcher := callbacks.NewChanWatcher(events)
	for {
		stat, err := client.CheckExists().
			UsingWatcher(watcher).ForPath(ctx, "/ready")
		if err != nil {
			return err
		}
		if stat != nil {
			return nil
		}
		select {
		case <-events: // look again, whatever it was
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func watcherRemoving(ctx context.Context, client *framework.Client, watcher *callbacks.Watcher) {
	view := client.WatcherRemoving()
	data, err := view.GetData().
		UsingWatcher(watcher).ForPath(ctx, "/a")
	view.RemoveWatchers(ctx)
	use(data, err)
}

func listeners(client *framework.Client) {
	remove := client.AddConnectionStateListener(
		func(ctx context.Context, state framework.ConnectionState) {
			switch state {
			case framework.Suspended:
				pause()
			case framework.Reconnected:
				resume()
			case framework.Lost:
				giveUp()
			}
		})
	defer remove()

	client.AddCuratorListener(
		func(ctx context.Context, ev callbacks.Event) { handle(ev) })
	client.AddUnhandledErrorListener(
		func(ctx context.Context, e framework.UnhandledError) {
			log.ErrorContext(ctx, e.Message, "error", e.Err)
		})
}

func transactions(ctx context.Context, client *framework.Client, data []byte) error {
	results, err := client.Transaction().ForOperations(ctx,
		client.TransactionOp().Check().
			WithVersion(4).ForPath("/a"),
		client.TransactionOp().Create().
			ForPath("/a/b", data),
		client.TransactionOp().Delete().
			ForPath("/old"))
	if err != nil {
		return err // results say which operation failed
	}
	path := results[1].ResultPath
	use(path)
	return nil
}

func oldTransactions(ctx context.Context, client *framework.Client, data []byte) {
	op := client.TransactionOp()
	_, err := client.Transaction().ForOperations(ctx,
		op.Create().ForPath("/a", nil),
		op.SetData().ForPath("/b", data))
	use(err)
}

func retries(ctx context.Context, client *framework.Client) {
	var sum int
	err := client.CallWithRetry(ctx, func(ctx context.Context) error {
		a, err := client.GetData().ForPath(ctx, "/a")
		if err != nil {
			return err
		}
		b, err := client.GetData().ForPath(ctx, "/b")
		sum = len(a) + len(b)
		return err
	})
	use(sum, err)
}

func sessions(ctx context.Context, client *framework.Client) {
	again := true // Mode.RETRY; false is Mode.FAIL
	err := client.CallInSession(ctx, again,
		func(ctx context.Context) error {
			return inOneSession(ctx)
		})
	use(err)
}

func mutex(ctx context.Context, client *framework.Client) error {
	mu := locks.NewInterProcessMutex(client, "/lock")
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Release(hold.Context())
	return work(hold.Context(), hold.Token())
}

func timeLimit(ctx context.Context, mu *locks.InterProcessMutex) error {
	hold, err := mu.TryAcquire(ctx, 2*time.Second)
	switch {
	case errors.Is(err, locks.ErrNotAcquired):
		return nil // another contender has it
	case err != nil:
		return err
	}
	defer hold.Release(hold.Context())
	return work(hold.Context(), hold.Token())
}

func transfer(ctx context.Context, mu *locks.InterProcessMutex) error {
	ctx = locks.WithOwner(ctx) // once, where a thread began in Java
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Release(hold.Context())
	return book(hold.Context(), mu)
}

func book(ctx context.Context, mu *locks.InterProcessMutex) error {
	hold, err := mu.Acquire(ctx) // the same owner
	if err != nil {
		return err
	}
	defer hold.Release(hold.Context())
	return write(hold.Context())
}

func revocable(ctx context.Context, mu *locks.InterProcessMutex) {
	mu.MakeRevocable(func(hold *locks.Hold) { stopWork() })
	hold, err := mu.Acquire(ctx)
	use(hold, err)
}

func revoke(ctx context.Context, client *framework.Client, mu *locks.InterProcessMutex) error {
	nodes, err := mu.ParticipantNodes(ctx)
	if err != nil || len(nodes) == 0 {
		return err
	}
	return locks.Revoke(ctx, client, nodes[0])
}

func guarded(ctx context.Context, mu *locks.InterProcessMutex, store store, value []byte) error {
	err := locks.Do(ctx, mu, func(ctx context.Context) error {
		return store.Write(ctx, value) // ctx ends when the lock is lost
	})
	return err
}

func leases(client *framework.Client, shared locks.LeaseCount, hostname string) {
	connections := locks.NewInterProcessSemaphoreV2(client, "/db/connections", 0,
		locks.WithLeaseCount(shared), locks.WithLeaseData([]byte(hostname)))
	use(connections)
}

func takesPart(ctx context.Context, client *framework.Client, hostname string) error {
	latch := leader.NewLeaderLatch(client, "/leader", leader.WithID(hostname))
	if err := latch.Start(); err != nil {
		return err
	}
	defer latch.Close()
	for {
		leadership, err := latch.Await(ctx)
		if err != nil {
			return err // ctx has ended, or the latch was closed
		}
		lead(leadership.Context(), leadership.Token()) // until the context ends
	}
}

func takesTurns(client *framework.Client, hostname string) {
	selector := leader.NewLeaderSelector(client, "/leader", func(ctx context.Context) error {
		return lead(ctx, leader.LeadershipOf(ctx).Token())
	}, leader.WithAutoRequeue(), leader.WithID(hostname))
	use(selector)
}

func closing(client *framework.Client) error {
	if err := client.Close(); err != nil {
		return err // a callback is still running
	}
	return nil
}

func providers(tracers trace.TracerProvider, meters metric.MeterProvider) {
	client, err := framework.New("zk1:2181",
		framework.WithTracerProvider(tracers),
		framework.WithMeterProvider(meters))
	use(client, err)
}

type recorder struct{ tracing.Discard }

func (recorder) AddOperation(t tracing.OperationTrace) {
	observe(t.Name, t.Latency)
}

func (recorder) AddEvent(t tracing.EventTrace) {
	count(t.Name)
}

func driver() {
	client, err := framework.New("zk1:2181",
		tracing.WithDriver(recorder{}))
	use(client, err)
}

func fencedByLock(ctx context.Context, mu locks.InterProcessLock, data []byte) error {
	err := locks.Do(ctx, mu, func(ctx context.Context) error {
		_, err := locks.HoldOf(ctx).Client().SetData().ForPath(ctx, "/orders/next", data)
		if errors.Is(err, framework.ErrUncertain) {
			return err // it may have been written: read the node, and decide
		}
		return err // errors.Is(err, locks.ErrLockLost): nothing was written
	})
	return err
}

func fencedByLead(ctx context.Context, latch *leader.LeaderLatch, plan []byte) error {
	leadership, err := latch.Await(ctx)
	if err != nil {
		return err
	}
	_, err = leadership.Client().SetData().ForPath(ctx, "/plan", plan)
	if errors.Is(err, framework.ErrUncertain) {
		return err // it may have been written: read the node, and decide
	}
	if errors.Is(err, leader.ErrLeadershipLost) {
		return err // nothing was written
	}
	return err
}
