package locks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/zkpath"
)

// fenced is what can be done with a hold and with a lease.
type fenced interface {
	Fence() builders.TransactionOperation
	Client() *framework.Client
	Transaction(ctx context.Context, ops ...builders.TransactionOperation) ([]callbacks.OperationResult, error)
	Path() string
	Context() context.Context
}

// held is something that is held, and how it ends.
type held struct {
	fenced
	nodes   []string // paths of a client without a namespace
	release func(ctx context.Context) error
}

// holdEach has each kind of lock, acquired with a client of the namespace "ns".
var holdEach = map[string]func(t *testing.T, client *framework.Client) held{
	"mutex": func(t *testing.T, client *framework.Client) held {
		return heldOf(t, locks.NewInterProcessMutex(client, lockPath))
	},
	"revoked mutex": func(t *testing.T, client *framework.Client) held {
		t.Helper()
		ctx := testenv.Context(t)
		mu := locks.NewInterProcessMutex(client, lockPath)
		requested := make(chan struct{})
		mu.MakeRevocable(func(*locks.Hold) { close(requested) })
		h := heldOf(t, mu)
		if err := locks.Revoke(ctx, client, h.Path()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-requested:
		case <-ctx.Done():
			t.Fatal("no request came")
		}
		return h
	},
	"read lock": func(t *testing.T, client *framework.Client) held {
		return heldOf(t, locks.NewInterProcessReadWriteLock(client, lockPath).ReadLock())
	},
	"write lock": func(t *testing.T, client *framework.Client) held {
		return heldOf(t, locks.NewInterProcessReadWriteLock(client, lockPath).WriteLock())
	},
	"downgraded lock": func(t *testing.T, client *framework.Client) held {
		t.Helper()
		ctx := locks.WithOwner(testenv.Context(t))
		rw := locks.NewInterProcessReadWriteLock(client, lockPath)
		writer := acquire(t, ctx, rw.WriteLock())
		reader := acquire(t, ctx, rw.ReadLock())
		release(t, writer)
		return held{reader, []string{"/ns" + reader.Path()}, reader.Release}
	},
	"semaphore mutex": func(t *testing.T, client *framework.Client) held {
		return heldOf(t, locks.NewInterProcessSemaphoreMutex(client, lockPath))
	},
	"lease": func(t *testing.T, client *framework.Client) held {
		t.Helper()
		lease, err := locks.NewInterProcessSemaphoreV2(client, lockPath, 2).Acquire(testenv.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		return held{lease, []string{"/ns" + lease.Path()}, lease.Return}
	},
	"multi lock, first": func(t *testing.T, client *framework.Client) held { return holdMulti(t, client, 0) },
	"multi lock, last":  func(t *testing.T, client *framework.Client) held { return holdMulti(t, client, 2) },
}

func heldOf(t *testing.T, lock locks.InterProcessLock) held {
	t.Helper()
	hold := acquire(t, testenv.Context(t), lock)
	return held{hold, []string{"/ns" + hold.Path()}, hold.Release}
}

// holdMulti acquires a multi lock of locks in several namespaces, of which number i is to go.
func holdMulti(t *testing.T, client *framework.Client, i int) held {
	t.Helper()
	clients := []*framework.Client{client, client.UsingNamespace("other"), client.UsingNamespace("")}
	var parts []locks.InterProcessLock
	for _, c := range clients {
		parts = append(parts, locks.NewInterProcessMutex(c, lockPath))
	}
	hold := acquire(t, testenv.Context(t), locks.NewInterProcessMultiLock(parts...))
	nodes, err := parts[i].(*locks.InterProcessMutex).ParticipantNodes(testenv.Context(t))
	if err != nil || len(nodes) != 1 {
		t.Fatal(nodes, err)
	}
	return held{hold, []string{zkpath.Join(clients[i].Namespace(), nodes[0])}, hold.Release}
}

// writes are the ways to write with a hold.
var writes = map[string]func(ctx context.Context, client *framework.Client, h fenced) error{
	"client": func(ctx context.Context, _ *framework.Client, h fenced) error {
		_, err := h.Client().SetData().ForPath(ctx, "/data", []byte("new"))
		return err
	},
	"client in another namespace": func(ctx context.Context, _ *framework.Client, h fenced) error {
		_, err := h.Client().UsingNamespace("").SetData().ForPath(ctx, "/ns/data", []byte("new"))
		return err
	},
	"transaction": func(ctx context.Context, client *framework.Client, h fenced) error {
		_, err := h.Transaction(ctx, client.TransactionOp().SetData().ForPath("/data", []byte("new")))
		return err
	},
	"fence": func(ctx context.Context, client *framework.Client, h fenced) error {
		op := client.TransactionOp().SetData().ForPath("/data", []byte("new"))
		_, err := client.UsingNamespace("other").Transaction().ForOperations(ctx, h.Fence(), op)
		return err
	},
}

// eachFencedHold runs a test for each lock and way to write, with data to be written.
func eachFencedHold(t *testing.T,
	test func(ctx context.Context, t *testing.T, client *framework.Client, h held, write func() error),
) {
	for lock, take := range holdEach {
		for way, write := range writes {
			t.Run(lock+"/"+way, func(t *testing.T) {
				t.Parallel()
				ctx := testenv.Context(t)
				client := newClient(t, testenv.ConnectString(t), framework.WithNamespace("ns"))
				if _, err := client.Create().ForPath(ctx, "/data", []byte("old")); err != nil {
					t.Fatal(err)
				}
				h := take(t, client)
				test(ctx, t, client, h, func() error { return write(ctx, client, h) })
			})
		}
	}
}

func wantData(ctx context.Context, t *testing.T, client *framework.Client, want string) {
	t.Helper()
	if data, err := client.GetData().ForPath(ctx, "/data"); err != nil || string(data) != want {
		t.Errorf("data is %q, %v, want %q", data, err, want)
	}
}

func TestFencedWriteOfHolderSucceeds(t *testing.T) {
	eachFencedHold(t, func(ctx context.Context, t *testing.T, client *framework.Client, _ held, write func() error) {
		if err := write(); err != nil {
			t.Error(err)
		}
		wantData(ctx, t, client, "new")
	})
}

// TestFencedWriteOfFormerHolderFails has the node of a hold deleted, of which the holder does not hear.
func TestFencedWriteOfFormerHolderFails(t *testing.T) {
	eachFencedHold(t, func(ctx context.Context, t *testing.T, client *framework.Client, h held, write func() error) {
		for _, node := range h.nodes {
			if err := client.UsingNamespace("").Delete().ForPath(ctx, node); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(); !errors.Is(err, locks.ErrLockLost) || errors.Is(err, zk.ErrNoNode) {
			t.Errorf("error is %v", err)
		}
		wantData(ctx, t, client, "old")
		_, err := h.Client().SetData().ForPath(ctx, "/none", nil)
		if !errors.Is(err, locks.ErrLockLost) {
			t.Errorf("error is %v", err)
		}
	})
}

func TestFencedWriteAfterReleaseFails(t *testing.T) {
	for lock, take := range holdEach {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			client := newClient(t, testenv.ConnectString(t), framework.WithNamespace("ns"))
			h := take(t, client)
			early := h.Client()
			if err := h.release(ctx); err != nil {
				t.Fatal(err)
			}
			for _, c := range []*framework.Client{early, h.Client()} {
				if _, err := c.Create().ForPath(ctx, "/late", nil); !errors.Is(err, locks.ErrReleased) {
					t.Errorf("error is %v", err)
				}
				if _, err := c.CheckExists().ForPath(ctx, "/late"); err != nil {
					t.Error("a read is refused:", err)
				}
			}
			_, err := client.Transaction().ForOperations(ctx, h.Fence(), client.TransactionOp().Create().ForPath("/late", nil))
			if !errors.Is(err, locks.ErrLockLost) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// TestFencedWriteAfterThatOfNextHolderFails is what tokens are compared for otherwise.
func TestFencedWriteAfterThatOfNextHolderFails(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	one, two := newClient(t, connect), newClient(t, connect)
	if _, err := one.Create().ForPath(ctx, "/data", []byte("old")); err != nil {
		t.Fatal(err)
	}
	late := acquire(t, ctx, locks.NewInterProcessMutex(one, lockPath))
	waiting := make(chan *locks.Hold, 1)
	go func() {
		hold, err := locks.NewInterProcessMutex(two, lockPath).Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		waiting <- hold
	}()
	awaitContenders(t, one, 2)
	if err := two.Delete().ForPath(ctx, late.Path()); err != nil {
		t.Fatal(err)
	}
	next := <-waiting
	if next == nil {
		return
	}
	if _, err := next.Client().SetData().ForPath(ctx, "/data", []byte("next")); err != nil {
		t.Error(err)
	}
	if _, err := late.Client().SetData().ForPath(ctx, "/data", []byte("late")); !errors.Is(err, locks.ErrLockLost) {
		t.Errorf("error of the late one is %v", err)
	}
	wantData(ctx, t, one, "next")
	release(t, next)
}
