package builders_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// newClient returns a client of addr that is started and connected.
func newClient(tb testing.TB, connect string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	client := startClient(tb, connect, opts...)
	testclient.Must(tb, client.BlockUntilConnected(testenv.Context(tb)))
	return client
}

// startClient is newClient that does not wait for the connection.
func startClient(tb testing.TB, connect string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	return testclient.Start(tb, connect, append([]framework.Option{
		framework.WithSessionTimeout(10 * time.Second), framework.WithRetryPolicy(retry.NTimes(5, 10*time.Millisecond)),
	}, opts...)...)
}

// tree looks, past the client under test, at the part of the server's tree that is the test's own.
type tree struct {
	tb      testing.TB
	conn    *zk.Conn
	root    string
	connect string // for clients
}

func newTree(tb testing.TB) tree {
	tb.Helper()
	root := testenv.Chroot(tb)
	return tree{tb, testenv.Raw(tb), root, testenv.Addr(tb) + root}
}

// setUp returns a connected client with a tree of its own.
func setUp(tb testing.TB, opts ...framework.Option) (*framework.Client, tree) {
	tb.Helper()
	tr := newTree(tb)
	return newClient(tb, tr.connect, opts...), tr
}

func (t tree) make(p string, data string) {
	t.tb.Helper()
	if _, err := t.conn.Create(t.root+p, []byte(data), 0, builders.OpenACL); err != nil {
		t.tb.Fatalf("make %s: %v", p, err)
	}
}

func (t tree) remove(p string) {
	t.tb.Helper()
	if err := t.conn.Delete(t.root+p, -1); err != nil {
		t.tb.Fatalf("remove %s: %v", p, err)
	}
}

func (t tree) exists(p string) bool {
	t.tb.Helper()
	ok, _, err := t.conn.Exists(t.root + p)
	if err != nil {
		t.tb.Fatalf("look for %s: %v", p, err)
	}
	return ok
}

func (t tree) read(p string) (data string, stat zk.Stat) {
	t.tb.Helper()
	b, s, err := t.conn.Get(t.root + p)
	if err != nil {
		t.tb.Fatalf("read %s: %v", p, err)
	}
	return string(b), *s
}

func (t tree) acl(p string) []zk.ACL {
	t.tb.Helper()
	acl, _, err := t.conn.GetACL(t.root + p)
	if err != nil {
		t.tb.Fatalf("read ACL of %s: %v", p, err)
	}
	return acl
}

// children returns the names below p, none if there is no p.
func (t tree) children(p string) []string {
	t.tb.Helper()
	names, _, err := t.conn.Children(path.Join(t.root, p))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.tb.Fatalf("list %s: %v", p, err)
	}
	slices.Sort(names)
	return names
}

// awaitGone waits until there is no p.
func (t tree) awaitGone(p string) {
	t.tb.Helper()
	testenv.Eventually(t.tb, func() bool { return !t.exists(p) }, p+" is gone")
}

// watches returns the watched paths of the tree, as the server reports them.
func (t tree) watches() []string {
	t.tb.Helper()
	answer, err := testenv.Server(t.tb).FourLetterWord(testenv.Context(t.tb), "wchp")
	if err != nil {
		t.tb.Fatal(err)
	}
	var paths []string
	for line := range strings.Lines(answer) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), t.root+"/"); ok {
			paths = append(paths, "/"+p)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// awaitWatches waits until these paths are watched.
func (t tree) awaitWatches(want ...string) {
	t.tb.Helper()
	testenv.Eventually(t.tb, func() bool { return slices.Equal(t.watches(), want) }, "watched paths")
}

// way is how operations are run. What a test says of an operation has to hold in both, and the result is put
// into one form: that of the background.
type way string

const (
	foreground way = "foreground"
	background way = "background"
)

var ways = []way{foreground, background}

// await returns the result of a background operation. One that is refused has only an error.
func await(
	tb testing.TB, typ callbacks.EventType, path string, start func(callbacks.BackgroundCallback) error,
) callbacks.Event {
	tb.Helper()
	results := make(chan callbacks.Event, 1)
	if err := start(func(_ context.Context, ev callbacks.Event) { results <- ev }); err != nil {
		return callbacks.Event{Err: err}
	}
	ev := receive(tb, results)
	if ev.Type != typ || ev.Path != path {
		tb.Errorf("event is %v of %q, want %v of %q", ev.Type, ev.Path, typ, path)
	}
	return ev
}

func receive[T any](tb testing.TB, ch <-chan T) T {
	tb.Helper()
	select {
	case v := <-ch:
		return v
	case <-testenv.Context(tb).Done():
		tb.Fatal("nothing comes")
		panic("unreachable")
	}
}

func (w way) create(tb testing.TB, b builders.Create, path string, data []byte) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return await(tb, callbacks.Create, path, func(cb callbacks.BackgroundCallback) error {
			return b.InBackground(cb).ForPath(ctx, path, data)
		})
	}
	name, err := b.ForPath(ctx, path, data)
	return callbacks.Event{Name: name, Err: err}
}

func (w way) delete(tb testing.TB, b builders.Delete, path string) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return awaitPath(tb, callbacks.Delete, b.InBackground, path)
	}
	return callbacks.Event{Err: b.ForPath(ctx, path)}
}

