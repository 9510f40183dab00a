package docs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

var _ = []any{eventually, onBoth, plainClient, inVirtualTime, lostReply}

// register is the code under test.
func register(ctx context.Context, client *framework.Client, address string) (path string, err error) {
	return client.Create().CreatingParentsIfNeeded().WithMode(builders.EphemeralSequential).
		ForPath(ctx, "/services/s-", []byte(address))
}

func TestRegister(t *testing.T) {
	server := curatortest.NewServerT(t) // closed when the test ends
	client, err := framework.New(server.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	path, err := register(t.Context(), client, "10.0.0.7:8080")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := server.Node(path); !ok { // what is there, without a session or a watch
		t.Error("the service is not registered")
	}
	if err := server.ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	if server.Exists(path) { // what becomes of it when the service is gone?
		t.Error("the service is registered still")
	}
}

func TestServerInPlaceOfMock(t *testing.T) {
	server := curatortest.NewServerT(t)
	client, err := framework.New(server.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	server.Faults().Add(curatortest.Rule{
		Ops: []string{"getData"}, Path: "/config",
		Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
	})
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.GetData().ForPath(t.Context(), "/config"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("getData: %v, not %v", err, zk.ErrNoAuth)
	}
}

func eventually(t *testing.T, server *curatortest.Server, holder string) {
	t.Helper()
	server.EventuallyT(t, "both wait in line", func() bool { return len(server.Children("/locks/x")) == 2 })
	server.EventuallyT(t, "the holder's node is watched", func() bool { return server.Watches(holder) == 1 })
}

func onBoth(t *testing.T) {
	t.Helper()
	curatortest.OnBoth(t, func(t *testing.T, server *curatortest.TestServer) {
		t.Parallel()
		server.Eventually("the service is registered", func() bool { return server.Exists("/services/a") })
		server.Restart()
	})
}

func plainClient(server *curatortest.Server, timeout time.Duration) error {
	conn, events, err := zk.Connect([]string{server.Addr()}, timeout, zk.WithDialer(server.DialTimeout))
	use(conn, events)
	return err
}

func inVirtualTime(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client, err := framework.New(server.ConnectString(), framework.WithDialer(server.DialContext))
		use(client, err)
	})
}

func lostReply(ctx context.Context, server *curatortest.Server) error {
	// The server creates the node, and the client never gets the answer.
	lost := server.Faults().Add(curatortest.Rule{
		Ops: []string{"create2"}, Path: "/jobs/*", Count: 1, Action: curatortest.CutAfter,
	})
	err := lost.Wait(ctx) // until it has happened
	return err
}
