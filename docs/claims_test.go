// What the pages on porting say about behaviour, beside names.

package docs_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/queue"
)

// connect returns a started client of a server in memory.
func connect(t *testing.T) (*curatortest.Server, *framework.Client) {
	t.Helper()
	server := curatortest.NewServerT(t, curatortest.WithoutPort())
	client, err := framework.New(server.ConnectString(), framework.WithDialer(server.DialContext),
		framework.WithMaxCloseWait(20*time.Second)) // on a busy machine it may take a while
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	return server, client
}

func TestMutexReleaseWithoutOwnerKeepsLock(t *testing.T) {
	t.Parallel()
	_, client := connect(t)
	ctx := t.Context()
	mu := locks.NewInterProcessMutex(client, "/lock")
	hold, err := mu.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := mu.Release(ctx); !errors.Is(err, locks.ErrNotOwner) {
		t.Errorf("Release without an owner: %v, not %v", err, locks.ErrNotOwner)
	}
	if !mu.IsAcquiredInThisProcess() {
		t.Error("the lock is released")
	}
	if err := hold.Release(hold.Context()); err != nil {
		t.Error(err)
	}
	if err := releaseOfHold(ctx, mu); err != nil {
		t.Error(err)
	}
	if err := releaseOfOwner(ctx, mu); err != nil {
		t.Error(err)
	}
	if mu.IsAcquiredInThisProcess() {
		t.Error("the lock is held still")
	}
}

func TestSemaphoreMutexReleaseWithoutOwner(t *testing.T) {
	t.Parallel()
	_, client := connect(t)
	ctx := t.Context()
	mu := locks.NewInterProcessSemaphoreMutex(client, "/one")
	if _, err := mu.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	if err := mu.Release(ctx); err != nil {
		t.Error(err)
	}
	if mu.IsAcquiredInThisProcess() {
		t.Error("the lock is held still")
	}
}

func TestWriterGoesOnToRead(t *testing.T) {
	t.Parallel()
	_, client := connect(t)
	lock := locks.NewInterProcessReadWriteLock(client, "/rw")
	if err := writeThenRead(t.Context(), lock); err != nil {
		t.Error(err)
	}
	if lock.WriteLock().IsAcquiredInThisProcess() || lock.ReadLock().IsAcquiredInThisProcess() {
		t.Error("a side is held still")
	}
}

func TestUnstartedLatchObserves(t *testing.T) {
	t.Parallel()
	_, client := connect(t)
	ctx := t.Context()
	observer := leader.NewLeaderLatch(client, "/leader")
	if who, err := observer.Leader(ctx); err != nil || who.IsLeader {
		t.Errorf("without a leader: %v, %v", who, err)
	}
	latch := leader.NewLeaderLatch(client, "/leader", leader.WithID("host-7"))
	if err := latch.Start(); err != nil {
		t.Fatal(err)
	}
	defer latch.Close()
	if _, err := latch.Await(ctx); err != nil {
		t.Fatal(err)
	}
	want := leader.Participant{ID: "host-7", IsLeader: true}
	if who, err := observer.Leader(ctx); err != nil || who != want {
		t.Errorf("leader: %v, %v, not %v", who, err, want)
	}
	if all, err := observer.Participants(ctx); err != nil || !cmp.Equal(all, []leader.Participant{want}) {
		t.Errorf("participants: %v, %v, not %v", all, err, want)
	}
}

func TestUnstartedSelectorObserves(t *testing.T) {
	t.Parallel()
	_, client := connect(t)
	ctx := t.Context()
	leads := make(chan struct{})
	selector := leader.NewLeaderSelector(client, "/leader", func(ctx context.Context) error {
		close(leads)
		<-ctx.Done()
		return ctx.Err()
	}, leader.WithID("host-7"))
	if err := selector.Start(); err != nil {
		t.Fatal(err)
	}
	defer selector.Close()
	<-leads
	want := leader.Participant{ID: "host-7", IsLeader: true}
	observer := leader.NewLeaderSelector(client, "/leader", nil)
	if who, err := observer.Leader(ctx); err != nil || who != want {
		t.Errorf("leader: %v, %v, not %v", who, err, want)
	}
}

func TestNamespaceNodeIsDeletedByFullPath(t *testing.T) {
	t.Parallel()
	server, client := connect(t)
	ctx := t.Context()
	app := client.UsingNamespace("app")
	if _, err := app.Create().ForPath(ctx, "/config", nil); err != nil {
		t.Fatal(err)
	}
	if err := namespaceNode(ctx, app); err != nil {
		t.Fatal(err)
	}
	if server.Exists("/app") {
		t.Error("the node of the namespace is there still")
	}
	if stat, err := client.UsingNamespace("other").CheckExists().ForPath(ctx, "/"); err != nil || stat == nil {
		t.Errorf("the root of a new view: %v, %v", stat, err)
	}
}

