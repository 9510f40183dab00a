package builders_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

func TestBackgroundOperationsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	client, _ := setUp(t)
	ctx := testenv.Context(t)
	const n = 10_000
	events := make(chan callbacks.Event, n)
	cb := func(_ context.Context, ev callbacks.Event) { events <- ev }
	b := client.Create().WithMode(builders.EphemeralSequential).InBackground(cb) // they vanish with the client
	for range n {
		if err := b.ForPath(ctx, "/n", []byte{}); err != nil {
			t.Fatal(err)
		}
	}
	var last int64
	for i := range n {
		ev := succeed(t, receive(t, events))
		if want := fmt.Sprintf("/n%010d", i); ev.Name != want {
			t.Fatalf("name is %s, want %s", ev.Name, want)
		}
		if ev.Stat.Czxid <= last {
			t.Fatalf("node %d has czxid %d after %d", i, ev.Stat.Czxid, last)
		}
		last = ev.Stat.Czxid
	}
}

func TestBackgroundAndForegroundOperationsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t)
	ctx := testenv.Context(t)
	tr.make("/n", "")
	var versions []int32
	done := make(chan struct{})
	b := client.SetData().InBackground(func(_ context.Context, ev callbacks.Event) {
		if ev.Err != nil {
			t.Error(ev.Err)
			return
		}
		if versions = append(versions, ev.Stat.Version); len(versions) == 200 {
			close(done)
		}
	})
	for i := range 100 {
		for range 2 {
			if err := b.ForPath(ctx, "/n", fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		data, err := client.GetData().ForPath(ctx, "/n") // sees what was submitted before
		if err != nil || string(data) != fmt.Sprint(i) {
			t.Fatalf("data is %q, %v, want %d", data, err, i)
		}
	}
	receive(t, done)
	for i, v := range versions {
		if v != int32(i+1) {
			t.Fatalf("version %d comes as number %d", v, i)
		}
	}
}

type start = func(context.Context, callbacks.BackgroundCallback) error

// starters begin an operation of each builder in the background, some with further steps behind the first.
func starters(client *framework.Client) map[string]start {
	watcher, _ := chanWatcher()
	path := func(inBackground func(callbacks.BackgroundCallback) builders.Background, path string) start {
		return func(ctx context.Context, cb callbacks.BackgroundCallback) error {
			return inBackground(cb).ForPath(ctx, path)
		}
	}
	data := func(inBackground func(callbacks.BackgroundCallback) builders.BackgroundData, path string) start {
		return func(ctx context.Context, cb callbacks.BackgroundCallback) error {
			return inBackground(cb).ForPath(ctx, path, nil)
		}
	}
	ensemble := func(inBackground func(callbacks.BackgroundCallback) builders.BackgroundEnsemble) start {
		return func(ctx context.Context, cb callbacks.BackgroundCallback) error {
			return inBackground(cb).ForEnsemble(ctx)
		}
	}
	ephemeral := client.Create().WithMode(builders.EphemeralSequential)
	return map[string]start{
		"create":               data(ephemeral.InBackground, "/n-"),
		"create with parents":  data(client.Create().CreatingParentsIfNeeded().InBackground, "/a/b/c"),
		"create or set data":   data(client.Create().OrSetData().InBackground, "/n"),
		"create idempotent":    data(client.Create().Idempotent().InBackground, "/n"),
		"create protected":     data(ephemeral.WithProtection().InBackground, "/n-"),
		"create compressed":    data(ephemeral.Compressed().InBackground, "/n-"),
		"delete":               path(client.Delete().InBackground, "/none"),
		"delete with children": path(client.Delete().DeletingChildrenIfNeeded().InBackground, "/a"),
		"delete guaranteed":    path(client.Delete().Guaranteed().InBackground, "/none"),
		"exists":               path(client.CheckExists().UsingWatcher(watcher).InBackground, "/n"),
		"exists with parents":  path(client.CheckExists().CreatingParentsIfNeeded().InBackground, "/a/b/c"),
		"get data":             path(client.GetData().UsingWatcher(watcher).InBackground, "/n"),
		"set data":             data(client.SetData().InBackground, "/n"),
		"set data idempotent":  data(client.SetData().Idempotent().WithVersion(0).InBackground, "/n"),
		"get children":         path(client.GetChildren().UsingWatcher(watcher).InBackground, "/"),
		"get ACL":              path(client.GetACL().InBackground, "/n"),
		"set ACL":              path(client.SetACL().WithACL(builders.OpenACL...).InBackground, "/n"),
		"sync":                 path(client.Sync().InBackground, "/"),
		"add watch":            path(client.Watches().Add().UsingWatcher(watcher).InBackground, "/n"),
		"remove watches":       path(client.Watches().Remove(watcher).InBackground, "/n"),
		"remove all watches":   path(client.Watches().RemoveAll().Locally().InBackground, "/n"),
		"get config":           ensemble(client.GetConfig().InBackground),
		"reconfig":             ensemble(client.Reconfig().Leaving("1").InBackground),
		"transaction": func(ctx context.Context, cb callbacks.BackgroundCallback) error {
			op := client.TransactionOp().Create().WithMode(builders.EphemeralSequential).ForPath("/n-", nil)
			return client.Transaction().InBackground(cb).ForOperations(ctx, op)
		},
	}
}

// tally counts the calls of the callbacks that it makes.
type tally struct {
	mu       sync.Mutex
	accepted int
	calls    []int // of each callback
	errs     []error
}

func (c *tally) start(ctx context.Context, start start) error {
	c.mu.Lock()
	i := len(c.calls)
	c.calls = append(c.calls, 0)
	c.mu.Unlock()
	err := start(ctx, func(_ context.Context, ev callbacks.Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[i]++
		c.errs = append(c.errs, ev.Err)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.accepted++
	}
	return err
}

// check checks that every operation that was accepted has reported its result once, and no other.
func (c *tally) check(tb testing.TB) {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var called int
	for i, n := range c.calls {
		if n > 1 {
			tb.Errorf("callback %d is called %d times", i, n)
		}
		called += n
	}
	equal(tb, "callbacks that are called", called, c.accepted)
}

// CURATOR-126, CURATOR-673, CURATOR-677.
func TestEveryCallbackIsCalledOnceWhenTheClientIsClosed(t *testing.T) {
	t.Parallel()
	names := starters(newClient(t, testenv.ConnectString(t)))
	for name := range names {
		t.Run(name, func(t *testing.T) {
			tr := newTree(t)
			client := newClient(t, tr.connect)
			start := starters(client)[name]
			ctx := testenv.Context(t)
			var c tally
			var wg sync.WaitGroup
			begun := make(chan struct{})
			for range 2 {
				wg.Go(func() {
					for i := 0; ; i++ {
						if i == 50 {
							begun <- struct{}{}
						}
						if err := c.start(ctx, start); err != nil {
							if !errors.Is(err, framework.ErrClosed) {
								t.Error(err)
							}
							return
						}
					}
				})
			}
			receive(t, begun)
			receive(t, begun)
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
			c.check(t)
			for _, err := range c.errs {
				var opErr *builders.OpError
				if err != nil && !errors.As(err, &opErr) {
					t.Errorf("error is %v", err)
					break
				}
			}
		})
	}
}

// What waits for a connection, or for another attempt, when the client is closed is reported too.
func TestEveryCallbackIsCalledOnceWhenTheClientIsClosedWithoutAConnection(t *testing.T) {
	t.Parallel()
	t.Run("never connected", func(t *testing.T) {
		client := startClient(t, "127.0.0.1:1")
		var c tally
		for name, start := range starters(client) {
			if err := c.start(testenv.Context(t), start); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		c.check(t)
		for _, err := range c.errs { // but for the removals, which see at once that there is nothing to remove
			if !errors.Is(err, framework.ErrClosed) && !errors.Is(err, framework.ErrNoWatcher) {
				t.Errorf("error is %v", err)
			}
		}
	})
	t.Run("disconnected", func(t *testing.T) {
		client, _, proxy := setUpProxied(t, framework.WithRetryPolicy(retry.Forever(time.Hour)))
		disconnect(t, client, proxy)
		var c tally
		for name, start := range starters(client) {
			if err := c.start(testenv.Context(t), start); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		c.check(t)
	})
	t.Run("between two attempts", func(t *testing.T) {
		client, _, proxy := setUpProxied(t, framework.WithRetryPolicy(retry.Forever(time.Hour)))
		cut := proxy.Faults().Add(curatortest.Rule{Action: curatortest.CutBefore})
		var c tally
		for name, start := range starters(client) {
			if err := c.start(testenv.Context(t), start); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := cut.Wait(testenv.Context(t)); err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		c.check(t)
	})
}

// The connection is cut again and again: every operation of each builder reports its result once.
func TestEveryCallbackIsCalledOnceWhenConnectionsAreLost(t *testing.T) {
	t.Parallel()
	client, _, proxy := setUpProxied(t, framework.WithRetryPolicy(retry.NTimes(2, time.Millisecond)))
	var c tally
	for range 20 {
		cut := proxy.Faults().Add(curatortest.Rule{Action: curatortest.CutAfter, Skip: 3, Count: 30})
		for name, start := range starters(client) {
			if err := c.start(testenv.Context(t), start); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := cut.Wait(testenv.Context(t)); err != nil {
			t.Fatal(err)
		}
		cut.Remove()
		succeed(t, background.sync(t, client.Sync(), "/"))
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	c.check(t)
}

// CURATOR-443: what waits for a connection is sent as soon as there is one, in order.
func TestOperationsThatWaitForAConnectionAreSentInOrder(t *testing.T) {
	t.Parallel()
	client, tr, proxy := setUpProxied(t)
	tr.make("/n", "")
	connect := disconnect(t, client, proxy)
	events := make(chan callbacks.Event, 100)
	cb := func(_ context.Context, ev callbacks.Event) { events <- ev }
	for i := range 50 {
		if err := client.SetData().WithVersion(int32(i)).InBackground(cb).
			ForPath(testenv.Context(t), "/n", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	result := make(chan error, 1)
	go func() {
		_, err := client.SetData().ForPath(testenv.Context(t), "/n", nil)
		result <- err
	}()
	connect()
	for range 50 {
		succeed(t, receive(t, events))
	}
	if err := receive(t, result); err != nil {
		t.Error(err)
	}
}

// CURATOR-52: without a connection an operation fails, first or last.
func TestOperationsThatFindNoConnectionFail(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w), func(t *testing.T) {
			for _, connect := range []string{"127.0.0.1:1", ""} {
				var client *framework.Client
				if connect != "" {
					client = startClient(t, connect, impatient()...)
				} else {
					var proxy *curatortest.Proxy
					client, _, proxy = setUpProxied(t, impatient()...)
					disconnect(t, client, proxy)
				}
				err := w.create(t, client.Create().WithProtection(), "/n", nil).Err
				wantErr(t, err, framework.ErrConnectionLoss, "create", "/n")
				wantErr(t, w.getData(t, client.GetData(), "/n").Err, framework.ErrConnectionLoss, "getData", "/n")
				op := client.TransactionOp().Check().ForPath("/n")
				wantErr(t, w.transaction(t, client.Transaction(), op).Err, framework.ErrConnectionLoss, "multi", "")
			}
		})
	}
}

func TestCallbackIsGivenTheValuesOfTheContext(t *testing.T) {
	t.Parallel()
	client, _ := setUp(t)
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(testenv.Context(t), key{}, "value"))
	cancel()
	got := make(chan context.Context, 1)
	b := client.Sync().InBackground(func(ctx context.Context, _ callbacks.Event) { got <- ctx })
	if err := b.ForPath(ctx, "/"); err != nil {
		t.Fatal(err)
	}
	ctx = receive(t, got)
	equal(t, "value", ctx.Value(key{}), any("value"))
	if err := ctx.Err(); err != nil {
		t.Errorf("the context has ended: %v", err)
	}
}

func TestCallbackMayCallTheClient(t *testing.T) {
	t.Parallel()
	client, tr := setUp(t)
	ctx := testenv.Context(t)
	result := make(chan error, 1)
	err := client.Create().CreatingParentsIfNeeded().InBackground(func(ctx context.Context, ev callbacks.Event) {
		_, err := client.Create().WithProtection().ForPath(ctx, "/a/b/c", nil)
		if err == nil {
			err = client.Delete().DeletingChildrenIfNeeded().Guaranteed().ForPath(ctx, ev.Name)
		}
		if err == nil {
			err = client.Delete().Quietly().InBackground(func(_ context.Context, ev callbacks.Event) {
				result <- ev.Err
			}).ForPath(ctx, "/a")
		}
		if err != nil {
			result <- err
		}
	}).ForPath(ctx, "/a/b", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := receive(t, result); err != nil {
		t.Error(err)
	}
	equal(t, "nodes", tr.children("/"), []string{})
}

// A background operation that is given up is reported to the callback and to the unhandled-error listeners.
func TestBackgroundGivenUpIsReported(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprintf("listener of its own %t", own), func(t *testing.T) {
			client := startClient(t, "127.0.0.1:1", impatient()...)
			reported, reportedOwn := make(chan error, 1), make(chan error, 1)
			client.AddUnhandledErrorListener(
				func(_ context.Context, e framework.UnhandledError) { reported <- e.Err })
			listen := func(_ string, err error) { reportedOwn <- err }
			ctx := testenv.Context(t)
			for op, run := range map[string]func(cb callbacks.BackgroundCallback) error{
				"create /n": func(cb callbacks.BackgroundCallback) error {
					b := client.Create().InBackground(cb)
					if own {
						b = b.WithUnhandledErrorListener(listen)
					}
					return b.ForPath(ctx, "/n", nil)
				},
				"getData /n": func(cb callbacks.BackgroundCallback) error {
					b := client.GetData().InBackground(cb)
					if own {
						b = b.WithUnhandledErrorListener(listen)
					}
					return b.ForPath(ctx, "/n")
				},
				"getConfig " + builders.ConfigNode: func(cb callbacks.BackgroundCallback) error {
					b := client.GetConfig().InBackground(cb)
					if own {
						b = b.WithUnhandledErrorListener(listen)
					}
					return b.ForEnsemble(ctx)
				},
				"multi ": func(cb callbacks.BackgroundCallback) error {
					b := client.Transaction().InBackground(cb)
					if own {
						b = b.WithUnhandledErrorListener(listen)
					}
					return b.ForOperations(ctx, client.TransactionOp().Check().ForPath("/"))
				},
			} {
				verb, path, _ := strings.Cut(op, " ")
				results := make(chan error, 1)
				if err := run(func(_ context.Context, ev callbacks.Event) { results <- ev.Err }); err != nil {
					t.Fatal(err)
				}
				wantErr(t, receive(t, results), framework.ErrConnectionLoss, verb, path)
				if own {
					wantErr(t, receive(t, reportedOwn), framework.ErrConnectionLoss, verb, path)
				} else {
					wantErr(t, receive(t, reported), framework.ErrConnectionLoss, verb, path)
				}
			}
			if len(reported)+len(reportedOwn) > 0 {
				t.Error("a failure is reported twice")
			}
		})
	}
}

// An answer of the server is not an unhandled error.
func TestAnswersOfTheServerAreOnlyTheCallbacks(t *testing.T) {
	t.Parallel()
	client, _ := setUp(t)
	var reported atomic.Int32
	client.AddUnhandledErrorListener(func(context.Context, framework.UnhandledError) { reported.Add(1) })
	err := await(t, callbacks.GetData, "/none", func(cb callbacks.BackgroundCallback) error {
		b := client.GetData().InBackground(cb).WithUnhandledErrorListener(func(string, error) { reported.Add(1) })
		return b.ForPath(testenv.Context(t), "/none")
	}).Err
	wantErr(t, err, zk.ErrNoNode, "getData", "/none")
	succeed(t, background.sync(t, client.Sync(), "/"))
	equal(t, "reported", reported.Load(), 0)
}

// panicking is a provider of everything that a user may give a client, and panics.
type panicking struct{}

func (panicking) Compress(string, []byte) ([]byte, error)   { panic("compress") }
func (panicking) Decompress(string, []byte) ([]byte, error) { panic("decompress") }

func TestPanicsOfTheUsersCodeAreReported(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	ignore := func(context.Context, callbacks.Event) {}
	tests := map[string]func(client *framework.Client, proxy *curatortest.Proxy) error{
		"callback": func(client *framework.Client, _ *curatortest.Proxy) error {
			b := client.Sync().InBackground(func(context.Context, callbacks.Event) { panic("callback") })
			return b.ForPath(ctx, "/")
		},
		"watcher": func(client *framework.Client, _ *curatortest.Proxy) error {
			w := callbacks.NewWatcher(func(context.Context, zk.Event) { panic("watcher") })
			if _, err := client.CheckExists().UsingWatcher(w).ForPath(ctx, "/n"); err != nil {
				return err
			}
			_, err := client.Create().ForPath(ctx, "/n", nil)
			return err
		},
		"listener": func(client *framework.Client, _ *curatortest.Proxy) error {
			var remove func()
			remove = client.AddCuratorListener(func(context.Context, callbacks.Event) {
				defer remove()
				panic("listener")
			})
			return client.Sync().InBackground(nil).ForPath(ctx, "/")
		},
		"unhandled-error listener of an operation": func(client *framework.Client, p *curatortest.Proxy) error {
			p.Faults().Add(curatortest.Rule{Ops: []string{"sync"}, Count: 3, Action: curatortest.CutBefore})
			b := client.Sync().InBackground(ignore)
			return b.WithUnhandledErrorListener(func(string, error) { panic("listener") }).ForPath(ctx, "/")
		},
		"compression provider": func(client *framework.Client, _ *curatortest.Proxy) error {
			return client.GetData().Decompressed().InBackground(ignore).ForPath(ctx, "/")
		},
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			client, _, proxy := setUpProxied(t, framework.WithCompressionProvider(panicking{}),
				framework.WithRetryPolicy(retry.NTimes(2, time.Millisecond)))
			reported := make(chan framework.UnhandledError, 10)
			client.AddUnhandledErrorListener(
				func(_ context.Context, e framework.UnhandledError) { reported <- e })
			if err := run(client, proxy); err != nil {
				t.Fatal(err)
			}
			if e := receive(t, reported); !strings.Contains(fmt.Sprint(e), "panic") {
				t.Errorf("got %v", e)
			}
			// The dispatcher lives, and what cannot be reported as it should be is reported as an error.
			ev := background.getData(t, client.GetData().Decompressed(), "/")
			if ev.Err == nil || ev.Data == nil {
				t.Errorf("data is %q, error %v", ev.Data, ev.Err)
			}
		})
	}
}
