package framework_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patience is how long a test waits for what must come at once.
const patience = 60 * time.Second

// The states, as the tests read best.
const (
	connected   = framework.Connected
	suspended   = framework.Suspended
	reconnected = framework.Reconnected
	lost        = framework.Lost
	readOnly    = framework.ReadOnly
)

// newClient returns a client that is closed at the end of the test.
func newClient(tb testing.TB, connect string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	return testclient.New(tb, connect, append([]framework.Option{
		framework.WithSessionTimeout(10 * time.Second), framework.WithRetryPolicy(retry.NTimes(5, 10*time.Millisecond)),
	}, opts...)...)
}

func start(tb testing.TB, client *framework.Client) {
	tb.Helper()
	if err := client.Start(); err != nil {
		tb.Fatal(err)
	}
}

// startClient is newClient with Start.
func startClient(tb testing.TB, connect string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	client := newClient(tb, connect, opts...)
	start(tb, client)
	return client
}

// connectClient is startClient that waits for the connection.
func connectClient(tb testing.TB, connect string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	client := startClient(tb, connect, opts...)
	awaitConnected(tb, client)
	return client
}

func awaitConnected(tb testing.TB, client *framework.Client) {
	tb.Helper()
	if err := client.BlockUntilConnected(testenv.Context(tb)); err != nil {
		tb.Fatalf("no connection: %v", err)
	}
}

func closeClient(tb testing.TB, client *framework.Client) {
	tb.Helper()
	if err := client.Close(); err != nil {
		tb.Errorf("close: %v", err)
	}
}

// newProxy returns a proxy in front of the shared server, and a connect string through it with a chroot of
// the test's own.
func newProxy(tb testing.TB) (*curatortest.Proxy, string) {
	tb.Helper()
	chroot := testenv.Chroot(tb)
	proxy := proxyTo(tb, testenv.Addr(tb))
	return proxy, proxy.Addr() + chroot
}

func proxyTo(tb testing.TB, addr string) *curatortest.Proxy {
	tb.Helper()
	proxy := curatortest.NewProxyT(tb, addr)
	return proxy
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Error(err)
	}
}

// requests returns how many requests of op have come to the proxy.
func requests(proxy faulty, op string) (n int) {
	for _, e := range proxy.Faults().Trace() {
		if e.Op == op && !e.Reply {
			n++
		}
	}
	return n
}

// receive takes from ch what must come.
func receive[T any](tb testing.TB, ch <-chan T) T {
	tb.Helper()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case v := <-ch:
		return v
	case <-t.C:
		tb.Fatal("nothing came")
		panic("unreachable")
	}
}

// pass lets time pass where that is all that happens.
func pass(tb testing.TB, d time.Duration) {
	tb.Helper()
	select {
	case <-time.After(d):
	case <-tb.Context().Done():
	}
}

// took fails the test if fn does not return within limit: see [testenv.InTime].
func took(tb testing.TB, limit time.Duration, what string, fn func()) {
	tb.Helper()
	began := time.Now()
	fn()
	if d := time.Since(began); d > testenv.InTime(limit) {
		tb.Errorf("%s took %v, want at most %v", what, d, limit)
	}
}

// states takes the states that a listener gets.
type states chan framework.ConnectionState

// record adds a listener to client.
func record(client *framework.Client) states {
	s := make(states, 10_000)
	client.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
		s <- state
	})
	return s
}

// connectRecorded returns a client that has connected once, and its later states.
func connectRecorded(tb testing.TB, connect string, opts ...framework.Option) (*framework.Client, states) {
	tb.Helper()
	client := newClient(tb, connect, opts...)
	recorded := record(client)
	start(tb, client)
	recorded.want(tb, connected)
	return client, recorded
}

// await takes states until these have come, in this order. Others may come between them.
func (s states) await(tb testing.TB, want ...framework.ConnectionState) {
	tb.Helper()
	for _, state := range want {
		for receive(tb, s) != state {
		}
	}
}

// want takes the next states, which must be these. A client is suspended before it is connected if its first try takes
// more than a second, which a busy machine needs for a handshake.
func (s states) want(tb testing.TB, want ...framework.ConnectionState) {
	tb.Helper()
	for i, state := range want {
		got := receive(tb, s)
		for i == 0 && (state == connected || state == readOnly) && got == suspended {
			got = receive(tb, s)
		}
		if got != state {
			tb.Fatalf("state %v, want %v of %v", got, state, want[:i+1])
		}
	}
}

// end closes client and fails if anything is left that was not taken.
func (s states) end(tb testing.TB, client *framework.Client) {
	tb.Helper()
	closeClient(tb, client)
	s.none(tb)
}