func TestDeleteChildrenKeepsNode(t *testing.T) {
	t.Parallel()
	server, client := connect(t)
	ctx := t.Context()
	if _, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, "/tree/a/b", nil); err != nil {
		t.Fatal(err)
	}
	if err := deleteChildren(ctx, client); err != nil {
		t.Fatal(err)
	}
	if !server.Exists("/tree") || server.Exists("/tree/a") {
		t.Error("not the children alone are deleted")
	}
	if err := rawHandle(ctx, client); err != nil || server.Exists("/tree") {
		t.Errorf("the tree is there still: %v", err)
	}
}

func TestMkdirsCreatesLastNode(t *testing.T) {
	t.Parallel()
	server, client := connect(t)
	ctx := t.Context()
	steps := []struct {
		mkdirs func(context.Context, *framework.Client) error
		there  string
		absent string
	}{
		{mkdirsOfContainers, "/app/jobs", "/app/jobs/foo"},
		{mkdirs, "/app/jobs", "/app/jobs/7"},
		{mkdirsOfParents, "/app/jobs", "/app/jobs/7"},
	}
	for i, step := range steps {
		for range 2 { // it is no error if the nodes are there
			if err := step.mkdirs(ctx, client); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			if !server.Exists(step.there) || server.Exists(step.absent) {
				t.Fatalf("step %d: not %s alone is there", i, step.there)
			}
		}
		if err := client.Delete().DeletingChildrenIfNeeded().ForPath(ctx, "/app"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPathChildrenCacheDoesNotCreateItsNode(t *testing.T) {
	t.Parallel()
	server, client := connect(t)
	ctx := t.Context()
	c := aPathChildrenCacheWithoutData(client)
	added := make(chan *cache.ChildData, 1)
	c.AddListener(func(_ context.Context, ev cache.PathChildrenCacheEvent) {
		if ev.Type == cache.ChildAdded {
			added <- ev.Data
		}
	})
	if err := c.Start(ctx, cache.BuildInitialCache); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if server.Exists("/workers") {
		t.Error("the cache has created its node")
	}
	_, err := client.Create().WithMode(builders.Ephemeral).ForPath(ctx, "/workers/a", []byte("10.0.0.7"))
	if !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("create below no node: %v, not %v", err, zk.ErrNoNode)
	}
	for range 2 {
		if err := nodeOfWorkers(ctx, client); err != nil {
			t.Fatal(err)
		}
	}
	_, err = client.Create().WithMode(builders.Ephemeral).ForPath(ctx, "/workers/a", []byte("10.0.0.7"))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case child := <-added:
		if string(child.Data) != "10.0.0.7" {
			t.Errorf("data of the event: %q", child.Data)
		}
	case <-time.After(curatortest.DefaultTiming().Waiting()):
		t.Fatal("no event")
	}
	if child := c.CurrentDataOf("/workers/a"); child == nil || child.Data != nil {
		t.Errorf("the cached child: %+v, not one without data", child)
	}
}

// listenerContexts has the first context that each kind of listener gets.
type listenerContexts struct {
	mu       sync.Mutex
	contexts map[string]context.Context
	got      chan string
}

func (l *listenerContexts) note(ctx context.Context, kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.contexts[kind] == nil {
		l.contexts[kind] = ctx
		l.got <- kind
	}
}

// await waits for the first context of some more kinds.
func (l *listenerContexts) await(t *testing.T, kinds int) {
	t.Helper()
	var called []string
	for range kinds {
		select {
		case kind := <-l.got:
			called = append(called, kind)
		case <-time.After(curatortest.DefaultTiming().Waiting()):
			t.Fatalf("only these were called: %v", called)
		}
	}
}

// want fails unless the contexts of just these kinds have ended, each with its cause.
func (l *listenerContexts) want(t *testing.T, when string, ended map[string]error) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for kind, ctx := range l.contexts {
		if cause := context.Cause(ctx); !errors.Is(cause, ended[kind]) {
			t.Errorf("%s, %s: the context has the cause %v, not %v", when, kind, cause, ended[kind])
		}
		if hasEnded := ctx.Err() != nil; hasEnded != (ended[kind] != nil) {
			t.Errorf("%s, %s: the error of the context is %v", when, kind, ctx.Err())
		}
	}
}

