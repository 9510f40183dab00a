package framework_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/recipes/queue"
	"github.com/gocurator/curator/sasl/digest"
)

// loginServer is a server whose only user is bob.
type loginServer struct {
	*testing.T
	*curatortest.Server
}

func newLoginServer(t *testing.T) loginServer {
	t.Helper()
	s := loginServer{t, curatortest.NewServerT(t, curatortest.WithSASLUsers(map[string]string{"bob": "secret"}))}
	return s
}

// refuse changes bob's password and cuts all connections.
func (s loginServer) refuse() {
	s.SetSASLUsers(map[string]string{"bob": "other"})
	s.Faults().CutAll()
}

// refuseMore waits until more logins were refused.
func (s loginServer) refuseMore() {
	s.Helper()
	tokens := func() int { return requests(s.Server, "sasl") }
	before := tokens()
	testenv.Eventually(s.T, func() bool { return tokens() > before+10 }, "more logins")
}

func (s loginServer) accept() { s.SetSASLUsers(map[string]string{"bob": "secret"}) }

func (s loginServer) client(opts ...framework.Option) *framework.Client {
	s.Helper()
	return connectClient(s.T, s.ConnectString(), append([]framework.Option{
		framework.WithSASL(digest.New("bob", "secret")), framework.WithSessionTimeout(time.Minute),
	}, opts...)...)
}

// awaitRefusal waits until a client knows that it is refused.
func awaitRefusal(t *testing.T, client *framework.Client) {
	t.Helper()
	testenv.Eventually(t, func() bool {
		_, err := client.GetData().ForPath(testenv.Context(t), "/")
		return errors.Is(err, zk.ErrAuthFailed)
	}, "a refusal")
}

// The error of an operation has the reason at once, and whether it was sent.
func TestOperationsOfARefusedClient(t *testing.T) {
	t.Parallel()
	s := newLoginServer(t)
	client := s.client(framework.WithConnectionTimeout(time.Hour))
	results := newEvents()
	s.refuse()
	awaitRefusal(t, client)
	_, err := client.Create().ForPath(testenv.Context(t), "/a", nil)
	for _, target := range []error{zk.ErrAuthFailed, framework.ErrNotSent, framework.ErrConnectionLoss} {
		wantErr(t, "Create", err, target)
	}
	must(t, client.GetData().InBackground(results.callback).ForPath(testenv.Context(t), "/"))
	wantErr(t, "GetData", receive(t, results).Err, zk.ErrAuthFailed)
	wantErr(t, "BlockUntilConnected", client.BlockUntilConnected(testenv.Context(t)), zk.ErrAuthFailed)
	s.accept()
	testenv.Eventually(t, func() bool {
		_, err := client.GetData().ForPath(testenv.Context(t), "/")
		return err == nil
	}, "a login")
}

// A write whose answer was lost before the refusal may have taken effect, and says so.
func TestWriteBeforeARefusalIsUncertain(t *testing.T) {
	t.Parallel()
	s := newLoginServer(t)
	client := s.client(framework.WithConnectionTimeout(time.Hour))
	held := s.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.HoldReply})
	results := newEvents()
	must(t, client.Create().InBackground(results.callback).ForPath(testenv.Context(t), "/a", nil))
	testenv.Eventually(t, func() bool { _, ok := s.Node("/a"); return ok }, "the node")
	s.refuse()
	held.Remove()
	err := receive(t, results).Err
	wantErr(t, "Create", err, framework.ErrConnectionLoss)
	wantErr(t, "Create", err, zk.ErrAuthFailed)
	if errors.Is(err, framework.ErrNotSent) {
		t.Errorf("it was sent: %v", err)
	}
}

// What is guaranteed waits for the login, as for a connection.
func TestGuaranteedDeleteOutlivesARefusal(t *testing.T) {
	t.Parallel()
	s := newLoginServer(t)
	client := s.client()
	_, err := client.Create().ForPath(testenv.Context(t), "/a", nil)
	must(t, err)
	s.refuse()
	awaitRefusal(t, client)
	wantErr(t, "Delete", client.Delete().Guaranteed().ForPath(testenv.Context(t), "/a"), zk.ErrAuthFailed)
	s.refuseMore()
	s.accept()
	testenv.Eventually(t, func() bool { _, ok := s.Node("/a"); return !ok }, "the node is gone")
}

// A refusal that passes is an outage for the recipes: they keep what the session keeps, and go on.
func TestRecipesOutliveARefusal(t *testing.T) {
	t.Parallel()
	s := newLoginServer(t)
	client, other := s.client(), s.client()
	ctx := testenv.Context(t)
	var unhandled atomic.Int64
	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
		if !strings.Contains(e.Message, "refuse the login") {
			t.Errorf("reported: %s: %v", e.Message, e.Err)
		}
		unhandled.Add(1)
	})

	latch, next := leader.NewLeaderLatch(other, "/latch"), leader.NewLeaderLatch(client, "/latch")
	must(t, latch.Start())
	_, err := latch.Await(ctx)
	must(t, err)
	must(t, next.Start())
	testenv.Eventually(t, func() bool { return len(s.Children("/latch")) == 2 }, "two participants")
	hold, err := locks.NewInterProcessMutex(other, "/lock").Acquire(ctx)
	must(t, err)
	granted := make(chan error, 1)
	go func() {
		_, err := locks.NewInterProcessMutex(client, "/lock").Acquire(ctx)
		granted <- err
	}()
	testenv.Eventually(t, func() bool { return len(s.Children("/lock")) == 2 }, "two in line")
	c := cache.NewCuratorCache(client, "/cached")
	must(t, c.Start())
	node := nodes.NewPersistentNode(client, "/kept", builders.Ephemeral, []byte("x"))
	must(t, node.Start())
	must(t, node.WaitForInitialCreate(ctx))
	taken := make(chan string, 10)
	q, err := queue.NewBuilder(client, func(_ context.Context, item string) error {
		taken <- item
		return nil
	}, codec.Text{}, "/queue").LockPath("/queue-locks").BuildQueue()
	must(t, err)
	must(t, q.Start())
	must(t, q.Put(ctx, "before"))
	if got := receive(t, taken); got != "before" {
		t.Errorf("took %q", got)
	}
	must(t, q.Put(ctx, "behind"))
	receive(t, taken)

	s.refuse()
	awaitRefusal(t, client)
	s.refuseMore()
	s.accept()
	must(t, awaitLogin(t, client))
	must(t, awaitLogin(t, other))
	_, err = other.Create().ForPath(ctx, "/cached", []byte("new"))
	must(t, err)
	testenv.Eventually(t, func() bool {
		d, ok := c.Get("/cached")
		return ok && string(d.Data) == "new"
	}, "the cache follows")
	must(t, hold.Release(ctx))
	must(t, receive(t, granted))
	must(t, latch.Close())
	_, err = next.Await(ctx)
	must(t, err)
	if _, ok := s.Node("/kept"); !ok {
		t.Error("the persistent node is gone")
	}
	must(t, q.Put(ctx, "after"))
	if got := receive(t, taken); got != "after" {
		t.Errorf("took %q", got)
	}
	must(t, q.Close())
	must(t, next.Close())
	must(t, node.Close(ctx))
	c.Close()
	if n := unhandled.Load(); n == 0 {
		t.Error("the refusal was not reported")
	}
}

func awaitLogin(t *testing.T, client *framework.Client) error {
	t.Helper()
	testenv.Eventually(t, client.IsConnected, "a login")
	return client.BlockUntilConnected(testenv.Context(t))
}