// none fails if anything is left that was not taken.
func (s states) none(tb testing.TB) {
	tb.Helper()
	for {
		select {
		case state := <-s:
			tb.Errorf("state %v, want none", state)
		default:
			return
		}
	}
}

// events takes what a callback or listener gets.
type events chan callbacks.Event

func newEvents() events { return make(events, 10_000) }

func (e events) callback(_ context.Context, ev callbacks.Event) { e <- ev }

// watched takes the events of a watcher.
type watched chan zk.Event

// newWatcher returns a watcher and its events of nodes, without those of the session.
func newWatcher() (*callbacks.Watcher, watched) {
	ch := make(watched, 10_000)
	return callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
		if ev.Type != zk.EventSession {
			ch <- ev
		}
	}), ch
}

// create creates a node that must not exist yet.
func create(tb testing.TB, client *framework.Client, p, data string) {
	tb.Helper()
	_, err := client.Create().CreatingParentsIfNeeded().ForPath(testenv.Context(tb), p, []byte(data))
	if err != nil {
		tb.Fatal(err)
	}
}

func createEphemeral(tb testing.TB, client *framework.Client, p string) {
	tb.Helper()
	_, err := client.Create().WithMode(builders.Ephemeral).ForPath(testenv.Context(tb), p, nil)
	if err != nil {
		tb.Fatal(err)
	}
}

func setData(tb testing.TB, client *framework.Client, p, data string) {
	tb.Helper()
	if _, err := client.SetData().ForPath(testenv.Context(tb), p, []byte(data)); err != nil {
		tb.Fatal(err)
	}
}