func TestContextsOfListenersEndWhenClosed(t *testing.T) {
	t.Parallel()
	server, client := connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := listenerContexts{contexts: make(map[string]context.Context), got: make(chan string, 100)}
	client.AddConnectionStateListener(func(ctx context.Context, s framework.ConnectionState) {
		if s == framework.Suspended {
			l.note(ctx, "state")
		}
	})
	client.AddCuratorListener(func(ctx context.Context, ev callbacks.Event) {
		if ev.Type == callbacks.SetData {
			l.note(ctx, "curator")
		}
	})
	client.AddUnhandledErrorListener(func(ctx context.Context, _ framework.UnhandledError) {
		l.note(ctx, "unhandled")
	})
	c := cache.NewNodeCache(client, "/a")
	c.AddListener(func(ctx context.Context, _ *cache.ChildData) { l.note(ctx, "cache") })
	latch := leader.NewLeaderLatch(client, "/leader")
	latch.AddListener(func(ctx context.Context, _ leader.LatchEvent) { l.note(ctx, "latch") })
	q, err := queue.NewBuilder(client, nil, codec.Text{}, "/queue").BuildQueue()
	if err != nil {
		t.Fatal(err)
	}
	q.AddPutListener(func(ctx context.Context, _ queue.PutEvent[string]) { l.note(ctx, "queue") })
	watcher := callbacks.NewWatcher(func(ctx context.Context, _ zk.Event) { l.note(ctx, "watcher") })
	create := client.Create().InBackground(func(ctx context.Context, _ callbacks.Event) { l.note(ctx, "callback") })
	_, err = client.CheckExists().UsingWatcher(watcher).ForPath(ctx, "/a")
	for _, err := range []error{
		err, c.StartAndBuild(ctx), latch.Start(), q.Start(), create.ForPath(ctx, "/a", nil),
		client.SetData().InBackground(nil).ForPath(ctx, "/a", nil), q.Put(ctx, "item"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	reporting, ended := context.WithCancel(ctx)
	ended()
	client.ReportUnhandled(reporting, "on purpose", errors.New("no error"))
	l.await(t, 7)
	if err := server.ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	l.await(t, 1)
	cancel()
	want := map[string]error{}
	l.want(t, "before Close", want)
	closed := func(name string, closer func() error, cause error, kinds ...string) {
		t.Helper()
		if err := closer(); err != nil {
			t.Error(err)
		}
		for _, kind := range kinds {
			want[kind] = cause
		}
		l.want(t, "after Close of the "+name, want)
	}
	closed("latch", latch.Close, leader.ErrClosed, "latch")
	closed("cache", c.Close, cache.ErrClosed, "cache")
	closed("queue", q.Close, queue.ErrClosed, "queue")
	closed("client", client.Close, framework.ErrClosed, "state", "curator", "unhandled")
}

// seen is what a watcher gets, as far as the tables of the page go.
type seen struct {
	Type  zk.EventType
	State zk.State
	Err   error
}

func TestWatcherEventsHaveTheStatesOfTheTable(t *testing.T) {
	t.Parallel()
	server, client := connect(t)
	ctx := t.Context()
	events := make(chan zk.Event, 10)
	watch := func(w *callbacks.Watcher) {
		t.Helper()
		if _, err := client.CheckExists().UsingWatcher(w).ForPath(ctx, "/a"); err != nil {
			t.Fatal(err)
		}
	}
	next := func() seen {
		t.Helper()
		select {
		case ev := <-events:
			return seen{ev.Type, ev.State, ev.Err}
		case <-time.After(curatortest.DefaultTiming().Waiting()):
			t.Fatal("no event")
			return seen{}
		}
	}
	expect := func(want seen) {
		t.Helper()
		if got := next(); got != want {
			t.Errorf("event: %v, not %v", got, want)
		}
	}
	removed := callbacks.NewChanWatcher(events)
	watch(removed)
	if err := client.Watches().Remove(removed).ForPath(ctx, "/a"); err != nil {
		t.Fatal(err)
	}
	watch(callbacks.NewChanWatcher(events))
	if _, err := client.Create().ForPath(ctx, "/a", nil); err != nil {
		t.Fatal(err)
	}
	expect(seen{zk.EventNodeCreated, zk.StateHasSession, nil}) // not one for the watcher that was removed

	watch(callbacks.NewChanWatcher(events))
	server.Faults().CutAll()
	expect(seen{zk.EventSession, zk.StateDisconnected, nil})
	expect(seen{zk.EventSession, zk.StateHasSession, nil})
	if err := server.ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	got := next()
	if got.State == zk.StateDisconnected { // the server has closed the connection; the next one says why
		got = next()
	}
	if want := (seen{zk.EventSession, zk.StateExpired, zk.ErrSessionExpired}); got != want {
		t.Errorf("event: %v, not %v", got, want)
	}
	watch(callbacks.NewChanWatcher(events))
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	expect(seen{zk.EventSession, zk.StateExpired, zk.ErrClosing})
}
