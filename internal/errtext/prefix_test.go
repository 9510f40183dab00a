package errtext_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/barrier"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
)

// prefixes are those of all errors that a program can see.
var prefixes = []string{"barrier", "curator", "leader", "locks", "queue", "retry", "wire", "zk"}

// provoked is an error, and the sentinel that it has to match.
type provoked struct {
	name, prefix string
	err, is      error
}

func (p provoked) check(t *testing.T) {
	t.Helper()
	if p.err == nil || !errors.Is(p.err, p.is) {
		t.Errorf("%s: error %v, want %v", p.name, p.err, p.is)
		return
	}
	text := p.err.Error()
	if !strings.HasPrefix(text, p.prefix+": ") {
		t.Errorf("%s: error %q does not begin with %q", p.name, text, p.prefix)
	}
	for line := range strings.Lines(text) { // of a joined error each has its own
		words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\n' || r == '(' })
		found := slices.DeleteFunc(words, func(word string) bool {
			name, isPrefix := strings.CutSuffix(word, ":")
			return !isPrefix || !slices.Contains(prefixes, name)
		})
		if len(found) > 1 {
			t.Errorf("%s: error %q has several prefixes: %q", p.name, text, found)
		}
	}
}

func newClient(t *testing.T, connect string, opts ...framework.Option) *framework.Client {
	t.Helper()
	client, err := framework.New(connect, append([]framework.Option{
		framework.WithConnectionTimeout(5 * time.Second), framework.WithRetryPolicy(retry.NTimes(0, 0)),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func connected(t *testing.T, opts ...framework.Option) *framework.Client {
	t.Helper()
	client := newClient(t, testenv.ConnectString(t), opts...)
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func closed(t *testing.T) *framework.Client {
	t.Helper()
	client := newClient(t, "127.0.0.1:1")
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	return client
}

func failure(_ any, err error) error { return err }

func TestErrorsOfAClientHaveOnePrefix(t *testing.T) {
	ctx := testenv.Context(t)
	made := func(connect string, opts ...framework.Option) error { return failure(framework.New(connect, opts...)) }
	client, over := connected(t), closed(t)
	away := newClient(t, "127.0.0.1:1", framework.WithConnectionTimeout(time.Millisecond))
	if err := away.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := away.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := failure(client.Create().ForPath(ctx, "/text", []byte("no gzip"))); err != nil {
		t.Fatal(err)
	}
	view := client.UsingNamespace("/app")
	op := client.TransactionOp()
	tests := []provoked{
		{"connect string", "curator", made("h1:2181/a//b"), zk.ErrInvalidPath},
		{"namespace", "curator", made("h1", framework.WithNamespace("/app")), zk.ErrInvalidPath},
		{"policy", "curator", made("h1", framework.WithRetryPolicy(retry.ExponentialBackoff(1000, 3))), zk.ErrBadArguments},
		{
			"several", "curator",
			made("h1:0", framework.WithNamespace("/"), framework.WithRetryPolicy(retry.Forever(0))),
			framework.ErrBadArguments,
		},
		{
			"ensemble provider", "curator",
			newClient(t, "", framework.WithEnsembleProvider(failing{})).Start(),
			framework.ErrClosed,
		},
		{"started twice", "curator", client.Start(), framework.ErrStarted},
		{"view", "curator", view.Start(), framework.ErrView},
		{"not started", "curator", failure(newClient(t, "h1").GetData().ForPath(ctx, "/a")), framework.ErrNotStarted},
		{"closed", "curator", failure(over.GetData().ForPath(ctx, "/a")), framework.ErrClosed},
		{"closed, blocking", "curator", over.BlockUntilConnected(ctx), framework.ErrClosed},
		{"no node", "curator", failure(client.GetData().ForPath(ctx, "/none")), zk.ErrNoNode},
		{"bad path", "curator", failure(client.GetData().ForPath(ctx, "none")), zk.ErrInvalidPath},
		{"bad namespace", "curator", failure(view.GetData().ForPath(ctx, "/a")), zk.ErrInvalidPath},
		{"not sent", "curator", failure(away.GetData().ForPath(ctx, "/a")), framework.ErrNotSent},
		{"no watcher", "curator", client.Watches().RemoveAll().ForPath(ctx, "/a"), framework.ErrNoWatcher},
		{
			"no gzip", "curator",
			failure(client.GetData().Decompressed().ForPath(ctx, "/text")),
			framework.ErrDataInconsistency,
		},
		{
			"too large", "curator",
			failure(client.SetData().ForPath(ctx, "/text", make([]byte, 2<<20))),
			framework.ErrRequestTooLarge,
		},
		{
			"transaction", "curator",
			failure(client.Transaction().ForOperations(ctx, op.Check().ForPath("/none"))),
			zk.ErrNoNode,
		},
		{
			"bad operation", "curator",
			failure(client.Transaction().ForOperations(ctx, op.Check().ForPath("none"))),
			zk.ErrInvalidPath,
		},
		{"context", "curator", canceled(client), context.Canceled},
		{"session that fails", "curator", client.CallInSession(ctx, false, func(ctx context.Context) error {
			if err := client.Reset(); err != nil {
				return err
			}
			return failure(client.GetData().ForPath(ctx, "/none"))
		}), framework.ErrSessionFailed},
		{"retry", "retry", retry.OneTime(-1).(retry.Validator).Validate(), zk.ErrBadArguments},
		{"path", "zk", zkpath.Validate("a", false), zk.ErrInvalidPath},
		{"path of a namespace", "zk", zkpath.ValidateNamespace("a//b"), zk.ErrInvalidPath},
	}
	for _, p := range tests {
		p.check(t)
	}
}

// failing is an ensemble provider that passes on an error of a client.
type failing struct{ framework.EnsembleProvider }

func (failing) Start() error             { return framework.ErrClosed }
func (failing) ConnectionString() string { return "h1" }

func canceled(client *framework.Client) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return client.Delete().ForPath(ctx, "/a")
}

func TestErrorsOfTheBackgroundHaveOnePrefix(t *testing.T) {
	ctx := testenv.Context(t)
	client := connected(t)
	unhandled := make(chan error, 10)
	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
		unhandled <- e.Err
	})
	results := make(chan error, 10)
	cause := failure(client.GetData().ForPath(ctx, "/none"))
	err := client.GetData().InBackground(func(_ context.Context, ev callbacks.Event) {
		results <- ev.Err
		panic(ev.Err)
	}).ForPath(ctx, "/none")
	if err != nil {
		t.Fatal(err)
	}
	provoked{"callback", "curator", <-results, zk.ErrNoNode}.check(t)
	panicked := <-unhandled
	first, _, _ := strings.Cut(panicked.Error(), "\n") // the stack follows
	if want := "curator: panic in background callback: " + strings.TrimPrefix(cause.Error(), "curator: "); first != want {
		t.Errorf("panic reads %q, want %q", first, want)
	}
}

func TestErrorsOfRecipesHaveOnePrefix(t *testing.T) {
	ctx := testenv.Context(t)
	client, over := connected(t), closed(t)
	for name, tests := range map[string][]provoked{
		"locks":   lockErrors(ctx, t, client, over),
		"leader":  leaderErrors(ctx, t, over),
		"barrier": barrierErrors(ctx, t, client, over),
		"queue":   queueErrors(ctx, t, client, over),
	} {
		for _, p := range tests {
			t.Run(name+"/"+p.name, func(t *testing.T) {
				p.prefix = cmp.Or(p.prefix, name)
				p.check(t)
			})
		}
	}
}

func lockErrors(ctx context.Context, t *testing.T, client, over *framework.Client) []provoked {
	t.Helper()
	mutex, other := locks.NewInterProcessMutex(client, "/lock"), locks.NewInterProcessMutex(client, "/lock")
	hold, err := mutex.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hold.Release(context.Background()); err != nil {
			t.Error(err)
		}
	})
	_, nothing := locks.NewInterProcessSemaphoreV2(client, "/semaphore", 0).Acquire(ctx)
	gone := locks.NewInterProcessMutex(over, "/lock")
	owner := locks.WithOwner(ctx)
	table := locks.NewInterProcessReadWriteLock(client, "/table")
	if _, err := table.ReadLock().Acquire(owner); err != nil {
		t.Fatal(err)
	}
	return []provoked{
		{"held", "", failure(other.TryAcquire(ctx, 0)), locks.ErrNotAcquired},
		{"held for a while", "", failure(other.TryAcquire(ctx, time.Millisecond)), locks.ErrNotAcquired},
		{"multi lock", "", failure(locks.NewInterProcessMultiLock(other).TryAcquire(ctx, 0)), locks.ErrNotAcquired},
		{"bad path", "", failure(locks.NewInterProcessMutex(client, "lock").Acquire(ctx)), zk.ErrInvalidPath},
		{"not owned", "", other.Release(locks.WithOwner(ctx)), locks.ErrNotOwner},
		{"upgrade", "", failure(table.WriteLock().Acquire(owner)), locks.ErrUpgrade},
		{"closed client", "", failure(gone.Acquire(ctx)), framework.ErrClosed},
		{"participants", "", failure(gone.ParticipantNodes(ctx)), framework.ErrClosed},
		{
			"bad path of a semaphore", "",
			failure(locks.NewInterProcessSemaphoreV2(client, "a", 1).ParticipantNodes(ctx)),
			zk.ErrInvalidPath,
		},
		{
			"closed client of a semaphore", "",
			failure(locks.NewInterProcessSemaphoreV2(over, "/s", 1).Acquire(ctx)),
			framework.ErrClosed,
		},
		{"semaphore of nothing", "", nothing, nothing},
		{"semaphore mutex", "", locks.NewInterProcessSemaphoreMutex(client, "/m").Release(ctx), locks.ErrNotOwner},
	}
}

func leaderErrors(ctx context.Context, t *testing.T, over *framework.Client) []provoked {
	t.Helper()
	latch := leader.NewLeaderLatch(over, "/latch")
	selector := leader.NewLeaderSelector(over, "/selector", func(context.Context) error { return nil })
	return []provoked{
		{"bad path", "", leader.NewLeaderLatch(over, "latch").Start(), zk.ErrInvalidPath},
		{"participants", "", failure(latch.Participants(ctx)), framework.ErrClosed},
		{"leader", "", failure(latch.Leader(ctx)), framework.ErrClosed},
		{"start", "", selector.Start(), framework.ErrClosed},
	}
}

func barrierErrors(ctx context.Context, t *testing.T, client, over *framework.Client) []provoked {
	t.Helper()
	double := barrier.NewDistributedDoubleBarrier(client, "/double", 1)
	if err := double.Enter(ctx); err != nil {
		t.Fatal(err)
	}
	single := barrier.NewDistributedBarrier(over, "/barrier")
	return []provoked{
		{"bad path", "", barrier.NewDistributedBarrier(client, "barrier").SetBarrier(ctx), zk.ErrInvalidPath},
		{"set", "", single.SetBarrier(ctx), framework.ErrClosed},
		{"remove", "", single.RemoveBarrier(ctx), framework.ErrClosed},
		{"wait", "", single.WaitOnBarrier(ctx), framework.ErrClosed},
		{"entered", "", double.Enter(ctx), barrier.ErrEntered},
		{"not entered", "", barrier.NewDistributedDoubleBarrier(client, "/d", 1).Leave(ctx), barrier.ErrNotEntered},
		{"enter", "", barrier.NewDistributedDoubleBarrier(over, "/d", 1).Enter(ctx), framework.ErrClosed},
	}
}

// broken is a codec that fails.
type broken struct{}

func (broken) Encode(string) ([]byte, error) { return nil, builders.ErrBadArguments }
func (broken) Decode([]byte) (string, error) { return "", builders.ErrBadArguments }

func queueErrors(ctx context.Context, t *testing.T, client, over *framework.Client) []provoked {
	t.Helper()
	corrupt := make(chan error, 1)
	var unreadable codec.Codec[string] = broken{}
	b := queue.NewBuilder(client, nil, unreadable, "/queue")
	q, err := b.BuildQueue()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := queue.NewBuilder(client, nil, codec.Codec[string](codec.Text{}), "/queue").BuildQueue()
	if err != nil {
		t.Fatal(err)
	}
	reader, err := queue.NewBuilder(client, func(context.Context, string) error { return nil }, unreadable, "/queue").
		OnError(func(_ context.Context, err error) {
			select {
			case corrupt <- err:
			default:
			}
		}).BuildQueue()
	if err != nil {
		t.Fatal(err)
	}
	notStarted := plain.Put(ctx, "a")
	for _, q := range []*queue.DistributedQueue[string]{q, plain, reader} {
		if err := q.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	notEncoded := q.Put(ctx, "a")
	if err := plain.Put(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	return []provoked{
		{"bad path", "", failure(queue.NewBuilder(client, nil, unreadable, "q").BuildQueue()), zk.ErrInvalidPath},
		{"not started", "", notStarted, queue.ErrNotStarted},
		{"codec", "", notEncoded, builders.ErrBadArguments},
		{"corrupt item", "", <-corrupt, queue.ErrCorrupt},
		{"simple queue", "", queue.NewSimpleDistributedQueue(client, "q").Offer(ctx, nil), zk.ErrInvalidPath},
		{"element", "", failure(queue.NewSimpleDistributedQueue(client, "/none").Element(ctx)), queue.ErrEmpty},
		{"item", "", &queue.ItemError{Path: "/queue/a", Err: queue.ErrUncertain}, queue.ErrUncertain},
		{"closed client", "curator", queue.NewSimpleDistributedQueue(over, "/simple").Offer(ctx, nil), framework.ErrClosed},
	}
}
