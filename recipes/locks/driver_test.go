package locks_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// persistent is a driver whose nodes outlive their session.
type persistent struct{ locks.StandardDriver }

func (persistent) CreatesTheLock(create builders.Create) builders.Create {
	return create.WithProtection().WithMode(builders.PersistentSequential)
}

// In Java: TestInterProcessMutex.testPersistentLock.
func TestDriverPersistentNodeOutlivesSession(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	mu := locks.NewInterProcessMutex(client, lockPath, locks.WithDriver(persistent{}))
	hold := acquire(t, ctx, mu)
	session := client.Session()
	if err := testenv.Server(t).ExpireSession(session.ID()); err != nil {
		t.Fatal(err)
	}
	<-session.Context().Done()
	if _, err := mu.TryAcquire(ctx, 50*time.Millisecond); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("got %v", err)
	}
	if hold.Context().Err() != nil { // it would have ended by now
		t.Error("the hold has ended with the session")
	}
	release(t, hold)
	release(t, acquire(t, ctx, mu))
}

// newestFirst is a driver that grants the lock to the newest node.
type newestFirst struct{ locks.StandardDriver }

func (newestFirst) GetsTheLock(children []string, own string) locks.PredicateResults {
	return locks.PredicateResults{GetsTheLock: children[len(children)-1] == own}
}

func TestDriverDecidesHolder(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	mu := locks.NewInterProcessMutex(client, lockPath, locks.WithDriver(newestFirst{}))
	first := acquire(t, ctx, mu)
	second := acquire(t, ctx, mu) // the newest, at once
	release(t, second)
	release(t, first)
	awaitNothing(t, connect)
}

// ranked is a driver with a rank in the names of the nodes: the lowest rank is first, and within a rank the oldest
// node. A later node must not have a lower rank than the holder.
type ranked struct {
	locks.StandardDriver
	rank int
}

const rankLength = len("rank-1-")

func (d ranked) LockName() string { return fmt.Sprintf("rank-%d-", d.rank) }

func (ranked) FixForSorting(node, _ string) string { return node[strings.LastIndex(node, "rank-"):] }

func TestDriverNamesAndSortsNodes(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	of := func(rank int) *locks.InterProcessMutex {
		return locks.NewInterProcessMutex(client, lockPath, locks.WithDriver(ranked{rank: rank}))
	}
	holds := make(chan *locks.Hold)
	held := acquire(t, ctx, of(1))
	for i, rank := range []int{3, 2, 3} {
		go func() {
			hold, err := of(rank).Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			holds <- hold
		}()
		awaitContenders(t, client, i+2)
	}
	nodes, err := of(9).ParticipantNodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, node := range nodes {
		name := path.Base(node)
		got = append(got, name[strings.LastIndex(name, "rank-"):][:rankLength])
	}
	if diff := cmp.Diff([]string{"rank-1-", "rank-2-", "rank-3-", "rank-3-"}, got); diff != "" {
		t.Errorf("participants (-want +got):\n%s", diff)
	}
	var granted []string
	for hold := held; ; hold = <-holds {
		granted = append(granted, hold.Path())
		release(t, hold)
		if len(granted) == len(nodes) {
			break
		}
	}
	if diff := cmp.Diff(nodes, granted); diff != "" {
		t.Errorf("grants are not in the order of the participants (-want +got):\n%s", diff)
	}
	awaitNothing(t, connect)
}

// named is a driver whose nodes have a name.
type named struct {
	locks.StandardDriver
	name string
}

func (d named) LockName() string { return d.name }

func TestDriverInvalidNameIsRefused(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t))
	for _, name := range []string{"", "a/b", "/", "\x00"} {
		mu := locks.NewInterProcessMutex(client, lockPath, locks.WithDriver(named{name: name}))
		if _, err := mu.Acquire(testenv.Context(t)); !errors.Is(err, zk.ErrInvalidPath) {
			t.Errorf("name %q: got %v", name, err)
		}
	}
}

func TestReadWriteLockRefusesDriver(t *testing.T) {
	rw := locks.NewInterProcessReadWriteLock(newClient(t, testenv.ConnectString(t)), lockPath,
		locks.WithDriver(named{name: "n-"}))
	for _, side := range []*locks.InterProcessMutex{rw.ReadLock(), rw.WriteLock()} {
		if hold, err := side.Acquire(testenv.Context(t)); err == nil || hold != nil {
			t.Errorf("got %v, %v", hold, err)
		}
	}
}
