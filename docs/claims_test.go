// What porting-from-java.md says about behaviour, beside names.

package docs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
)

// connect returns a started client of a server in memory.
func connect(t *testing.T) (*curatortest.Server, *framework.Client) {
	t.Helper()
	server := curatortest.NewServerT(t, curatortest.InMemory())
	client, err := framework.New(server.ConnectString(), framework.WithDialer(server.DialContext))
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
