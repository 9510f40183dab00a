package locks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// foreignClient is a Client as a user may write one: it embeds nothing, and names public types only.
type foreignClient struct {
	inner   *framework.Client
	creates int
}

func (c *foreignClient) Create() builders.Create               { c.creates++; return c.inner.Create() }
func (c *foreignClient) Delete() builders.Delete               { return c.inner.Delete() }
func (c *foreignClient) CheckExists() builders.CheckExists     { return c.inner.CheckExists() }
func (c *foreignClient) Transaction() builders.Transaction     { return c.inner.Transaction() }
func (c *foreignClient) TransactionOp() builders.TransactionOp { return c.inner.TransactionOp() }
func (c *foreignClient) GetData() builders.GetData             { return c.inner.GetData() }
func (c *foreignClient) SetData() builders.SetData             { return c.inner.SetData() }
func (c *foreignClient) GetChildren() builders.GetChildren     { return c.inner.GetChildren() }
func (c *foreignClient) Watches() builders.Watches             { return c.inner.Watches() }
func (c *foreignClient) Session() *framework.Session           { return c.inner.Session() }
func (c *foreignClient) QuorumHeartbeats() (stop func())       { return c.inner.QuorumHeartbeats() }
func (c *foreignClient) Namespace() string                     { return c.inner.Namespace() }

func (c *foreignClient) BlockUntilConnected(ctx context.Context) error {
	return c.inner.BlockUntilConnected(ctx)
}

func (c *foreignClient) UsingNamespace(ns string) *framework.Client {
	return c.inner.UsingNamespace(ns)
}

var _ locks.Client = (*foreignClient)(nil)

func TestMutexForeignClient(t *testing.T) {
	ctx := testenv.Context(t)
	o, client, other := observed(t)
	foreign := &foreignClient{inner: client}
	mu := locks.NewInterProcessMutex(foreign, lockPath)
	first := acquire(t, ctx, mu)
	if _, err := locks.NewInterProcessMutex(other, lockPath).TryAcquire(ctx, 0); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("another client's TryAcquire: %v, want ErrNotAcquired", err)
	}
	if _, err := first.Client().Create().ForPath(ctx, "/written", nil); err != nil {
		t.Errorf("fenced create: %v", err)
	}
	release(t, first)
	release(t, acquire(t, ctx, locks.NewInterProcessMutex(other, lockPath)))
	if foreign.creates == 0 {
		t.Error("the lock does not use the client")
	}
	if waits := o.Named("lock acquire"); len(waits) != 0 {
		t.Errorf("%d spans of a client without telemetry", len(waits))
	}
}

func TestMutexEmbeddedClientIsObserved(t *testing.T) {
	o, client, _ := observed(t)
	mu := locks.NewInterProcessMutex(struct{ *framework.Client }{client}, lockPath)
	release(t, acquire(t, testenv.Context(t), mu))
	awaitSpans(t, o, "lock acquire", 1)
}