func read(tb testing.TB, client *framework.Client, p string) string {
	tb.Helper()
	data, err := client.GetData().ForPath(testenv.Context(tb), p)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

func exists(tb testing.TB, client *framework.Client, p string) bool {
	tb.Helper()
	stat, err := client.CheckExists().ForPath(testenv.Context(tb), p)
	if err != nil {
		tb.Fatal(err)
	}
	return stat != nil
}

// expire ends the session of client on the shared server.
func expire(tb testing.TB, client *framework.Client) {
	tb.Helper()
	if err := curatortest.ExpireSession(testenv.Context(tb), testenv.Addr(tb), client.SessionID()); err != nil {
		tb.Fatal(err)
	}
}

// split divides a connect string.
func split(connect string) (addr, chroot string) {
	i := strings.IndexByte(connect, '/')
	if i < 0 {
		return connect, ""
	}
	return connect[:i], connect[i:]
}

// operation is one way to ask the server, in the foreground and in the background.
type operation struct {
	name       string
	foreground func(ctx context.Context, c *framework.Client, p string) error
	background func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error
}

// operations has every builder of the client, most in several forms. p is the path to work on.
var operations = slices.Concat(creates, others)

var creates = []operation{
	createOperation("create", func(b builders.Create) builders.Create { return b }),
	createOperation("create with parents", builders.Create.CreatingParentsIfNeeded),
	createOperation("create with container parents", builders.Create.CreatingParentContainersIfNeeded),
	createOperation("create protected", func(b builders.Create) builders.Create {
		return b.WithProtection().WithMode(builders.EphemeralSequential)
	}),
	createOperation("create or set data", builders.Create.OrSetData),
	createOperation("create idempotent", builders.Create.Idempotent),
}

func createOperation(name string, step func(builders.Create) builders.Create) operation {
	return operation{
		name,
		func(ctx context.Context, c *framework.Client, p string) error {
			_, err := step(c.Create()).ForPath(ctx, p, nil)
			return err
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return step(c.Create()).InBackground(cb).ForPath(ctx, p, nil)
		},
	}
}

func deleteOperation(name string, step func(builders.Delete) builders.Delete) operation {
	return operation{
		name,
		func(ctx context.Context, c *framework.Client, p string) error {
			return step(c.Delete()).ForPath(ctx, p)
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return step(c.Delete()).InBackground(cb).ForPath(ctx, p)
		},
	}
}

// bystander is a watcher for operations that need one.
var bystander = callbacks.NewWatcher(func(context.Context, zk.Event) {})

var others = []operation{
	deleteOperation("delete", func(b builders.Delete) builders.Delete { return b }),
	deleteOperation("delete guaranteed", builders.Delete.Guaranteed),
	deleteOperation("delete with children", builders.Delete.DeletingChildrenIfNeeded),
	{
		"check exists",
		func(ctx context.Context, c *framework.Client, p string) error {
			_, err := c.CheckExists().ForPath(ctx, p)
			return err
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.CheckExists().InBackground(cb).ForPath(ctx, p)
		},
	},
	{
		"check exists with parents",
		func(ctx context.Context, c *framework.Client, p string) error {
			_, err := c.CheckExists().CreatingParentsIfNeeded().ForPath(ctx, path.Join(p, "a/b"))
			return err
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.CheckExists().CreatingParentsIfNeeded().InBackground(cb).ForPath(ctx, path.Join(p, "a/b"))
		},
	},
	{
		"get data",
		func(ctx context.Context, c *framework.Client, p string) error {
			_, err := c.GetData().UsingWatcher(bystander).ForPath(ctx, p)
			return err
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.GetData().UsingWatcher(bystander).InBackground(cb).ForPath(ctx, p)
		},
	},
	{
		"set data",
		func(ctx context.Context, c *framework.Client, p string) error {
			_, err := c.SetData().ForPath(ctx, p, nil)
			return err
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.SetData().InBackground(cb).ForPath(ctx, p, nil)
		},
	},
	{
		"set data idempotent",
		func(ctx context.Context, c *framework.Client, p string) error {
			_, err := c.SetData().Idempotent().WithVersion(7).ForPath(ctx, p, nil)
			return err
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.SetData().Idempotent().WithVersion(7).InBackground(cb).ForPath(ctx, p, nil)
		},
	},
	{
		"get children",
		func(ctx context.Context, c *framework.Client, p string) error {
			_, err := c.GetChildren().ForPath(ctx, p)
			return err
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.GetChildren().InBackground(cb).ForPath(ctx, p)
		},
	},
	{
		"get ACL",
		func(ctx context.Context, c *framework.Client, p string) error {
			_, err := c.GetACL().ForPath(ctx, p)
			return err
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.GetACL().InBackground(cb).ForPath(ctx, p)
		},
	},
	{
		"set ACL",
		func(ctx context.Context, c *framework.Client, p string) error {
			_, err := c.SetACL().WithACL(builders.OpenACL...).ForPath(ctx, p)
			return err
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.SetACL().WithACL(builders.OpenACL...).InBackground(cb).ForPath(ctx, p)
		},
	},
	{
		"sync",
		func(ctx context.Context, c *framework.Client, p string) error { return c.Sync().ForPath(ctx, p) },
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.Sync().InBackground(cb).ForPath(ctx, p)
		},
	},
	{
		"transaction",
		func(ctx context.Context, c *framework.Client, p string) error {
			_, err := c.Transaction().ForOperations(ctx, c.TransactionOp().Check().ForPath(p))
			return err
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.Transaction().InBackground(cb).ForOperations(ctx, c.TransactionOp().Check().ForPath(p))
		},
	},
	{
		"add watch",
		func(ctx context.Context, c *framework.Client, p string) error {
			return c.Watches().Add().UsingWatcher(bystander).ForPath(ctx, p)
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.Watches().Add().UsingWatcher(bystander).InBackground(cb).ForPath(ctx, p)
		},
	},
	{
		"remove watches",
		func(ctx context.Context, c *framework.Client, p string) error {
			return c.Watches().Remove(bystander).Guaranteed().Quietly().ForPath(ctx, p)
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.Watches().Remove(bystander).Guaranteed().Quietly().InBackground(cb).ForPath(ctx, p)
		},
	},
	{
		"remove all watches",
		func(ctx context.Context, c *framework.Client, p string) error {
			return c.Watches().RemoveAll().ForPath(ctx, p)
		},
		func(ctx context.Context, c *framework.Client, p string, cb callbacks.BackgroundCallback) error {
			return c.Watches().RemoveAll().InBackground(cb).ForPath(ctx, p)
		},
	},
	{
		"get config",
		func(ctx context.Context, c *framework.Client, _ string) error {
			_, err := c.GetConfig().ForEnsemble(ctx)
			return err
		},
		func(ctx context.Context, c *framework.Client, _ string, cb callbacks.BackgroundCallback) error {
			return c.GetConfig().InBackground(cb).ForEnsemble(ctx)
		},
	},
	{
		"reconfig",
		func(ctx context.Context, c *framework.Client, _ string) error {
			_, err := c.Reconfig().Leaving("7").ForEnsemble(ctx)
			return err
		},
		func(ctx context.Context, c *framework.Client, _ string, cb callbacks.BackgroundCallback) error {
			return c.Reconfig().Leaving("7").InBackground(cb).ForEnsemble(ctx)
		},
	},
}

// offline reports whether op needs no connection: there is no watch that it could remove.
func offline(op operation) bool { return strings.HasPrefix(op.name, "remove") }

// wantErr fails if err does not match want.
func wantErr(tb testing.TB, what string, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("%s: %v, want %v", what, err, want)
	}
}

func numbered(prefix string, i int) string { return fmt.Sprintf("%s-%06d", prefix, i) }

// onUnhandled returns a listener that sends the errors to ch.
func onUnhandled(ch chan<- error) callbacks.Listener[framework.UnhandledError] {
	return func(_ context.Context, e framework.UnhandledError) { ch <- e.Err }
}