func (w way) exists(tb testing.TB, b builders.CheckExists, path string) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return awaitPath(tb, callbacks.Exists, b.InBackground, path)
	}
	stat, err := b.ForPath(ctx, path)
	return callbacks.Event{Stat: stat, Err: err}
}

func (w way) getData(tb testing.TB, b builders.GetData, path string) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return awaitPath(tb, callbacks.GetData, b.InBackground, path)
	}
	data, err := b.ForPath(ctx, path)
	return callbacks.Event{Data: data, Err: err}
}

func (w way) setData(tb testing.TB, b builders.SetData, path string, data []byte) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return await(tb, callbacks.SetData, path, func(cb callbacks.BackgroundCallback) error {
			return b.InBackground(cb).ForPath(ctx, path, data)
		})
	}
	stat, err := b.ForPath(ctx, path, data)
	return callbacks.Event{Stat: stat, Err: err}
}

func (w way) getChildren(tb testing.TB, b builders.GetChildren, path string) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return awaitPath(tb, callbacks.Children, b.InBackground, path)
	}
	children, err := b.ForPath(ctx, path)
	return callbacks.Event{Children: children, Err: err}
}

func (w way) getACL(tb testing.TB, b builders.GetACL, path string) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return awaitPath(tb, callbacks.GetACL, b.InBackground, path)
	}
	acl, err := b.ForPath(ctx, path)
	return callbacks.Event{ACL: acl, Err: err}
}

func (w way) setACL(tb testing.TB, b builders.SetACL, path string) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return awaitPath(tb, callbacks.SetACL, b.InBackground, path)
	}
	stat, err := b.ForPath(ctx, path)
	return callbacks.Event{Stat: stat, Err: err}
}

func (w way) sync(tb testing.TB, b builders.Sync, path string) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return awaitPath(tb, callbacks.Sync, b.InBackground, path)
	}
	return callbacks.Event{Err: b.ForPath(ctx, path)}
}

func (w way) addWatch(tb testing.TB, b builders.AddWatch, path string) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return awaitPath(tb, callbacks.AddWatch, b.InBackground, path)
	}
	return callbacks.Event{Err: b.ForPath(ctx, path)}
}

func (w way) removeWatches(tb testing.TB, b builders.RemoveWatches, path string) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return awaitPath(tb, callbacks.RemoveWatches, b.InBackground, path)
	}
	return callbacks.Event{Err: b.ForPath(ctx, path)}
}

func (w way) getConfig(tb testing.TB, b builders.GetConfig) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return awaitEnsemble(tb, callbacks.GetConfig, b.InBackground)
	}
	data, err := b.ForEnsemble(ctx)
	return callbacks.Event{Data: data, Err: err}
}

func (w way) reconfig(tb testing.TB, b builders.Reconfig) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return awaitEnsemble(tb, callbacks.Reconfig, b.InBackground)
	}
	data, err := b.ForEnsemble(ctx)
	return callbacks.Event{Data: data, Err: err}
}

func (w way) transaction(
	tb testing.TB, b builders.Transaction, ops ...builders.TransactionOperation,
) callbacks.Event {
	tb.Helper()
	ctx := testenv.Context(tb)
	if w == background {
		return await(tb, callbacks.Transaction, "", func(cb callbacks.BackgroundCallback) error {
			return b.InBackground(cb).ForOperations(ctx, ops...)
		})
	}
	results, err := b.ForOperations(ctx, ops...)
	return callbacks.Event{Results: results, Err: err}
}

func awaitPath(
	tb testing.TB, typ callbacks.EventType, inBackground func(callbacks.BackgroundCallback) builders.Background,
	path string,
) callbacks.Event {
	tb.Helper()
	return await(tb, typ, path, func(cb callbacks.BackgroundCallback) error {
		return inBackground(cb).ForPath(testenv.Context(tb), path)
	})
}

func awaitEnsemble(
	tb testing.TB, typ callbacks.EventType,
	inBackground func(callbacks.BackgroundCallback) builders.BackgroundEnsemble,
) callbacks.Event {
	tb.Helper()
	return await(tb, typ, builders.ConfigNode, func(cb callbacks.BackgroundCallback) error {
		return inBackground(cb).ForEnsemble(testenv.Context(tb))
	})
}

// succeed returns ev, of an operation that must not fail.
func succeed(tb testing.TB, ev callbacks.Event) callbacks.Event {
	tb.Helper()
	if ev.Err != nil {
		tb.Fatal(ev.Err)
	}
	return ev
}

// wantErr checks that an operation failed in the way that all do: with an OpError that names op and path as
// given.
func wantErr(tb testing.TB, err, want error, op, path string) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("error is %v, want %v", err, want)
		return
	}
	var opErr *builders.OpError
	if !errors.As(err, &opErr) {
		tb.Errorf("%T is no OpError: %v", err, err)
		return
	}
	if opErr.Op != op || opErr.Path != path {
		tb.Errorf("error is of %s %q, want %s %q", opErr.Op, opErr.Path, op, path)
	}
}

func equal[T any](tb testing.TB, what string, got, want T, opts ...cmp.Option) {
	tb.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// chanWatcher returns a watcher and where its events arrive, but for those of the connection.
func chanWatcher() (*callbacks.Watcher, <-chan zk.Event) {
	events := make(chan zk.Event, 100)
	return callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
		if ev.Type != zk.EventSession {
			events <- ev
		}
	}), events
}

// sameError compares errors by identity.
var sameError = cmp.Comparer(func(a, b error) bool { return a == b })
